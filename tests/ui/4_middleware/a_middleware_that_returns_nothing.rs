//! A middleware returns the result of `next`.
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
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) {
        next.run(ctx).await.unwrap();
    }
}

fn main() {}
