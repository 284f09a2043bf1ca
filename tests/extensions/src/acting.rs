//! An extension that emits the names of events on which the runtime acted, calls the members that act, and logs what it
//! hears.

use goondan::event::{AgentDelegate, AgentReload, AgentReloadAnswer};
use goondan::prelude::*;

use crate::Log;

/// Acts by the members of the surface *events*, and emits the names of their events.
pub struct Acting {
    api: ExtensionApi,
    log: Log,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Config {
    log: Log,
}

fn delegation(ctx: &ToolContext<'_>) -> AgentDelegate {
    let mut delegation = AgentDelegate::new(ctx.agent_name().clone(), "woken");
    delegation.id = "delegated".to_owned();
    delegation
}

#[goondan::extension(name = "acting")]
impl Acting {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, log: config.log }
    }

    /// Emits the names of the events, and calls no member.
    #[tool]
    async fn emit(&self, ctx: &ToolContext<'_>) -> Result<()> {
        self.api.events().emit(AgentDelegate::NAME, (delegation(ctx),));
        self.api.events().emit(AgentReload::NAME, (AgentReload { id: "requested".to_owned() },));
        Ok(())
    }

    /// Delegates a turn.
    #[tool]
    async fn delegate(&self, ctx: &ToolContext<'_>) -> Result<()> {
        self.api.events().delegate(delegation(ctx));
        Ok(())
    }

    /// Requests a reload, and returns the answer.
    #[tool]
    async fn reload(&self) -> Result<AgentReloadAnswer> {
        Ok(self.api.events().reload(AgentReload { id: "requested".to_owned() }).await)
    }

    /// Requests a reload, and does not wait for the answer.
    #[tool]
    async fn forget(&self) -> Result<()> {
        drop(self.api.events().reload(AgentReload { id: "requested".to_owned() }));
        Ok(())
    }

    #[on("agent.*")]
    async fn heard(&self, event: &Event) -> Result<()> {
        let payload = &event.args()[0];
        let member = ["targetAgent", "result", "effect"].iter().find_map(|member| payload.get(member));
        self.log.write(format!("{} {} {}", event.name(), payload["id"], member.unwrap_or_default()));
        Ok(())
    }
}
