//! The context of a tool is `ToolContext`.
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
    async fn count(&self, ctx: &ToolCallContext<'_>) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
