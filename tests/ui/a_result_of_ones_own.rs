//! A result can only be had from `next` (NEXT-01).
use goondan::prelude::*;

struct Misused;

#[goondan::extension(name = "misused")]
impl Misused {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn handle(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let _ = (ctx, next);
        Ok(TurnResult::default())
    }
}

fn main() {}
