//! The time from which a conversation runs with its committed changes.
// LEGACY-CHANGESET-04

use std::time::Duration;

use goondan::event::{AgentReload, AgentReloadAnswer, ReloadEffect};
use goondan::extension::ExtensionApi;
use serde::Serialize;
use tokio::time::timeout;

/// The longest time in which the program may load the changed bundle.
const LIMIT: Duration = Duration::from_secs(60);

/// When a commit has an effect, as the model reads it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Effect {
    effect: ReloadEffect,
    #[serde(rename = "noEffectBecause", skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Effect {
    /// Requests that the program loads the bundle again, and waits until the reload is prepared or refused.
    pub(crate) async fn of_reload(api: &ExtensionApi, id: &str) -> Self {
        match timeout(LIMIT, api.events().reload(AgentReload::new(id))).await {
            Ok(AgentReloadAnswer { effect, reason, .. }) => Self { effect, reason },
            Err(_) => {
                let reason = format!("the program has not loaded the bundle within {} s", LIMIT.as_secs());
                Self { effect: ReloadEffect::None, reason: Some(reason) }
            }
        }
    }
}
