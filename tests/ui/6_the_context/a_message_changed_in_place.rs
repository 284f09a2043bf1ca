//! A conversation changes only by events (CONV-09).
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
    async fn handle(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        for message in ctx.conversation().iter_mut() {
            *message = Message::user("hi");
        }
        next.run(ctx).await
    }
}

fn main() {}
