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

    #[middleware(turn)]
    async fn handle(&self, _ctx: &mut TurnContext<'_>, _next: Next<'_, Turn>) -> Result<TurnResult> {
        Ok(TurnResult::default())
    }
}

fn main() {}
