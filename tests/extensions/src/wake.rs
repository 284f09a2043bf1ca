//! An extension that delegates from everywhere, and logs what comes back.

use goondan::event::{AgentDelegate, AgentDelegationResult};
use goondan::prelude::*;

use crate::Log;

/// Delegates from where its config says.
pub struct Waking {
    api: ExtensionApi,
    config: Config,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    /// From where it delegates: `init`, `task`, `tool`, `turn`, `step` or `completed`.
    from: String,
    target: String,
    /// How many delegations it emits at once.
    times: usize,
}

impl Waking {
    fn delegate(&self, from: &str) {
        if self.config.from == from {
            delegate(&self.api, &self.config);
        }
    }
}

fn delegate(api: &ExtensionApi, config: &Config) {
    for number in 0..config.times {
        let mut delegate = AgentDelegate::new(config.target.parse().unwrap(), "woken");
        delegate.id = format!("wake-{number}");
        api.events().delegate(delegate);
    }
}

#[goondan::extension(name = "waking")]
impl Waking {
    #[init]
    async fn new(api: ExtensionApi, config: Config) -> Self {
        let new = Self { api: api.clone(), config: config.clone() };
        new.delegate("init");
        if config.from == "task" {
            tokio::spawn(async move { delegate(&api, &config) });
        }
        new
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let input = ctx.input().input.clone().unwrap_or_default();
        self.config.log.write(format!("turn {input}"));
        if input != "woken" {
            self.delegate("turn");
        }
        next.run(ctx).await
    }

    #[tool(name = "waking__wake")]
    /// Delegates.
    async fn wake(&self) -> Result<()> {
        self.delegate("tool");
        Ok(())
    }

    #[on("turn.completed")]
    async fn completed(&self) -> Result<()> {
        self.delegate("completed");
        Ok(())
    }

    #[on("agent.delegationResult")]
    async fn result(&self, event: &Event) -> Result<()> {
        let AgentDelegationResult { id, source_agent, result, error_code, .. } = event.payload()?;
        let outcome = match (result, error_code) {
            (Some(result), None) => result.to_string(),
            (_, code) => code.map(|code| code.to_string()).unwrap_or_default(),
        };
        self.config.log.write(format!("{id} of {source_agent}: {outcome}"));
        Ok(())
    }
}
