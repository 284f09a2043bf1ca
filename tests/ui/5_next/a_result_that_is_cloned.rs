//! A result cannot be stored and returned a second time (NEXT-01).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

fn keep(_: TurnResult) {}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn handle(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let result = next.run(ctx).await?;
        keep(result.clone());
        Ok(result)
    }
}

fn main() {}
