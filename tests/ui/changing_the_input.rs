//! What a context shows cannot be written, but for catalog, arguments and metadata (CTX-04).
use goondan::prelude::*;

struct Misused;

#[goondan::extension(name = "misused")]
impl Misused {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn handle(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        ctx.input().input = None;
        next.run(ctx).await
    }
}

fn main() {}
