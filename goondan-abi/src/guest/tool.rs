//! One call of a tool: the host behind its context.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::host::{ConversationHost, ReplySize, ToolHost, TurnInfo};
use goondan_core::linkage::WireScope;
use goondan_core::{
    AgentsHost, BoxFuture, Decision, Error, ErrorCode, LogHost, LogLevel, Logger, Message, Question, Result,
    ToolCallId, ToolName,
};
use serde_json::{Map, Value};

use super::call::CallRef;
use super::conversation::CallConversation;
use super::log::{fields_json, level_number};
use super::{host, host_1_3};
use crate::future::{Imported, NoScope};
use crate::table::Text;

/// The host behind the `ToolContext` of one call. Fields are read from the host when they are first accessed.
pub(super) struct ToolRun {
    call: CallRef,
    call_id: ToolCallId,
    tool_name: ToolName,
    scope: OnceLock<TurnInfo>,
    message: OnceLock<Message>,
    conversation: CallConversation,
    workdir: OnceLock<PathBuf>,
}

impl ToolRun {
    pub(super) fn new(call: CallRef) -> Result<Self> {
        Ok(Self {
            call,
            call_id: call.read("callId")?.parse()?,
            tool_name: call.read("toolName")?.parse()?,
            scope: OnceLock::new(),
            message: OnceLock::new(),
            conversation: CallConversation::new(call),
            workdir: OnceLock::new(),
        })
    }
}

impl ToolHost for ToolRun {
    /// # Panics
    /// If the host breaks the contract. The panic is caught within the library and reported to the host.
    #[expect(clippy::panic, reason = "the accessors of a context cannot return an error")]
    fn scope(&self) -> &TurnInfo {
        self.scope.get_or_init(|| {
            let scope = self.call.read("scope").and_then(|json| json.parse::<WireScope<'_>>());
            scope.unwrap_or_else(|error| panic!("the host gave no scope: {error}")).into()
        })
    }

    fn call_id(&self) -> &ToolCallId {
        &self.call_id
    }

    fn tool_name(&self) -> &ToolName {
        &self.tool_name
    }

    /// # Panics
    /// As [`Self::scope`].
    #[expect(clippy::panic, reason = "the accessors of a context cannot return an error")]
    fn message(&self) -> &Message {
        self.message.get_or_init(|| {
            let message = self.call.read("message").and_then(|json| json.parse());
            message.unwrap_or_else(|error| panic!("the host gave no message: {error}"))
        })
    }

    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }

    fn decisions(&self) -> Result<Vec<Decision>> {
        self.call.read("decision")?.parse()
    }

    fn ask_live(&self, question: Question) -> BoxFuture<'_, Result<Value>> {
        let call = self.call;
        Box::pin(async move {
            let Some(host) = host_1_3() else {
                let message = "this version of the program cannot ask live questions";
                return Err(Error::new(ErrorCode::NOT_ANSWERED, message).suggest("run it with a newer goondan"));
            };
            let future = {
                let question = serde_json::to_vec(&question)?;
                // SAFETY: By the contract of `CallRef::new`, the call outlives this future; the text is borrowed for
                // this function.
                unsafe { (host.run_ask)(call.raw(), Text::new(&question)) }
            };
            // SAFETY: The host just returned the future, which has no other owner.
            unsafe { Imported::new(future, NoScope) }.await?.parse()
        })
    }

    fn workdir(&self) -> Result<&Path> {
        match self.workdir.get() {
            Some(workdir) => Ok(workdir),
            None => {
                let workdir = self.call.read("workdir")?.parse()?;
                Ok(self.workdir.get_or_init(|| workdir))
            }
        }
    }

    fn max_reply(&self) -> ReplySize {
        // An older host has no limit.
        self.call.read("maxReply").and_then(|json| json.parse()).unwrap_or(ReplySize::UNLIMITED)
    }

    fn max_output(&self) -> u64 {
        // An older host has no setting.
        self.call.read("maxOutput").and_then(|json| json.parse()).unwrap_or(ReplySize::DEFAULT_OUTPUT)
    }

    fn logger(&self) -> Logger<'_> {
        Logger::new(self)
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.call
    }

    fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        let total = total.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: By the contract of `CallRef::new`, the call is valid; `total` and the text are borrowed for this
        // function.
        unsafe { (host().run_progress)(self.call.raw(), done, total, Text::new(text.as_bytes())) };
    }
}

impl LogHost for ToolRun {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        let (level, fields) = (level_number(level), fields_json(fields));
        // SAFETY: By the contract of `CallRef::new`, the call is valid; the texts are borrowed for this function.
        unsafe { (host().run_log)(self.call.raw(), level, Text::new(text.as_bytes()), Text::new(&fields)) };
    }
}
