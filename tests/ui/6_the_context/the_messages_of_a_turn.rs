//! The old structure `turn.messages` does not exist (CONV-10).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn handle(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let _ = &ctx.turn().messages;
        next.run(ctx).await
    }
}

fn main() {}
