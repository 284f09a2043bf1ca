//! A tool reaches other agents by a method of another name.
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
    async fn ask(&self, ctx: &ToolContext<'_>) -> Result<usize> {
        Ok(ctx.agents().list().len())
    }
}

fn main() {}
