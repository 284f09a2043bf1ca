//! Owns one call of a tool inside a library.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::host::{ToolHost, TurnInfo};
use goondan_core::linkage::WireScope;
use goondan_core::{AgentsHost, LogHost, LogLevel, Logger, Message, Result, ToolCallId, ToolName};
use serde_json::{Map, Value};

use super::extension::{fields_json, level_number};
use super::host;
use super::run::Link;
use crate::table::Text;

/// Behind the `ToolContext` of a call.
pub(super) struct ToolRun {
    link: Link,
    call: ToolCallId,
    tool: ToolName,
    scope: OnceLock<TurnInfo>,
    message: OnceLock<Message>,
    workdir: OnceLock<PathBuf>,
}

impl ToolRun {
    pub(super) fn new(link: Link) -> Result<Self> {
        Ok(Self {
            link,
            call: link.read("callId")?.parse()?,
            tool: link.read("toolName")?.parse()?,
            scope: OnceLock::new(),
            message: OnceLock::new(),
            workdir: OnceLock::new(),
        })
    }
}

impl ToolHost for ToolRun {
    /// # Panics
    /// When the host does not keep to the contract. The panic stops at the border of the extension.
    #[expect(clippy::panic, reason = "there is no value to go on with")]
    fn scope(&self) -> &TurnInfo {
        self.scope.get_or_init(|| {
            let scope = self.link.read("scope").and_then(|json| json.parse::<WireScope<'_>>());
            scope.unwrap_or_else(|error| panic!("the host gave no scope: {error}")).into()
        })
    }

    fn call_id(&self) -> &ToolCallId {
        &self.call
    }

    fn tool_name(&self) -> &ToolName {
        &self.tool
    }

    /// # Panics
    /// As for the scope.
    #[expect(clippy::panic, reason = "there is no value to go on with")]
    fn message(&self) -> &Message {
        self.message.get_or_init(|| {
            let message = self.link.read("message").and_then(|json| json.parse());
            message.unwrap_or_else(|error| panic!("the host gave no message: {error}"))
        })
    }

    fn workdir(&self) -> Result<&Path> {
        match self.workdir.get() {
            Some(workdir) => Ok(workdir),
            None => {
                let workdir = self.link.read("workdir")?.parse()?;
                Ok(self.workdir.get_or_init(|| workdir))
            }
        }
    }

    fn logger(&self) -> Logger<'_> {
        Logger::new(self)
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.link
    }
}

impl LogHost for ToolRun {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        let (level, fields) = (level_number(level), fields_json(fields));
        // SAFETY: The call lives; the texts are borrowed for this function.
        unsafe { (host().run_log)(self.link.raw(), level, Text::new(text.as_bytes()), Text::new(&fields)) };
    }
}
