//! The description of a tool is its doc comment.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(description = "Counts lines.")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
