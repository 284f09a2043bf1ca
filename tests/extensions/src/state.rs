//! Extensions that use their state.

use goondan::prelude::*;
use goondan::{ErrorCode, Value};

use crate::{Log, LogConfig};

/// Counts turns and calls of its tool in its state.
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

/// Sets its state in `#[init]` to the JSON value of its config.
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
        // A map whose keys are not text has no JSON form.
        let unwritable = std::collections::BTreeMap::from([((1, 2), 3)]);
        let error = api.state().set(&unwritable).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_STATE);
        api.logger().with("state", api.state().get::<Value>()?).debug("started");
        Ok(Self)
    }
}
