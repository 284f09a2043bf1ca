//! A tool has a name, and without the option it is made from its function.
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
