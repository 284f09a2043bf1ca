//! What the tests share: a log that extensions write to, and agents made in one line.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex};

use goondan::{Agent, AgentBuilder, ScriptItem, ScriptedModel, TurnResult, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

static LOGS: LazyLock<Mutex<HashMap<String, Vec<String>>>> = LazyLock::new(Mutex::default);

/// What the extensions of one test write down. Extensions are made from their config, so the log goes by name.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(transparent)]
pub(crate) struct Log(String);

impl Log {
    pub(crate) fn new(test: &str) -> Self {
        Self(test.to_owned())
    }

    pub(crate) fn write(&self, line: impl Into<String>) {
        LOGS.lock().unwrap().entry(self.0.clone()).or_default().push(line.into());
    }

    /// What was written since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        LOGS.lock().unwrap().remove(&self.0).unwrap_or_default()
    }

    /// The config of an extension that takes only the log.
    pub(crate) fn config(&self) -> Value {
        goondan::json!({ "log": self.0 })
    }
}

/// The config of an extension that takes only the log.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogConfig {
    pub(crate) log: Log,
}

/// An agent whose model plays `script`.
pub(crate) fn agent(script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

/// Runs one turn of a new conversation.
pub(crate) async fn one_turn(agent: AgentBuilder) -> goondan::Result<TurnResult> {
    agent.build().await?.instance("test").await?.run("hello").await
}
