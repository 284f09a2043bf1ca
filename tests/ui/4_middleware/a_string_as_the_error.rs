//! Error types convert into `goondan::Error`, as every `std::error::Error` does and `String` does not.
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
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult, String> {
        next.run(ctx).await.map_err(|error| error.to_string())
    }
}

fn main() {}
