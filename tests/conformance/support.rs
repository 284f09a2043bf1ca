//! What the tests share: a log that extensions write to, and agents made in one line.

use std::sync::{Arc, Mutex};

use goondan::{Agent, AgentBuilder, ScriptItem, ScriptedModel, TurnResult, Value};
use serde::{Serialize, Serializer};
use tempfile::NamedTempFile;

/// What the extensions of one test write down, in a file: they may be in a library. In a config it is the path.
#[derive(Clone)]
pub(crate) struct Log {
    file: Arc<NamedTempFile>,
    taken: Arc<Mutex<usize>>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { file: Arc::new(NamedTempFile::new().unwrap()), taken: Arc::default() }
    }

    /// What was written since the last time.
    pub(crate) fn take(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file.path()).unwrap();
        let mut taken = self.taken.lock().unwrap();
        let lines: Vec<_> = text.lines().skip(*taken).map(|line| serde_json::from_str(line).unwrap()).collect();
        *taken += lines.len();
        lines
    }

    /// The config of an extension that takes only the log.
    pub(crate) fn config(&self) -> Value {
        goondan::json!({ "log": self })
    }
}

impl Serialize for Log {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.file.path().serialize(serializer)
    }
}

/// An agent whose model plays `script`.
pub(crate) fn agent(script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

/// Runs one turn of a new conversation.
pub(crate) async fn one_turn(agent: AgentBuilder) -> goondan::Result<TurnResult> {
    agent.build().await?.instance("test").await?.run("hello").await
}
