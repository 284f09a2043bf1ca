//! Owns the chat: the conversation under test, and the way to all that it leaves behind.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use super::log::Log;
use super::model::Recording;
use super::probe::Listener;
use super::request::transcript;
use super::{ChatBuilder, LogLine, RecordedRequest};
use crate::agent::{Agent, Instance};
use crate::conversation::Message;
use crate::error::{Error, Result};
use crate::event::{AgentEvent, Event, EventArgs, EventPattern};
use crate::extension::Extension;
use crate::pipeline::{ToolCallResult, TurnResult};

/// How long handlers of events may take before a test goes on without them; as at the end of a turn.
const HANDLERS_LIMIT: Duration = Duration::from_secs(5);

/// A conversation with the extensions under test. Begun by [`ChatBuilder::start`]; see the [module](super) for an example.
///
/// What it recorded stays until it is dropped, also over [`Chat::restart`].
pub struct Chat {
    pub(super) agent: Agent,
    pub(super) instance: Instance,
    pub(super) recording: Arc<Recording>,
    pub(super) listener: Listener,
    pub(super) log: Log,
}

impl Chat {
    /// The key of the conversation.
    pub(super) const KEY: &str = "test";

    /// Starts to describe a chat with the extension `E`.
    pub fn with<E: Extension>(config: Value) -> ChatBuilder {
        Self::builder().with::<E>(config)
    }

    /// Starts to describe a chat without extensions.
    pub fn builder() -> ChatBuilder {
        ChatBuilder::new()
    }

    /// Says something, which is one turn. All events of the turn are handled when this returns.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub async fn say(&self, input: impl Into<AgentEvent>) -> Result<TurnResult> {
        self.instance.run(input).await
    }

    /// Lets the model call one tool, and then end the turn; the script waits meanwhile. The call takes the way of every
    /// call: catalog, middlewares, validation. What comes back is what the model gets, be it an answer or an error.
    ///
    /// ```
    /// use goondan_core::testing::Chat;
    /// use serde_json::json;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan_core::Result<()> {
    /// let mut chat = Chat::builder().start().await?;
    /// let result = chat.call("notes__add", json!({ "text": "milk" })).await?;
    /// assert_eq!(result.error().and_then(|error| error.code.as_deref()), Some("E_TOOL_NOT_IN_CATALOG"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Chat::say`]; `E_EXT_RUNTIME` when `args` cannot be written as JSON, or when a middleware kept the step from
    /// its end, so that the call has no result.
    pub async fn call(&mut self, tool: &str, args: impl Serialize) -> Result<ToolCallResult> {
        let call = self.recording.call(tool, serde_json::to_value(args)?);
        self.instance.run(format!("call {tool}")).await?;
        let result = self.listener.heard().take_result(call.id());
        result.ok_or_else(|| Error::msg(format!("the step ended without a result of `{tool}`")))
    }

    /// Emits an event on the bus of the conversation, as another extension would, and waits until it is handled.
    ///
    /// ```
    /// use goondan_core::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan_core::Result<()> {
    /// let chat = Chat::builder().start().await?;
    /// chat.emit("note.added", ("milk", 3)).await?;
    /// assert_eq!(chat.events("note.*")[0].args()[1], 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when an argument cannot be written as JSON; `E_INSTANCE_CLOSED` after [`Chat::close`].
    pub async fn emit(&self, name: &str, args: impl EventArgs) -> Result<()> {
        let bus = self.instance.bus().await?;
        bus.emit(Event::new(name, args)?);
        bus.drain(HANDLERS_LIMIT).await;
        Ok(())
    }

    /// What the model was sent so far, request by request.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.recording.requests()
    }

    /// What the model was sent last.
    ///
    /// # Panics
    /// When the model was not asked yet.
    pub fn last_request(&self) -> RecordedRequest {
        #[expect(clippy::expect_used, reason = "an assertion for tests, and documented")]
        self.requests().pop().expect("the model was asked at least once")
    }

    /// The messages of the conversation, oldest first; none once it is closed.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        self.instance.messages().await.unwrap_or_default()
    }

    /// The messages as lines such as `user: hello`, oldest first. Tool calls stand in brackets:
    /// `assistant: [notes__add {"text":"milk"}]`.
    pub async fn transcript(&self) -> Vec<String> {
        transcript(self.messages().await.iter().map(|message| message.data()))
    }

    /// The events that were emitted so far and that `pattern`, a name or a glob such as `turn.*`, fits. Those of
    /// extensions and of the runtime are among them, from the first `#[init]` on.
    ///
    /// # Panics
    /// When `pattern` is not one.
    pub fn events(&self, pattern: &str) -> Vec<Event> {
        #[expect(clippy::expect_used, reason = "an assertion for tests, and documented")]
        let pattern: EventPattern = pattern.parse().expect("a name or a pattern of events");
        self.listener.heard().events(&pattern)
    }

    /// What was logged so far, by extensions and by the runtime; see [`LogLine`] for what is heard.
    pub fn logs(&self) -> Vec<LogLine> {
        self.log.lines()
    }

    /// Closes the conversation and opens it anew over the same store, as a restart of the program does. Extensions clean
    /// up, and are then made and registered again; history and state must survive.
    ///
    /// ```
    /// use goondan_core::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan_core::Result<()> {
    /// let mut chat = Chat::builder().start().await?;
    /// chat.say("hello").await?;
    /// chat.restart().await?;
    /// assert_eq!(chat.transcript().await, ["user: hello", "assistant: ok"]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Chat::close`], and as [`Agent::instance`].
    pub async fn restart(&mut self) -> Result<()> {
        self.close().await?;
        self.instance = self.agent.instance(Self::KEY).await?;
        Ok(())
    }

    /// Closes the conversation: extensions clean up, and their state is stored. What was recorded can still be looked at.
    ///
    /// # Errors
    /// As [`Instance::close`].
    pub async fn close(&self) -> Result<()> {
        self.instance.close().await
    }

    /// The conversation itself, for example to stream or to cancel a turn.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// The agent, for example to put it into a router.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chat({:?})", self.instance)
    }
}
