//! Only `next` returns a result (NEXT-01): its fields are private.
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
    async fn handle(&self, _ctx: &mut StepContext<'_>, _next: Next<'_, Step>) -> Result<StepResult> {
        Ok(StepResult { tool_calls: Vec::new() })
    }
}

fn main() {}
