//! There are three kinds of middleware, and the third is written `toolCall`.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolcall)]
    async fn pass(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }
}

fn main() {}
