//! Extensions that rewrite every message with what they read of it.

use goondan::prelude::*;

/// Replaces each message of the base with a copy that crossed to this extension and back.
pub struct Copying;

#[goondan::extension(name = "copying")]
impl Copying {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn rewrite(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let copies: Vec<_> = ctx.conversation().base().map(|message| message.to_message()).collect();
        for copy in copies {
            let content = copy.content().clone();
            ctx.emit(MessageEvent::replace(copy.id().clone(), copy.with_content(content)));
        }
        next.run(ctx).await
    }
}

/// Removes all messages, and appends a copy of each message of the base that crossed to this extension and back.
pub struct Retelling;

#[goondan::extension(name = "retelling")]
impl Retelling {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn retell(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let copies: Vec<_> = ctx.conversation().iter().map(|message| message.to_message()).collect();
        ctx.emit(MessageEvent::truncate());
        copies.into_iter().for_each(|copy| ctx.emit(MessageEvent::append(copy)));
        next.run(ctx).await
    }
}
