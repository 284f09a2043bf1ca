//! The second tool would silently replace the first (TOOL-03).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }

    #[tool(name = "notes__count")]
    async fn count_all(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
