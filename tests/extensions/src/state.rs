//! Owns the extensions that remember something.

use goondan::prelude::*;
use goondan::{ErrorCode, Value};

use crate::{Log, LogConfig};

/// Counts turns in its state, and calls of its tool too.
pub struct Counting {
    api: ExtensionApi,
    log: Log,
}

#[derive(Debug, Default, Deserialize, Serialize)]
struct Counts {
    turns: u32,
    calls: u32,
}

#[goondan::extension(name = "counting")]
impl Counting {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Self {
        Self { api, log: config.log }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.log.write(format!("{:?}", self.api.state().get::<Counts>()?.map(|counts| (counts.turns, counts.calls))));
        self.api.state().update(|counts: &mut Counts| counts.turns += 1)?;
        next.run(ctx).await
    }

    /// Counts a call.
    #[tool(effect = read)]
    async fn count(&self) -> Result<()> {
        self.api.state().update(|counts: &mut Counts| counts.calls += 1)
    }
}

/// Keeps whatever JSON it is told to, from `#[init]` on.
pub struct Keeping;

#[derive(Debug, Deserialize, JsonSchema)]
struct KeepingConfig {
    value: Value,
}

#[goondan::extension(name = "keeping")]
impl Keeping {
    #[init]
    fn new(api: ExtensionApi, config: KeepingConfig) -> Result<Self> {
        if config.value != "keep" {
            api.state().set(&config.value)?;
        }
        // A map whose keys are no text cannot be JSON.
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = api.state().set(&unwritable).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_STATE);
        api.logger().with("state", api.state().get::<Value>()?).debug("started");
        Ok(Self)
    }
}
