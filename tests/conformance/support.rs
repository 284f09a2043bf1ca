//! A log that extensions write to, and agents in one line.

use std::future::poll_fn;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::task::Poll;

use goondan::agent::{AgentBuilder, TurnStream};
use goondan::middleware::TurnResult;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::{Agent, BoxFuture, Result, Value};
use goondan_covers::interruptible;
use serde::{Serialize, Serializer};
use tempfile::NamedTempFile;
use tokio::sync::Notify;
use tokio::task::yield_now;

/// The log of the extensions of one test. It is a file, because the extensions may be in a library, and its path in a
/// config.
#[derive(Clone)]
pub(crate) struct Log {
    file: Arc<NamedTempFile>,
    taken: Arc<Mutex<usize>>,
}

impl Log {
    pub(crate) fn new() -> Self {
        Self { file: Arc::new(NamedTempFile::new().unwrap()), taken: Arc::default() }
    }

    /// Returns the lines that were written since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.file.path()).unwrap();
        let mut taken = self.taken.lock().unwrap();
        let lines: Vec<_> = text.lines().skip(*taken).map(|line| serde_json::from_str(line).unwrap()).collect();
        *taken += lines.len();
        lines
    }

    /// Writes a line, as extensions do.
    pub(crate) fn write(&self, line: &str) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.file.path()).unwrap();
        writeln!(file, "{}", goondan::json!(line)).unwrap();
    }

    /// Returns the config of an extension that takes only the log.
    pub(crate) fn config(&self) -> Value {
        goondan::json!({ "log": self })
    }
}

impl Serialize for Log {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        self.file.path().serialize(serializer)
    }
}

/// Describes an agent whose model plays `script`.
pub(crate) fn agent(script: impl IntoIterator<Item = ScriptItem>) -> AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

/// Builds the agent and runs one turn of a new conversation.
#[interruptible]
pub(crate) async fn one_turn(agent: AgentBuilder) -> Result<TurnResult> {
    agent.build()?.instance("test").await?.run("hello").await
}

/// A model that never answers, and notifies when it was asked.
pub(crate) struct SilentModel(pub(crate) Arc<Notify>);

impl Model for SilentModel {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

/// Lets a turn run for so many rounds, in each of which everything else runs too. Returns whether it has ended.
pub(crate) async fn run_for(turn: &mut TurnStream, rounds: usize) -> bool {
    for _ in 0..rounds {
        let ended = poll_fn(|cx| {
            let mut next = std::pin::pin!(turn.next());
            Poll::Ready(matches!(next.as_mut().poll(cx), Poll::Ready(None)))
        });
        if ended.await {
            return true;
        }
        yield_now().await;
    }
    false
}
