//! Both parts of a tool name have at least one character (TOOL-01).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(name = "notes__")]
    async fn count(&self) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
