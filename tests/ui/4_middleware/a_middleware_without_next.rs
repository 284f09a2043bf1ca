//! A middleware runs the rest of the chain exactly once (NEXT-01), so it takes `next`.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn pass(&self, ctx: &mut StepContext<'_>) -> Result<StepResult> {
        Err(Error::msg("not today"))
    }
}

fn main() {}
