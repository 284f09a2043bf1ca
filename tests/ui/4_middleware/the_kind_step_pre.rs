//! A middleware has its two phases around `next`, and not in its kind.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step.pre)]
    async fn pass(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }
}

fn main() {}
