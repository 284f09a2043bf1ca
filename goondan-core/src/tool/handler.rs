//! Tool handlers and their context.

use std::fmt;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{Presenter, ReplyLimit, ToolHost, ToolReply};
use crate::BoxFuture;
use crate::conversation::{ConversationView, Message};
use crate::decision::{Decision, decided, unfit};
use crate::error::Result;
use crate::event::TurnInfo;
use crate::log::Logger;
use crate::name::{AgentName, InstanceKey, ToolCallId, ToolName, TraceId, TurnId};
use crate::peers::AgentsApi;
use crate::question::Question;

/// The code that answers the calls of one tool. `#[tool]` generates implementations.
pub trait ToolHandler: Send + Sync + 'static {
    /// Answers one call. An error, or a panic, becomes an error result for the model. Any JSON value is a reply:
    /// `Ok(json!({ "found": 3 }).into())`.
    // F-TOOL
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>>;

    /// Returns the presenter of the calls. Without one, people read the arguments.
    // PRESENT-01
    fn presenter(&self) -> Option<&dyn Presenter> {
        None
    }
}

/// The call that a handler answers, and its turn.
// F-TOOL
#[derive(Clone, Copy)]
pub struct ToolContext<'a> {
    host: &'a dyn ToolHost,
}

impl<'a> ToolContext<'a> {
    /// Returns a context that uses `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn ToolHost) -> Self {
        Self { host }
    }

    /// Returns the running turn, for a linkage.
    #[doc(hidden)]
    pub fn scope(&self) -> &'a TurnInfo {
        self.host.scope()
    }

    /// Returns the name of the running agent.
    pub fn agent_name(&self) -> &'a AgentName {
        &self.host.scope().agent
    }

    /// Returns the key of the instance.
    pub fn instance_key(&self) -> &'a InstanceKey {
        &self.host.scope().instance
    }

    /// Returns the id of the running turn.
    pub fn turn_id(&self) -> &'a TurnId {
        &self.host.scope().turn
    }

    /// Returns the trace id of the turn: it is shared by everything that one input event causes.
    pub fn trace_id(&self) -> &'a TraceId {
        &self.host.scope().trace
    }

    /// Returns the id of the call.
    pub fn call_id(&self) -> &'a ToolCallId {
        self.host.call_id()
    }

    /// Returns the name of the tool.
    pub fn tool_name(&self) -> &'a ToolName {
        self.host.tool_name()
    }

    /// Returns the message of the model that contains the call.
    pub fn message(&self) -> &'a Message {
        self.host.message()
    }

    /// Returns the working directory of the instance, the default for tools that read and write files. It is created on
    /// first use.
    ///
    /// # Errors
    /// `E_STORE_IO` when it cannot be created.
    pub fn workdir(&self) -> Result<&'a Path> {
        self.host.workdir()
    }

    /// Returns how many bytes the files that hold whole outputs may have together: `policy.maxOutputBytes`. They are
    /// the numbered files in the working directory that [`NumberedFile`](goondan_text::NumberedFile) of the crate
    /// `goondan-text` makes.
    pub fn max_output_bytes(&self) -> u64 {
        self.host.max_output()
    }

    /// Calls `with` with the limit of the reply.
    #[doc(hidden)]
    pub fn with_reply_limit<T>(&self, with: impl FnOnce(&ReplyLimit<'_>) -> T) -> T {
        let workdir = || self.host.workdir();
        let (size, tool, call) = (self.host.max_reply(), self.tool_name().as_str(), self.call_id());
        let max_output = || self.host.max_output();
        with(&ReplyLimit { size, tool, call, workdir: &workdir, max_output: &max_output })
    }

    /// Returns a logger for the extension that registered the tool.
    pub fn logger(&self) -> Logger<'a> {
        self.host.logger()
    }

    /// Reports the progress of the call to the watchers of the turn: how much of `total` is `done`, and a few words
    /// about the work.
    ///
    /// The stream of the turn has it as `TurnUpdate::Progress`, the bus as the event `tool.progress`. Nothing is
    /// stored, and at most 20 updates of a call are told in a second; the others are dropped. Without a receiver, this
    /// does nothing. The deadline of the call does not move.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Files;
    /// # #[goondan::extension(name = "files")]
    /// # impl Files {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Copies three files.
    /// #[tool]
    /// async fn copy(&self, ctx: &ToolContext<'_>) -> Result<()> {
    ///     for (done, file) in ["a.txt", "b.txt", "c.txt"].into_iter().enumerate() {
    ///         ctx.progress(done as f64, Some(3.0), file);
    ///         // …
    ///     }
    ///     Ok(())
    /// }
    /// # }
    /// ```
    pub fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        self.host.progress(done, total, text);
    }

    /// Returns the value that was decided about the question that this handler [has asked](ToolReply::ask), `None`
    /// before that. A handler whose question was rejected does not run again.
    ///
    /// # Errors
    /// `E_DECISION_INVALID` when the value is no `T`.
    // ASK-04
    pub fn decision<T: DeserializeOwned>(&self) -> Result<Option<T>> {
        decided(self.decisions()?, None)
    }

    /// Returns the value that was decided about the question with this [name](crate::Question::named), as
    /// [`ToolContext::decision`] does.
    ///
    /// # Errors
    /// As there.
    // ASK-04
    pub fn decision_of<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>> {
        decided(self.decisions()?, Some(name))
    }

    /// Asks the person a live question, and waits for the answer: for work that cannot run again, such as the
    /// question of a server that holds a connection open meanwhile. Where the handler can run again, it returns
    /// [`ToolReply::ask`] instead: then the turn is suspended, and the question outlives the process.
    ///
    /// The time that the person takes counts against the expiry of the question, 10 minutes unless it sets another, and
    /// against no deadline of the tool, the turn, or an agent that waits for this one. If the process ends meanwhile,
    /// the question is lost, and the call is interrupted as its effect says. `#[tool(asks)]` declares that the tool
    /// asks.
    ///
    /// ```
    /// use goondan::decision::Question;
    /// use goondan::prelude::*;
    ///
    /// # struct Games;
    /// # #[goondan::extension(name = "games")]
    /// # impl Games {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Lets the person guess a number.
    /// #[tool(effect = read, asks)]
    /// async fn guess(&self, ctx: &ToolContext<'_>) -> Result<String> {
    ///     let guess: String = ctx.ask_live(Question::choose("Heads or tails?", ["heads", "tails"])).await?;
    ///     Ok(format!("the user said {guess}"))
    /// }
    /// # }
    /// ```
    ///
    /// # Errors
    /// `E_TOOL_REJECTED` when the person says no; `E_NOT_ANSWERED` when there is no person to ask and the question
    /// [says no answer for that](crate::Question::unanswered), or when no answer came in time; `E_DECISION_INVALID`
    /// when the answer is no `T`; `E_TOOL_ASKS` when the tool does not declare that it asks, the question is too
    /// large, or the call has asked too often.
    // ASK-04
    pub async fn ask_live<T: DeserializeOwned>(&self, question: Question) -> Result<T> {
        T::deserialize(self.host.ask_live(question).await?).map_err(|error| unfit(&error))
    }

    /// Asks a live question, for a linkage.
    ///
    /// # Errors
    /// As [`ToolContext::ask_live`].
    #[doc(hidden)]
    pub fn ask_live_value(&self, question: Question) -> BoxFuture<'a, Result<Value>> {
        self.host.ask_live(question)
    }

    /// Returns the decisions about the questions of this handler, for a linkage.
    ///
    /// # Errors
    /// When the host has an older version, which does not tell.
    #[doc(hidden)]
    pub fn decisions(&self) -> Result<Vec<Decision>> {
        self.host.decisions()
    }

    /// Returns the conversation as it was when the model asked for the call: [`message`](Self::message) is the newest
    /// one. The results of other calls that the model asked for at the same time are not in it.
    pub fn conversation(&self) -> ConversationView<'a> {
        ConversationView::new(self.host.conversation())
    }

    /// Returns the access to other agents, and to models.
    // D-17, D-33
    pub fn agents(&self) -> AgentsApi<'a> {
        AgentsApi::new(self.host.agents(), None)
    }
}

impl fmt::Debug for ToolContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolContext({} {})", self.tool_name(), self.call_id())
    }
}
