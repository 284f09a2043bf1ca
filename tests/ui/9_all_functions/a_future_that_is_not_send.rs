//! A turn can move to another thread at every `.await`, so its future must be `Send`.
#![allow(unused)]
use goondan::prelude::*;
use std::rc::Rc;

struct Notes;

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(turn)]
    async fn count(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let lines = Rc::new(ctx.conversation().len());
        let result = next.run(ctx).await?;
        println!("{lines} before");
        Ok(result)
    }
}

fn main() {}
