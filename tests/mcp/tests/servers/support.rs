//! Conversations with the odd server, and what it logs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use goondan::agent::Instance;
use goondan::conversation::{Content, Part};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Value, json};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::linkage::WithServer;

/// A directory for the log of the servers of one test.
pub(crate) struct Odd {
    directory: TempDir,
}

impl Odd {
    pub(crate) fn new() -> Self {
        Self { directory: TempDir::new().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Returns the transport of a server with these options.
    pub(crate) fn transport(&self, options: &[&str]) -> Value {
        let log = format!("log={}", self.path("log").display());
        let mut command = vec![env!("CARGO_BIN_EXE_odd-server"), &log];
        command.extend(options);
        json!({ "type": "stdio", "command": command })
    }

    /// Returns the config of a server with these options.
    pub(crate) fn config(&self, options: &[&str]) -> Value {
        json!({ "transport": self.transport(options) })
    }

    /// Returns the lines that the servers have logged.
    pub(crate) fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.path("log")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Returns what follows `word` in the lines of the log that begin with it.
    pub(crate) fn logged(&self, word: &str) -> Vec<String> {
        let rest = |line: String| line.strip_prefix(word)?.strip_prefix(' ').map(str::to_owned);
        self.log().into_iter().filter_map(rest).collect()
    }

    /// Waits until the log has a line that begins with `word`.
    pub(crate) async fn wait_for(&self, word: &str) {
        while !self.log().iter().any(|line| line.starts_with(word)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns how many servers were started.
    pub(crate) fn starts(&self) -> usize {
        self.logged("start").len()
    }

    /// Returns the processes that were started, and not the ones that have ended.
    pub(crate) fn running(&self) -> Vec<i32> {
        let all = self.logged("start").into_iter().chain(self.logged("child"));
        all.map(|pid| pid.parse().unwrap()).filter(|pid| is_running(*pid)).collect()
    }

    /// Waits until all processes that were started have ended.
    pub(crate) async fn wait_for_end(&self) {
        while !self.running().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// Returns whether the process exists. One that waits to be reaped by the init process does not count.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    kill(Pid::from_raw(pid), None).is_ok() && !zombie
}

pub(crate) fn call(tool: &str, arguments: Value) -> ScriptItem {
    ScriptItem::call(tool, arguments)
}

pub(crate) fn done() -> ScriptItem {
    ScriptItem::say("done")
}

/// Returns an agent with the server `odd`, whose model plays `script`.
pub(crate) fn agent(config: Value, script: impl IntoIterator<Item = ScriptItem>) -> Agent {
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
    agent.server("odd", config).build().unwrap()
}

/// Opens a conversation with the server `odd`.
pub(crate) async fn open(config: Value, script: impl IntoIterator<Item = ScriptItem>) -> (Agent, Instance) {
    let agent = agent(config, script);
    let instance = agent.instance("test").await.unwrap();
    (agent, instance)
}

/// Returns the results of all tool calls in the conversation.
pub(crate) async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    let parts = messages.iter().flat_map(|message| match message.content() {
        Content::Parts(parts) => parts.as_slice(),
        Content::Text(_) => &[],
    });
    let results = parts.filter_map(|part| match part {
        Part::ToolResult(result) => Some(result.output.to_text().into_owned()),
        _ => None,
    });
    results.collect()
}

/// Returns the names of the tools that the next turn begins with.
pub(crate) async fn tools(instance: &Instance) -> Vec<String> {
    instance.tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}
