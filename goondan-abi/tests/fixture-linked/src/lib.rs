//! An extension that a library depends on without offering it.

use goondan::prelude::*;

/// An extension of a dependency.
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
