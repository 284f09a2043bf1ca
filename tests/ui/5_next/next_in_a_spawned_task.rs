//! `next` borrows from its run, so it cannot move to a task that may outlive the run.
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
        tokio::spawn(async move { drop(next) });
        Err(Error::msg("not today"))
    }
}

fn main() {}
