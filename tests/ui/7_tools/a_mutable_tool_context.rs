//! Tools of one step may run side by side, so what they are lent is shared.
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
