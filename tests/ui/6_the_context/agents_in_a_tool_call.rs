//! A tool-call middleware cannot call other agents (AGENTS-02).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn handle(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let _ = ctx.agents();
        next.run(ctx).await
    }
}

fn main() {}
