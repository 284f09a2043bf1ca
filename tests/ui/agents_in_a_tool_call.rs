//! A tool-call middleware has no way to other agents (AGENTS-02).
use goondan::prelude::*;

struct Misused;

#[goondan::extension(name = "misused")]
impl Misused {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall)]
    async fn handle(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.agents();
        next.run(ctx).await
    }
}

fn main() {}
