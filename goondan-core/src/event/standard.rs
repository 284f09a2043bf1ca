//! Payloads of the standard events that extensions emit for each other.
// LEGACY-EVENTS

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::depth::Unchecked;
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, EventId, ExtensionName, InstanceKey, ToolCallId, ToolName, TurnId};

/// Declares a payload and the name of its event.
macro_rules! payload {
    ($(#[$doc:meta])* $type:ident = $name:literal { $($(#[$field_doc:meta])* $field:ident: $of:ty,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(rename_all = "camelCase")]
        #[non_exhaustive]
        pub struct $type {
            $($(#[$field_doc])* pub $field: $of,)*
        }

        impl $type {
            /// The name of the event with this payload.
            pub const NAME: &str = $name;
        }
    };
}

payload! {
    /// A repository can be read.
    // LEGACY-EVENTS-03
    RepoAvailable = "workspace.repoAvailable" {
        /// The directory of the repository.
        path: PathBuf,
        /// The URL that it was cloned from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        remote: Option<String>,
        /// The branch that is checked out.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        branch: Option<String>,
    }
}

payload! {
    /// A work tree can be written.
    // LEGACY-EVENTS-03
    WorktreeMounted = "workspace.worktreeMounted" {
        /// The directory of the work tree.
        path: PathBuf,
        /// The changeset that it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        changeset_id: Option<String>,
    }
}

payload! {
    /// A task that is delegated to an agent in a turn of its own. [`EventsApi::delegate`](crate::EventsApi::delegate)
    /// starts the turn and publishes the event; emitting the event by its name starts nothing.
    // LEGACY-EVENTS-04, WAKE-01, D-41
    AgentDelegate = "agent.delegate" {
        /// Connects the delegation and its result.
        id: String,
        /// The agent, which may be the one that delegates.
        target_agent: AgentName,
        /// The conversation of that agent; `None` is the one with the key of the conversation that delegates.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        instance_key: Option<InstanceKey>,
        /// The task, as input for the agent.
        input: String,
        /// Additional values for the agent.
        #[serde(default, skip_serializing_if = "Map::is_empty")]
        metadata: Map<String, Value>,
    }
}

payload! {
    /// A delegated turn has ended, or could not be started.
    ///
    /// ```
    /// use goondan::event::AgentDelegationResult;
    /// use goondan::prelude::*;
    ///
    /// /// Logs why a delegation failed.
    /// fn log(event: &Event, api: &ExtensionApi) -> Result<()> {
    ///     let AgentDelegationResult { source_agent, error_message, .. } = event.payload()?;
    ///     if let Some(message) = error_message {
    ///         api.logger().warn(format!("{source_agent} has not done it: {message}"));
    ///     }
    ///     Ok(())
    /// }
    /// ```
    // LEGACY-EVENTS-04, WAKE-01
    AgentDelegationResult = "agent.delegationResult" {
        /// The id of the delegation.
        id: String,
        /// The agent that was delegated to.
        source_agent: AgentName,
        /// Its answer; `None` when it failed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        /// The code of the failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_code: Option<ErrorCode>,
        /// The message of the error.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        error_message: Option<String>,
    }
}

impl RepoAvailable {
    /// The repository in the directory `path`.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), remote: None, branch: None }
    }
}

impl WorktreeMounted {
    /// The work tree in the directory `path`, of a changeset if it belongs to one.
    pub fn new(path: impl Into<PathBuf>, changeset_id: Option<String>) -> Self {
        Self { path: path.into(), changeset_id }
    }
}

impl AuthGranted {
    /// Access of `app` on behalf of `subject`.
    pub fn new(app: impl Into<String>, subject: impl Into<String>, scopes: Vec<String>) -> Self {
        Self { app: app.into(), subject: subject.into(), scopes }
    }
}

impl AgentReload {
    /// A request with this id.
    pub fn new(id: impl Into<String>) -> Self {
        Self { id: id.into() }
    }
}

impl AgentReloadAnswer {
    /// The answer to the request with this id.
    pub fn new(id: impl Into<String>, effect: ReloadEffect, reason: Option<String>) -> Self {
        Self { id: id.into(), effect, reason }
    }
}

impl AgentDelegationResult {
    /// The result of the delegation with this id to the agent `source_agent`.
    pub fn new(id: impl Into<String>, source_agent: AgentName, result: Result<Value, &Error>) -> Self {
        let (result, error) = match result {
            Ok(result) => (Some(result), None),
            Err(error) => (None, Some(error)),
        };
        let (error_code, error_message) = (error.map(|error| error.code().clone()), error.map(|error| error.message()));
        Self { id: id.into(), source_agent, result, error_code, error_message: error_message.map(Into::into) }
    }
}

impl ToolProgress {
    /// Progress of the call `tool_call_id` whose total is not known.
    pub fn new(tool_call_id: ToolCallId, tool_name: ToolName, done: f64, text: impl Into<String>) -> Self {
        Self { tool_call_id, tool_name, done, total: None, text: text.into() }
    }
}

impl ExtensionCleanup {
    /// The cleanup of this extension.
    pub fn new(extension: ExtensionName) -> Self {
        Self { extension }
    }
}

impl AgentDelegate {
    /// A delegation of `input` to the conversation of `target_agent` with the key of the one that delegates. See
    /// [`EventsApi::delegate`](crate::EventsApi::delegate).
    pub fn new(target_agent: AgentName, input: impl Into<String>) -> Self {
        let (id, input) = (EventId::random().to_string(), input.into());
        Self { id, target_agent, instance_key: None, input, metadata: Map::new() }
    }

    /// Returns the delegation, unless its metadata is nested too deeply.
    #[doc(hidden)]
    pub fn checked(mut self) -> Result<Self> {
        let metadata = Unchecked::from(std::mem::take(&mut self.metadata)).into_checked();
        self.metadata = metadata.map_err(|error| error.refuse("a value in the metadata of the delegation"))?;
        Ok(self)
    }
}

payload! {
    /// A request of an extension that its agent is loaded again, because its files have changed.
    /// [`EventsApi::reload`](crate::EventsApi::reload) sends it to the program and publishes the event; emitting the
    /// event by its name requests nothing.
    // LEGACY-CHANGESET-04, D-41
    AgentReload = "agent.reload" {
        /// Connects the request and its answer.
        id: String,
    }
}

payload! {
    /// The answer to an [`AgentReload`].
    // LEGACY-CHANGESET-04
    AgentReloadAnswer = "agent.reloadAnswer" {
        /// The id of the request.
        id: String,
        /// From when on the conversation runs with the changed files.
        effect: ReloadEffect,
        /// Why it does not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    }
}

/// From when on a reload has an effect on a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ReloadEffect {
    /// From the next step on, also in a turn that runs, unless an extension cannot be initialized.
    NextStep,
    /// From the next turn on, because an extension changes whose layer is around the turn.
    NextTurn,
    /// There is no reload.
    None,
    /// An effect that this version does not know.
    #[serde(other)]
    Other,
}

payload! {
    /// The conversation was taken back: these turns, and the messages that they made, are gone. Their changes of files
    /// and to the state of extensions is not. If the extensions did not run then, the event comes when the conversation
    /// is opened next; it may come more than once.
    ///
    /// ```
    /// use goondan::event::ConversationRewound;
    /// use goondan::name::TurnId;
    /// use goondan::prelude::*;
    ///
    /// # struct Notes {
    /// #     api: ExtensionApi,
    /// # }
    /// # #[goondan::extension(name = "notes")]
    /// # impl Notes {
    /// #     #[init]
    /// #     fn new(api: ExtensionApi) -> Self {
    /// #         Self { api }
    /// #     }
    /// #
    /// /// Forgets what was noted in the turns that are gone.
    /// #[on("conversation.rewound")]
    /// async fn forget(&self, event: &Event) -> Result<()> {
    ///     let ConversationRewound { turns, .. } = event.payload()?;
    ///     self.api.state().update(|notes: &mut Vec<(TurnId, String)>| notes.retain(|(turn, _)| !turns.contains(turn)))
    /// }
    /// # }
    /// ```
    // BACK-01
    ConversationRewound = "conversation.rewound" {
        /// The turns that are gone, oldest first.
        turns: Vec<TurnId>,
    }
}

impl ConversationRewound {
    /// These turns are gone.
    pub fn new(turns: Vec<TurnId>) -> Self {
        Self { turns }
    }
}

payload! {
    /// An application was granted access on behalf of a subject.
    // LEGACY-OAUTH-05
    AuthGranted = "auth.granted" {
        /// The application.
        app: String,
        /// The person or program on whose behalf.
        subject: String,
        /// The scopes of the access.
        scopes: Vec<String>,
    }
}

payload! {
    /// The progress of a tool call, as its handler reported it last. At most 20 a second are told, the last one before
    /// the call ends, and none is stored.
    ///
    /// ```
    /// use goondan::event::ToolProgress;
    /// use goondan::prelude::*;
    ///
    /// /// Logs how far a tool is.
    /// fn log(event: &Event, api: &ExtensionApi) -> Result<()> {
    ///     let ToolProgress { tool_name, done, total, .. } = event.payload()?;
    ///     api.logger().with("tool", tool_name).with("total", total).info(format!("{done} done"));
    ///     Ok(())
    /// }
    /// ```
    ToolProgress = "tool.progress" {
        /// The id of the call.
        tool_call_id: ToolCallId,
        /// The name of the tool.
        tool_name: ToolName,
        /// The amount that is done.
        done: f64,
        /// The whole amount, if it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        total: Option<f64>,
        /// The current work of the call, for people.
        text: String,
    }
}

payload! {
    /// An extension of the instance is about to be cleaned up and dropped.
    ///
    /// ```
    /// use goondan::event::ExtensionCleanup;
    /// use goondan::prelude::*;
    ///
    /// /// Logs that another extension leaves.
    /// fn log(event: &Event, api: &ExtensionApi) -> Result<()> {
    ///     let ExtensionCleanup { extension, .. } = event.payload()?;
    ///     api.logger().info(format!("{extension} leaves"));
    ///     Ok(())
    /// }
    /// ```
    ExtensionCleanup = "extension.cleanup" {
        /// The name of the extension.
        extension: ExtensionName,
    }
}
