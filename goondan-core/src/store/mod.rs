//! Owns the port to persistence: what the runtime asks of a store, and the stores that come with it.

mod file;
mod memory;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use crate::BoxFuture;
use crate::conversation::{Conversation, Message, MessageEvent};
use crate::error::Result;
use crate::event::RuntimeEvent;
use crate::name::{AgentName, ExtensionName, InstanceKey, ToolCallId, TurnId};

#[doc(hidden)]
pub use file::{Disk, DiskFile, How, RealDisk};
pub use file::{FileStore, Fsync, StoredConversation, StoredFault, StoredInstance, state_root, workspace_id};
pub use memory::MemoryStore;

/// One conversation of one agent (D-05).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct InstanceId {
    /// The agent.
    pub agent: AgentName,
    /// Which of its conversations.
    pub key: InstanceKey,
}

impl fmt::Display for InstanceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.agent, self.key)
    }
}

/// Keeps instances: implement it to keep them elsewhere than in files or memory.
pub trait Store: Send + Sync + 'static {
    /// Opens an instance, and makes it if it does not exist. Until the journal that is returned is dropped nobody else
    /// can open it.
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>>;
}

/// An instance as the store had it.
pub struct Opened {
    /// The messages after the last committed turn, oldest first.
    pub base: Vec<Arc<Message>>,
    /// The turn that was running when the last process ended. The journal goes on with this turn: the runtime closes it
    /// and commits it before anything else.
    pub interrupted: Option<Interrupted>,
    /// The committed state of the extensions.
    pub state: BTreeMap<ExtensionName, Value>,
    /// The directory that belongs to the instance, for tools that work on files. The runtime makes it when one asks.
    pub workdir: PathBuf,
    /// Takes in what happens from now on.
    pub journal: Box<dyn Journal>,
}

/// A turn that did not come to its commit.
#[derive(Debug, PartialEq)]
pub struct Interrupted {
    /// The turn.
    pub turn: TurnId,
    /// The events that it had recorded.
    pub events: Vec<MessageEvent>,
    /// The calls that it had noted by [`Journal::start_call`].
    pub started: Vec<ToolCallId>,
}

/// Takes in what happens to one instance. A turn is `begin`, any number of `record` and `flush`, and `commit`.
pub trait Journal: Send + Sync {
    /// Starts a turn.
    ///
    /// # Errors
    /// When the store cannot take it in.
    fn begin(&mut self, turn: &TurnId) -> Result<()>;

    /// Notes an event of the running turn. It may stay in memory until the next [`Journal::flush`].
    ///
    /// # Errors
    /// When the store cannot take it in.
    fn record(&mut self, event: &MessageEvent) -> Result<()>;

    /// Notes that a call of the running turn starts now that must not run twice (EFFECT-01), so that an opening after a
    /// crash can tell it from one that never started. Like an event it may stay in memory until the next flush; the runtime
    /// flushes before the handler runs.
    ///
    /// # Errors
    /// When the store cannot take it in.
    fn start_call(&mut self, call: &ToolCallId) -> Result<()>;

    /// Writes everything recorded so far, at least as durably as `durability` says.
    ///
    /// # Errors
    /// When the store cannot write it.
    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>>;

    /// Ends the turn: after a success, its messages and the changed state are there whatever happens to the machine; after
    /// a failure none of them is, and the commit can be tried again, unless the error says that only opening the instance
    /// anew can tell. The conversation is not folded yet.
    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>>;

    /// Whether [`Journal::note`] does something: if not, nobody renders events for it.
    fn keeps_runtime_events(&self) -> bool {
        false
    }

    /// Keeps runtime events for those who watch (F-EVENTS). Losing them loses nothing of the conversation.
    ///
    /// # Errors
    /// When they cannot be kept; the runtime reports it and goes on.
    fn note(&mut self, _events: &[RuntimeEvent]) -> Result<()> {
        Ok(())
    }
}

/// How durable records are after a [`Journal::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// With the operating system: survives a crash of the process. Required before the model sees a record.
    Flushed,
    /// On the disk: survives a crash of the machine too. Required before a tool acts on the world.
    Synced,
}

/// What a turn leaves behind.
pub struct Commit<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// The conversation with the events of the turn, not yet folded.
    pub conversation: &'a Conversation,
    /// The state of the extensions that changed theirs.
    pub state: &'a BTreeMap<ExtensionName, Value>,
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        (**self).open(instance)
    }
}
