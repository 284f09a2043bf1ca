//! There are three kinds of middleware (API-05).
use goondan::prelude::*;

struct Misused;

#[goondan::extension(name = "misused")]
impl Misused {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(llmCall)]
    async fn handle(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }
}

fn main() {}
