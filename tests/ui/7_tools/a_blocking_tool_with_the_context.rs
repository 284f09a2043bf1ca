//! A blocking tool may run longer than its call, with which its context ends.
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
    fn count(&self, ctx: &ToolContext<'_>) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
