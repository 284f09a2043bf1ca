//! Tool calls of one step can run concurrently, so their context is a shared reference.
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
    async fn count(&self, ctx: &mut ToolContext<'_>) -> Result<usize> {
        Ok(0)
    }
}

fn main() {}
