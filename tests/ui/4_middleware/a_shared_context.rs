//! A middleware may change what it sees, so its context is `&mut`.
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
    async fn pass(&self, ctx: &TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        todo!()
    }
}

fn main() {}
