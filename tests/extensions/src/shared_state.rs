//! Extensions that share state between conversations.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use goondan::ErrorCode;
use goondan::extension::SharedState;
use goondan::prelude::*;

use crate::{Log, LogConfig};

/// The turns of each conversation.
type Turns = BTreeMap<String, u32>;

/// Counts turns in its shared state, and logs the counts.
pub struct Sharing {
    turns: SharedState<Turns>,
    conversation: String,
    log: Log,
}

#[goondan::extension(name = "sharing")]
impl Sharing {
    #[init]
    fn new(ctx: InitContext, config: LogConfig) -> Result<Self> {
        let conversation = format!("{}:{}", ctx.agent(), ctx.instance());
        Ok(Self { turns: ctx.shared_state()?, conversation, log: config.log })
    }

    #[middleware(turn)]
    async fn count(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.turns.update(|turns| *turns.entry(self.conversation.clone()).or_default() += 1)?;
        self.log.write(format!("{:?}", self.turns.read()?));
        next.run(ctx).await
    }

    /// Makes changes that fail.
    #[tool(effect = read)]
    async fn fail(&self) -> Result<()> {
        let before = self.turns.read()?;
        let nested = self.turns.update(|turns| {
            turns.clear();
            assert_eq!(self.turns.read()?, before, "a reader finds the old value");
            self.turns.clone().update(|turns| turns.clear())
        });
        // The outer change succeeds, so that the inner one can be told apart.
        assert_eq!(nested?.unwrap_err().code(), &ErrorCode::EXT_STATE);
        assert_eq!(self.turns.read()?, Turns::new());
        self.turns.update(|turns| *turns = before.clone())?;

        let panicked = catch_unwind(AssertUnwindSafe(|| self.turns.update(|_| panic!("in a change"))));
        assert!(panicked.is_err());
        assert_eq!(self.turns.read()?, before);
        Ok(())
    }
}

/// Reads and writes values that its shared state cannot have.
#[goondan::extension(name = "unshared")]
pub mod unshared {
    use goondan::prelude::*;

    use super::ErrorCode;

    #[init]
    fn new(ctx: InitContext) -> Result<()> {
        let numbers = ctx.shared_state::<Vec<f64>>()?;
        numbers.update(|numbers| numbers.push(1.0))?;
        assert_eq!(numbers.update(|numbers| numbers.push(f64::NAN)).unwrap_err().code(), &ErrorCode::EXT_STATE);
        assert_eq!(numbers.read()?, [1.0]);
        // Another shape than the one that is stored.
        ctx.shared_state::<String>().map(drop)
    }
}
