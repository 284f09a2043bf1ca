//! Config of a server.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use goondan::schemars;
use goondan::tool::Effect;
use goondan::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use wildmatch::WildMatch;

/// The config of the extension.
///
/// ```yaml
/// transport: { type: stdio, command: [npx, -y, "@modelcontextprotocol/server-everything"] }
/// ```
#[derive(Clone, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The way to the server. Without it, the extension logs a warning and registers nothing.
    pub transport: Option<Transport>,
    /// Which version of MCP is spoken.
    pub protocol: Protocol,
    /// The life of a connection, and who shares it.
    pub attach: Attach,
    /// The part of the server that the model is offered.
    pub expose: Expose,
    /// Whether a conversation cannot start without the server. If not, it is tried again at later steps.
    pub required: Required,
    /// The tools.
    pub tools: ToolSettings,
    /// The limits.
    pub limits: Limits,
}

/// A `bool` that defaults to `true`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Required(pub bool);

impl Default for Required {
    fn default() -> Self {
        Self(true)
    }
}

/// The way to a server.
// PATTERN-MCP-06
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
pub enum Transport {
    /// A child process, by its standard input and output.
    // PATTERN-MCP-07
    Stdio {
        /// The program and its arguments. A path with a slash starts at `cwd`.
        #[schemars(length(min = 1), extend("x-goondan" = "command"))]
        command: Vec<String>,
        /// Variables that are added to the environment, which is `HOME`, `LOGNAME`, `PATH`, `SHELL`, `TERM` and `USER`.
        #[serde(default)]
        #[schemars(extend("x-goondan" = "variable"))]
        env: BTreeMap<String, String>,
        /// The working directory, relative to the directory of the bundle, which is the default.
        #[serde(default)]
        #[schemars(extend("x-goondan" = "root"))]
        cwd: Option<PathBuf>,
    },
    /// A URL.
    // PATTERN-MCP-08
    Http {
        /// The URL.
        #[schemars(extend("x-goondan" = "host"))]
        endpoint: String,
        /// Headers of each request.
        #[serde(default)]
        headers: BTreeMap<String, String>,
        /// The token that each request has.
        #[serde(default)]
        auth: Option<Auth>,
    },
}

/// A token of the extension `oauth`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Auth {
    /// The app, as the config of the extension `oauth` names it.
    pub oauth: String,
    /// The scopes that the token must have; some of the scopes of the app.
    #[serde(default)]
    pub scopes: Vec<String>,
}

#[cfg(feature = "http")]
impl Auth {
    /// Returns the request for the token.
    pub(crate) fn request(&self) -> goondan_oauth_client::TokenRequest {
        goondan_oauth_client::TokenRequest::new(self.oauth.as_str()).scopes(self.scopes.iter().cloned())
    }
}

/// Which version of MCP is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Protocol {
    /// The newest one that the server knows.
    #[default]
    Auto,
    /// The newest one with a handshake that the server knows. It is for servers that do not survive the question
    /// which versions they know.
    Legacy,
    /// Without a handshake.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
    /// The newest one with a handshake.
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// An older one.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// An older one.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// The oldest one.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
}

/// The life of a connection, and who shares it.
// PATTERN-MCP-09
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Attach {
    /// The life of a connection.
    pub mode: Mode,
    /// Who shares it.
    pub scope: Scope,
}

/// The life of a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Mode {
    /// As long as an extension uses it.
    #[default]
    Stateful,
    /// For one call.
    Stateless,
}

/// Who shares a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Scope {
    /// Each conversation of each agent has a connection of its own.
    #[default]
    Agent,
    /// The conversations of all agents with the same key.
    Instance,
    /// All conversations of the program that reach the server in the same way.
    Shared,
}

/// The part of the server that the model is offered.
// PATTERN-MCP-10
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Expose {
    /// The tools of the server.
    pub tools: bool,
    /// A message that lists the resources, and two tools to list and read them.
    pub resources: bool,
    /// Two tools to list and fill in the prompts.
    pub prompts: bool,
}

impl Default for Expose {
    fn default() -> Self {
        Self { tools: true, resources: false, prompts: false }
    }
}

/// The tools of the server that are offered, and how. Names are those of the server; `*` stands for any text,
/// and `?` for one character.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ToolSettings {
    /// The tools that are offered.
    pub allow: Vec<String>,
    /// Those of them that are not.
    pub deny: Vec<String>,
    /// Whether to believe what the server says about the side effects of its tools.
    pub trust_hints: bool,
    /// The side effects of tools, by name. Of several patterns that fit, the longest counts. The default is `once`.
    pub effects: BTreeMap<String, SideEffects>,
    /// The longest time of a call, in milliseconds.
    #[schemars(range(min = 1))]
    pub timeout_ms: u64,
    /// The digests of tools, by name, as `goondan plugin list --start` prints them. A tool that the server has changed
    /// since then is withheld.
    pub pin: BTreeMap<String, String>,
}

