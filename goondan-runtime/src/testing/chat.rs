//! The chat: the conversation under test, and access to its records.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use goondan_core::{AgentEvent, Error, Event, EventArgs, EventPattern, Message, Result, ToolCallResult, TurnResult};
use serde::Serialize;

use super::log::{LogCapture, LogLine};
use super::model::Recording;
use super::probe::ProbeHandle;
use super::request::{RecordedRequest, transcript};
use crate::agent::Agent;
use crate::instance::Instance;

/// The longest wait of a test for event handlers; the same as at the end of a turn.
const HANDLERS_LIMIT: Duration = Duration::from_secs(5);

/// A conversation with the extensions under test, returned by [`ChatBuilder::start`](super::ChatBuilder::start). The
/// [module](super) has an example.
///
/// Its records are kept until it is dropped, also across [`Chat::restart`].
pub struct Chat {
    pub(super) agent: Agent,
    pub(super) instance: Instance,
    pub(super) recording: Arc<Recording>,
    pub(super) probe: ProbeHandle,
    pub(super) log: LogCapture,
}

impl Chat {
    /// The key of the conversation.
    pub(super) const KEY: &str = "test";

    /// Runs one turn with `input`. All events of the turn are handled when this returns.
    ///
    /// # Errors
    /// As [`Instance::run`].
    pub async fn say(&self, input: impl Into<AgentEvent>) -> Result<TurnResult> {
        self.instance.run(input).await
    }

    /// Runs one turn in which the model calls one tool and then ends; its script is not advanced. The call is run like
    /// every tool call: catalog, middlewares, validation. Returns the result that the model is sent, an output or an
    /// error.
    ///
    /// ```
    /// use goondan::json;
    /// use goondan::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan::Result<()> {
    /// let mut chat = Chat::builder().start().await?;
    /// let result = chat.call("notes__add", json!({ "text": "milk" })).await?;
    /// assert_eq!(result.error().and_then(|error| error.code.as_deref()), Some("E_TOOL_NOT_IN_CATALOG"));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Chat::say`]; `E_EXT_RUNTIME` when `args` cannot be written as JSON, or when the call has no result because
    /// the step did not end.
    pub async fn call(&mut self, tool: &str, args: impl Serialize) -> Result<ToolCallResult> {
        let call = self.recording.call(tool, serde_json::to_value(args)?);
        self.instance.run(format!("call {tool}")).await?;
        let result = self.probe.records().take_result(call.id());
        result.ok_or_else(|| Error::msg(format!("the step ended without a result of `{tool}`")))
    }

    /// Emits an event on the bus of the conversation, as another extension would, and waits until it is handled.
    ///
    /// ```
    /// use goondan::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan::Result<()> {
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

    /// Returns the requests that the model was sent so far.
    pub fn requests(&self) -> Vec<RecordedRequest> {
        self.recording.requests()
    }

    /// Returns the last request that the model was sent.
    ///
    /// # Panics
    /// When the model was not called yet.
    pub fn last_request(&self) -> RecordedRequest {
        #[expect(clippy::expect_used, reason = "an assertion for tests, and documented")]
        self.requests().pop().expect("the model was called at least once")
    }

    /// Returns the messages of the conversation, oldest first; none once it is closed.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        self.instance.messages().await.unwrap_or_default()
    }

    /// Returns the messages as lines such as `user: hello`, oldest first. Tool calls are in brackets:
    /// `assistant: [notes__add {"text":"milk"}]`.
    pub async fn transcript(&self) -> Vec<String> {
        transcript(self.messages().await.iter().map(|message| message.data()))
    }

    /// Returns the events so far that match `pattern`, a name or a glob such as `turn.*`: those of extensions and of
    /// the runtime, from the first `#[init]` on.
    ///
    /// # Panics
    /// When `pattern` is not a legal name or glob.
    pub fn events(&self, pattern: &str) -> Vec<Event> {
        #[expect(clippy::expect_used, reason = "an assertion for tests, and documented")]
        let pattern: EventPattern = pattern.parse().expect("a name or a pattern of events");
        self.probe.records().events(&pattern)
    }

    /// Returns the lines that extensions and the runtime logged so far; see [`LogLine`] for which lines are recorded.
    pub fn logs(&self) -> Vec<LogLine> {
        self.log.lines()
    }

    /// Closes the conversation and opens it again with the same store, as a restart of the program does. Extensions are
    /// cleaned up, made and registered again; history and state must survive.
    ///
    /// ```
    /// use goondan::testing::Chat;
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> goondan::Result<()> {
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

    /// Closes the conversation: extensions are cleaned up, and their state is stored. The records stay readable.
    ///
    /// # Errors
    /// As [`Instance::close`].
    pub async fn close(&self) -> Result<()> {
        self.instance.close().await
    }

    /// Returns the instance, for example to stream or to cancel a turn.
    pub fn instance(&self) -> &Instance {
        &self.instance
    }

    /// Returns the agent, for example to add it to a router.
    pub fn agent(&self) -> &Agent {
        &self.agent
    }
}

impl fmt::Debug for Chat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Chat({:?})", self.instance)
    }
}
