//! `next` is consumed by its run (NEXT-03).
use goondan::prelude::*;

struct Misused;

#[goondan::extension(name = "misused")]
impl Misused {
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