impl Default for ToolSettings {
    fn default() -> Self {
        Self {
            allow: vec!["*".to_owned()],
            deny: Vec::new(),
            trust_hints: false,
            effects: BTreeMap::new(),
            timeout_ms: 60_000,
            pin: BTreeMap::new(),
        }
    }
}

/// The side effects of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SideEffects {
    /// None.
    Read,
    /// Two calls have the effect of one.
    Idempotent,
    /// A call must not be repeated.
    Once,
}

impl From<SideEffects> for Effect {
    fn from(effects: SideEffects) -> Self {
        match effects {
            SideEffects::Read => Self::Read,
            SideEffects::Idempotent => Self::Idempotent,
            SideEffects::Once => Self::Once,
        }
    }
}

/// The limits.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// The longest time until a server can be asked, in milliseconds.
    #[schemars(range(min = 1))]
    pub connect_ms: u64,
    /// The characters of an answer that the model reads. The whole answer is in a file.
    #[schemars(range(min = 1))]
    pub output_chars: usize,
    /// The most restarts in a row of a server that failed, before a minute passes.
    pub restarts: u32,
    /// The longest time in which a server ends, in milliseconds: after half of it, its process is sent `SIGTERM`, and
    /// at the end it is killed.
    #[schemars(range(max = 4000))]
    pub shutdown_ms: u64,
    /// The bytes of a message of the server, such as an answer. Each value in it counts at least 64, as each takes
    /// memory.
    #[schemars(range(min = 1024))]
    pub message_bytes: usize,
    /// The bytes of what the server says of a tool: its name, description and schema. Tools with more are left out.
    #[schemars(range(min = 1))]
    pub tool_bytes: usize,
    /// The bytes of what the server says of all its tools. Those that do not fit are left out. The same is the limit
    /// for its resources, and for its prompts.
    #[schemars(range(min = 1))]
    pub list_bytes: usize,
    /// The most tools, with those that the server has withdrawn.
    pub tools: usize,
}

/// The limits of what a server sends, which count while it is read.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Sizes {
    pub(crate) message: usize,
    pub(crate) tool: usize,
    pub(crate) list: usize,
}

impl Default for Limits {
    /// The time to connect is less than what an agent gives `#[init]`, so that the error names the server.
    fn default() -> Self {
        Self {
            connect_ms: 25_000,
            output_chars: 30_000,
            restarts: 5,
            shutdown_ms: 2_000,
            message_bytes: 16_000_000,
            tool_bytes: 64_000,
            list_bytes: 256_000,
            tools: 500,
        }
    }
}

impl Limits {
    pub(crate) fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    pub(crate) fn shutdown(&self) -> Duration {
        Duration::from_millis(self.shutdown_ms)
    }

    pub(crate) fn sizes(&self) -> Sizes {
        Sizes { message: self.message_bytes, tool: self.tool_bytes, list: self.list_bytes }
    }
}

impl Config {
    /// Returns how the server is reached; `None` for an empty config.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when there are other settings but no transport.
    // PATTERN-MCP-13
    pub(crate) fn transport(&self) -> Result<Option<&Transport>> {
        if self.transport.is_none() && *self != Self::default() {
            return Err(Error::new(ErrorCode::EXT_CONFIG, "the config has no `transport`")
                .suggest("write `transport: { type: stdio, command: [<program>, <argument>] }`"));
        }
        Ok(self.transport.as_ref())
    }
}

impl ToolSettings {
    pub(crate) fn offers(&self, name: &str) -> bool {
        let fits = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
        fits(&self.allow) && !fits(&self.deny)
    }

    pub(crate) fn effect(&self, name: &str) -> Option<Effect> {
        let fitting = self.effects.iter().filter(|(pattern, _)| matches(pattern, name));
        fitting.max_by_key(|(pattern, _)| pattern.len()).map(|(_, effects)| (*effects).into())
    }

    pub(crate) fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }

    /// Checks a tool against its pin, if it has one.
    ///
    /// # Errors
    /// Why the tool may not be offered.
    pub(crate) fn check_pin(&self, name: &str, digest: &str) -> Result<(), String> {
        match self.pin.get(name) {
            Some(pin) if pin != digest => Err(format!("its digest is {digest}, and `tools.pin` has {pin}")),
            _ => Ok(()),
        }
    }
}

fn matches(pattern: &str, name: &str) -> bool {
    WildMatch::new(pattern).matches(name)
}
