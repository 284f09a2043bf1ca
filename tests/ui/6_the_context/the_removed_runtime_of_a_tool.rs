//! The method has the name that it has in middlewares (D-17).
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
        Ok(ctx.runtime().list().len())
    }
}

fn main() {}
