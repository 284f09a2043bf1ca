//! Only `next` returns a result (NEXT-01).
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
    async fn handle(&self, _ctx: &mut ToolCallContext<'_>, _next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        Ok(ToolCallResult::new("no"))
    }
}

fn main() {}
