//! A tool name has at most 64 characters (TOOL-01).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(name = "notes__count-everything-that-was-ever-said-in-all-of-the-meetings")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
