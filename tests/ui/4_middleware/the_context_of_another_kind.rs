//! A middleware takes the context of its kind.
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
    async fn pass(&self, ctx: &mut StepContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        todo!()
    }
}

fn main() {}
