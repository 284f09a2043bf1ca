//! A middleware asks the context of its turn.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn pass(&self, init: InitContext, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }
}

fn main() {}
