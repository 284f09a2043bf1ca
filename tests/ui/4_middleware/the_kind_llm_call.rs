//! There are three kinds of middleware (API-05).
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(llmCall)]
    async fn pass(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await
    }
}

fn main() {}
