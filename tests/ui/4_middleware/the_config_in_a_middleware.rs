//! Only `#[init]` takes the config, and can store it in the extension.
#![allow(unused)]
use goondan::prelude::*;

struct Notes;

#[derive(Deserialize, JsonSchema)]
struct Config {
    lines: usize,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>, config: Config) -> Result<TurnResult> {
        next.run(ctx).await
    }
}

fn main() {}
