//! The port through which agents reach one another.

use goondan_core::{
    AgentEvent, AgentName, BoxFuture, Error, ErrorCode, FilePart, InstanceKey, Part, Result, TurnId, TurnResult,
};

use super::store::InstanceId;
use crate::live::Asker;

/// Delivers events to agents: implement it to reach agents of other programs.
pub trait Router: Send + Sync + 'static {
    /// Runs a turn of the target with the event and returns its reply. The target is opened if it is not running. If
    /// its turn waits for a decision, that fails at once with `AGENT_SUSPENDED`, unless the call waits for that. The
    /// caller enforces the timeout and rejects circles. The same event is delivered again when a turn that was
    /// interrupted asks again: it is answered once.
    ///
    /// When [`AgentCall::cancelled`] completes, the turn of the target ends, and the request with it. If the future is
    /// dropped instead, that turn is left open: the one that waits for it was interrupted, and asks again when it goes
    /// on.
    // D-40
    fn request(&self, call: AgentCall) -> BoxFuture<'_, Result<AgentReply>>;

    /// Delivers the event without waiting for the turn. Returns false when no such agent exists; an error with the code
    /// `AGENT_NOT_FOUND` means the same, and says why.
    fn send(&self, call: AgentCall) -> BoxFuture<'_, Result<bool>>;

    /// Returns the names of the agents that can be reached.
    fn agents(&self) -> Vec<AgentName>;

    /// Deletes the conversations that agents have had for requests of a turn alone, which is over: those whose key
    /// begins with the id of the turn and `/`. By default, nothing is deleted.
    // D-40
    fn forget<'a>(&'a self, turn: &'a TurnId) -> BoxFuture<'a, ()> {
        let _ = turn;
        Box::pin(std::future::ready(()))
    }
}

/// Returns how the keys of conversations begin that agents have for requests of this turn alone.
pub(crate) fn ephemeral_prefix(turn: &TurnId) -> String {
    format!("{turn}/")
}

/// An event for another agent, and its address, for a [`Router`] to deliver.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentCall {
    /// The agent.
    pub target: AgentName,
    /// The instance of the agent.
    pub instance: InstanceKey,
    /// The event.
    pub event: AgentEvent,
    /// Whether a request waits while the turn waits for a decision, however long that takes. Otherwise it fails then
    /// with `AGENT_SUSPENDED`.
    // ASK-01
    pub until_decided: bool,
    /// The turn that waits for the answer. `None` for a notice or a delegation.
    pub(crate) asker: Option<Asker>,
    /// The conversation of the turn that waits for the answer.
    pub(crate) from: Option<InstanceId>,
}

impl AgentCall {
    /// An event for an instance of an agent.
    pub fn new(target: AgentName, instance: InstanceKey, event: AgentEvent) -> Self {
        Self { target, instance, event, until_decided: false, asker: None, from: None }
    }

    /// Lets a request wait while the turn waits for a decision.
    pub(crate) fn until_decided(self) -> Self {
        Self { until_decided: true, ..self }
    }

    /// Waits until the answer is not waited for any more, although the turn that has asked runs on or was cancelled:
    /// the request was one of several whose first answer counts, or its time is over. Never completes for a notice.
    // D-40
    pub fn cancelled(&self) -> impl Future<Output = ()> + Send + 'static {
        let cancelled = self.asker.as_ref().map(Asker::cancelled);
        async {
            match cancelled {
                Some(cancelled) => cancelled.await,
                None => std::future::pending().await,
            }
        }
    }

    /// Returns the instance.
    pub fn instance_id(&self) -> InstanceId {
        InstanceId { agent: self.target.clone(), key: self.instance.clone() }
    }
}

/// The reply of an agent to a request.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AgentReply {
    /// The text of its answer.
    Text(String),
    /// The text of its answer, which may be empty, and the files in it.
    Files {
        /// The text.
        text: String,
        /// The files, without the data of a provider.
        files: Vec<FilePart>,
    },
}

impl From<&TurnResult> for AgentReply {
    fn from(result: &TurnResult) -> Self {
        let text = result.text().into_owned();
        let parts = result.response().map(|message| message.content().parts()).unwrap_or_default();
        let files = parts.iter().filter_map(|part| {
            let Part::File(file) = part else { return None };
            let mut copy = FilePart::new(&*file.media_type, file.url.clone());
            copy.name.clone_from(&file.name);
            Some(copy)
        });
        match files.collect::<Vec<_>>() {
            files if files.is_empty() => Self::Text(text),
            files => Self::Files { text, files },
        }
    }
}

impl AgentReply {
    /// Returns the text and the files of the answer.
    pub(crate) fn into_parts(self) -> (String, Vec<FilePart>) {
        match self {
            Self::Text(text) => (text, Vec::new()),
            Self::Files { text, files } => (text, files),
        }
    }
}

/// The error for a request to `name`, which is not among the `known` agents.
pub(crate) fn not_found(name: impl std::fmt::Display, known: &[AgentName]) -> Error {
    let known: Vec<_> = known.iter().map(AgentName::as_str).collect();
    let known = if known.is_empty() { "no other agent".to_owned() } else { known.join(", ") };
    Error::new(ErrorCode::AGENT_NOT_FOUND, format!("there is no agent `{name}`"))
        .suggest(format!("reachable are: {known}"))
}
