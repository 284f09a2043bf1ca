//! A middleware takes the `next` of its kind.
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
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Step>) -> Result<TurnResult> {
        todo!()
    }
}

fn main() {}
