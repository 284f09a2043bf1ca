//! A blocking tool is a plain function on a separate thread.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(blocking)]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
