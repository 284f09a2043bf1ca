//! Only `next` returns the value for `Ok` (NEXT-01).
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
    async fn handle(&self, ctx: &mut TurnContext<'_>, _next: Next<'_, Turn>) -> Result<TurnResult> {
        ctx.metadata_mut().clear();
        Ok(())
    }
}

fn main() {}
