//! Owns an extension that a library links without offering it.

use goondan::prelude::*;

/// Is linked in.
pub struct LinkedIn;

/// Belongs to another crate.
#[goondan::extension(name = "a-linked-in")]
impl LinkedIn {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }
}
