//! `next` is consumed by its run (NEXT-03).
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
    async fn handle(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await?;
        next.run(ctx).await
    }
}

fn main() {}
