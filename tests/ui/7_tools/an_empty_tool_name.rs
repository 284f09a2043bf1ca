//! A tool has a name, which defaults to that of the extension and the function.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(name = "")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
