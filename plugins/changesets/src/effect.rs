//! From when on a conversation runs with what it has committed.
// LEGACY-CHANGESET-04

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use goondan::event::{AgentReload, AgentReloadAnswer, ReloadEffect};
use goondan::extension::ExtensionApi;
use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::timeout;

/// How long the program may take to load the changed bundle.
const LIMIT: Duration = Duration::from_secs(60);

/// The reloads that were asked for and are not answered.
#[derive(Debug, Default)]
pub(crate) struct Reloads(Mutex<HashMap<String, oneshot::Sender<AgentReloadAnswer>>>);

/// When a commit has an effect, as the model reads it.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Effect {
    effect: ReloadEffect,
    #[serde(rename = "noEffectBecause", skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl Reloads {
    /// Asks the program to load the bundle again, and waits until the reload is prepared or refused.
    pub(crate) async fn ask(&self, api: &ExtensionApi, id: &str) -> Effect {
        let (sender, answer) = oneshot::channel();
        self.lock().insert(id.to_owned(), sender);
        api.events().emit(AgentReload::NAME, (AgentReload::new(id),));
        let answer = timeout(LIMIT, answer).await;
        self.lock().remove(id);
        match answer {
            Ok(Ok(AgentReloadAnswer { effect, reason, .. })) => Effect { effect, reason },
            _ => {
                let reason = format!("the program has not loaded the bundle within {} s", LIMIT.as_secs());
                Effect { effect: ReloadEffect::None, reason: Some(reason) }
            }
        }
    }

    pub(crate) fn answered(&self, answer: AgentReloadAnswer) {
        if let Some(sender) = self.lock().remove(&answer.id) {
            // The call may be cancelled.
            _ = sender.send(answer);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, oneshot::Sender<AgentReloadAnswer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
