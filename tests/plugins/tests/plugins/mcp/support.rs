//! Conversations with the odd server, and what it logs.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use goondan::middleware::ToolCallResult;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{Value, json};
use nix::sys::signal::kill;
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::linkage::WithPlugin;

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
        self.config_with(options, json!({}))
    }

    /// Returns the config of a server with these options, and these settings besides the transport.
    pub(crate) fn config_with(&self, options: &[&str], mut settings: Value) -> Value {
        settings["transport"] = self.transport(options);
        settings
    }

    /// Returns the option for a server that also offers these tools.
    pub(crate) fn tools(&self, tools: &Value) -> String {
        let file = self.path("tools");
        fs::write(&file, tools.to_string()).unwrap();
        format!("tools={}", file.display())
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

    /// Waits until the log has a line that begins with `start`.
    pub(crate) async fn wait_for(&self, start: &str) {
        while !self.log().iter().any(|line| line.starts_with(start)) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Returns how many servers were started.
    pub(crate) fn starts(&self) -> usize {
        self.logged("start").len()
    }

    /// Returns the processes that were started, without those that have ended.
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

/// Returns whether the process exists. One that has ended, and that its parent has not awaited, does not count.
fn is_running(pid: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let zombie = stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z'));
    kill(Pid::from_raw(pid), None).is_ok() && !zombie
}

/// Opens a conversation with a server that is called `odd`.
pub(crate) async fn chat(config: Value) -> Chat {
    chat_with(config, [ScriptItem::say("fine").repeat()]).await
}

/// Opens a conversation with a server that is called `odd`, and a model that plays `script`.
pub(crate) async fn chat_with(config: Value, script: impl IntoIterator<Item = ScriptItem>) -> Chat {
    Chat::builder().agent(|agent| agent.plugin("odd", "mcp", config)).script(script).start().await.unwrap()
}

/// Calls a tool of the server, and returns its output.
pub(crate) async fn call(chat: &mut Chat, tool: &str, arguments: Value) -> String {
    let result = chat.call(&format!("odd__{tool}"), arguments).await.unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    text(result.output().unwrap_or_else(|| panic!("{result:?}")))
}

/// Calls a tool of the server, and returns the code and the message of its error.
pub(crate) async fn refused(chat: &mut Chat, tool: &str, arguments: Value) -> (String, String) {
    error(&chat.call(&format!("odd__{tool}"), arguments).await.unwrap())
}

pub(crate) fn error(result: &ToolCallResult) -> (String, String) {
    let error = result.error().unwrap_or_else(|| panic!("{result:?}"));
    (error.code.clone().unwrap_or_default(), error.message.clone())
}

/// Returns what the extension has logged.
pub(crate) fn logs(chat: &Chat) -> Vec<String> {
    let lines = chat.logs().into_iter().filter(|line| line.extension.as_deref() == Some("odd"));
    lines.map(|line| line.text).collect()
}

/// Returns the names of the tools that the next turn begins with.
pub(crate) async fn tools(chat: &Chat) -> Vec<String> {
    chat.instance().tools().await.unwrap().iter().map(|tool| tool.name.to_string()).collect()
}
