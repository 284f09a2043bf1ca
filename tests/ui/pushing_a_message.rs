//! A conversation changes only by events (CONV-09).
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
        ctx.conversation().push(Message::user("hi"));
        next.run(ctx).await
    }
}

fn main() {}
