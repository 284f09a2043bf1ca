//! The `Store` trait, through which the runtime persists conversations.

mod instance_id;
mod interrupted;
mod listed;
mod outcome;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use goondan_core::{
    AgentEvent, BoxFuture, Conversation, Decision, Error, ErrorCode, EventId, ExtensionName, Message, MessageEvent,
    Result, RuntimeEvent, ToolCallId, TurnId, TurnInfo, Wait,
};
use serde_json::Value;

pub use instance_id::InstanceId;
pub use interrupted::{AskedAgain, EmittedBy, Facts, Interrupted, JoinedEvent, Reached, TurnRecord};
pub use listed::{InstancePage, InstanceQuery, InstanceStatus, StoredInstance};
pub use outcome::{EndedTurn, EventDigest, TurnOutcome};

/// Persists instances. Implement it to keep them elsewhere than in files or memory.
pub trait Store: Send + Sync + 'static {
    /// Opens an instance, and creates it if it does not exist. Until the returned journal is dropped, no other caller
    /// can open it.
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>>;

    /// Returns a page of the instances that it keeps, without opening one.
    ///
    /// # Errors
    /// When they cannot be read; `E_STORE_UNSUPPORTED` by default.
    fn list<'a>(&'a self, query: &'a InstanceQuery) -> BoxFuture<'a, Result<InstancePage>> {
        let _ = query;
        unsupported("instances cannot be listed")
    }

    /// Deletes an instance for good. Returns false if there is none.
    ///
    /// # Errors
    /// `E_STORE_LOCKED` when it is open, or when it cannot be deleted; `E_STORE_UNSUPPORTED` by default.
    fn delete<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<bool>> {
        let _ = instance;
        unsupported("instances cannot be deleted")
    }

    /// Returns the messages of an instance, oldest first, without opening it: those of the turns that have ended, and
    /// perhaps some of one that has not. `None` if there is no such instance.
    ///
    /// # Errors
    /// When they cannot be read; `E_STORE_UNSUPPORTED` by default.
    fn messages<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Option<Vec<Arc<Message>>>>> {
        let _ = instance;
        unsupported("messages cannot be read without opening an instance")
    }

    /// Returns how the turn ended that answered `event`, without opening the instance; see [`Journal::outcome`]. `None`
    /// also if there is no such instance.
    ///
    /// # Errors
    /// When it cannot be read; `E_STORE_UNSUPPORTED` by default.
    // ONCE-01
    fn outcome<'a>(&'a self, instance: &'a InstanceId, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        let _ = (instance, event);
        unsupported("outcomes of turns cannot be read")
    }

    /// Returns the id of the workspace whose instances this store keeps, if it has workspaces.
    fn workspace(&self) -> Option<&str> {
        None
    }

    /// Returns the directories in which conversations, files of extensions and agreements of people are kept.
    /// Tools do not write there for a model, other than in working directories.
    // TREE-01
    fn directories(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Makes, unless it exists, and returns the directory in which `extension` keeps files that its conversations
    /// share. The default is a store without directories.
    ///
    /// # Errors
    /// When it cannot be made, and `E_STORE_UNSUPPORTED` in a store without directories.
    fn extension_dir(&self, extension: &ExtensionName) -> Result<PathBuf> {
        Err(without_directories(&format!("the extension `{extension}` has no directory")))
    }

    /// Returns the value that the conversations of `extension` share, `None` if it was never set. It waits for no
    /// change. The default is a store without directories.
    ///
    /// # Errors
    /// When it cannot be read, and `E_STORE_UNSUPPORTED` in a store without directories.
    // D-42
    fn shared_state(&self, extension: &ExtensionName) -> Result<Option<Value>> {
        Err(no_shared_state(extension))
    }

    /// Replaces that value by the value that `change` returns for it, while all other changes of it wait, also those
    /// of other processes. After a crash it is the old one or the new one. The caller makes no other change inside of
    /// `change`.
    ///
    /// # Errors
    /// The error of `change`, when the value cannot be read or written, and `E_STORE_UNSUPPORTED` in a store without
    /// directories.
    // D-42
    fn update_shared_state(
        &self,
        extension: &ExtensionName,
        _change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        Err(no_shared_state(extension))
    }
}

/// Returns the error for a store that has no directories; `what` is the missing thing.
pub(crate) fn without_directories(what: &str) -> Error {
    Error::new(ErrorCode::STORE_UNSUPPORTED, format!("{what}: conversations are not kept below a state root"))
        .suggest("give the agent a `FileStore`, or in tests `MemoryStore::with_directories`")
}

/// Fails because a store does not have something.
fn unsupported<T: Send + 'static>(what: &str) -> BoxFuture<'static, Result<T>> {
    let error =
        Error::new(ErrorCode::STORE_UNSUPPORTED, format!("{what}: the store of this program does not support it"))
            .suggest("add the member of the trait `Store` to it, or use a store that has it");
    Box::pin(std::future::ready(Err(error)))
}

fn no_shared_state(extension: &ExtensionName) -> Error {
    without_directories(&format!("the extension `{extension}` has no shared state"))
}

/// An instance as the store returns it when it is opened.
#[non_exhaustive]
pub struct Opened {
    /// The messages after the last committed turn, oldest first.
    pub base: Vec<Arc<Message>>,
    /// The turn that was open when the instance was closed or the last process ended, if any. The journal continues
    /// this turn: the runtime goes on with it, or closes and commits it, before another one begins.
    pub interrupted: Option<Interrupted>,
    /// The committed state of the extensions.
    pub state: BTreeMap<ExtensionName, Value>,
    /// The newest turn that answered an event, if there is one. A crash may have come right after its commit: if it
    /// took others back, extensions are told, and the runtime does what a commit that [`forgets`](Commit::forgets)
    /// leaves to do.
    // BACK-01, D-40
    pub newest: Option<EndedTurn>,
    /// The instance's working directory, for tools that work on files. The runtime creates it when a tool first needs
    /// it.
    pub workdir: PathBuf,
    /// Records everything after that. Dropping it closes the instance.
    pub journal: Box<dyn Journal>,
}

impl Opened {
    /// An instance without messages or state.
    pub fn new(workdir: PathBuf, journal: Box<dyn Journal>) -> Self {
        let (base, state) = Default::default();
        Self { base, interrupted: None, state, newest: None, workdir, journal }
    }
}

/// A turn that begins.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct TurnStart<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// The event that it answers. `None` for a turn that only stores state.
    pub event: Option<&'a AgentEvent>,
    /// The digest of the event.
    pub digest: Option<EventDigest>,
    /// The same as the layers of the turn see it, so that the event is kept without a copy.
    pub(crate) info: Option<&'a Arc<TurnInfo>>,
}

impl<'a> TurnStart<'a> {
    /// The start of `turn`.
    pub fn new(turn: &'a TurnId) -> Self {
        Self { turn, event: None, digest: None, info: None }
    }

    /// The start of a turn of the runtime.
    pub(crate) fn of(info: &'a Arc<TurnInfo>, digest: EventDigest) -> Self {
        Self { info: Some(info), ..Self::new(&info.turn).event(&info.input, digest) }
    }

    /// Sets the event that the turn answers.
    #[must_use]
    pub fn event(mut self, event: &'a AgentEvent, digest: EventDigest) -> Self {
        (self.event, self.digest) = (Some(event), Some(digest));
        self
    }
}

/// The write side of one open instance. A turn is one `begin`, any number of records and flushes, and one `commit`.
/// A turn that is not committed when the journal is dropped is returned by the next opening.
///
/// An error with the code `E_STORE_UNAVAILABLE` says that the store cannot be reached now. No model reads it and no
/// turn ends by it: the turn stays open, and the caller runs its event again.
pub trait Journal: Send + Sync {
    /// Starts a turn.
    ///
    /// # Errors
    /// When the store cannot record it.
    fn begin(&mut self, turn: TurnStart<'_>) -> Result<()>;

    /// Records a message event of the running turn, and who emitted it if it was a layer. It may stay in memory until
    /// the next [`Journal::flush`].
    ///
    /// # Errors
    /// When the store cannot record it.
    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()>;

    /// Records that a call of the running turn that must not run twice starts now. After a crash, the next opening
    /// can then tell it from a call that never started. Like an event, the record may stay in memory until the next
    /// flush; the runtime flushes before the handler runs.
    ///
    /// # Errors
    /// When the store cannot record it.
    // EFFECT-01
    fn start_call(&mut self, call: &ToolCallId) -> Result<()>;

    /// Records something that the running turn has reached. Like an event, it may stay in memory until the next flush.
    ///
    /// # Errors
    /// When the store cannot record it.
    // RESUME-01
    fn reached(&mut self, what: &Reached) -> Result<()>;

    /// Records state that extensions have set in the running turn. It belongs to the next record that is a fact (see
    /// [`Facts`]), and is dropped with all that comes before that one if there is none.
    ///
    /// # Errors
    /// When the store cannot record it.
    // RESUME-01
    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()>;

    /// Records that the open turn goes on with its first `keep` message events; the others are taken back.
    ///
    /// # Errors
    /// When the store cannot record it.
    // RESUME-01
    fn resume(&mut self, keep: usize) -> Result<()>;

    /// Records that the open turn does not run: which calls wait for a decision, unless there are none, and the state
    /// that has changed meanwhile, which counts at once. It is called again when more state changes. Like a commit, it
    /// survives whatever happens to the machine. A call whose handler has asked
    /// [withdraws](goondan_core::Wait::withdrawn) its start, as [`Interrupted::add`] does.
    ///
    /// # Errors
    /// When it is not stored.
    // RESUME-01
    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>>;

    /// Records decisions about calls that wait. Like an event, it may stay in memory until the next flush; the
    /// runtime syncs it before one of them runs.
    ///
    /// # Errors
    /// When the store cannot record it.
    fn decide(&mut self, decisions: &[Decision]) -> Result<()>;

    /// Returns how the turn ended that answered `event`, if it is one of the newest 256 at least. Most often none did:
    /// it is asked before each turn.
    ///
    /// # Errors
    /// When the store cannot be read.
    // ONCE-01
    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>>;

    /// Writes everything recorded so far, at least as durably as `durability` says.
    ///
    /// # Errors
    /// When the store cannot write it.
    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>>;

    /// Ends the turn. The conversation is not folded yet.
    ///
    /// After success, the messages of the turn and the changed state survive whatever happens to the machine.
    ///
    /// # Errors
    /// When the turn is not committed. None of its messages and state is stored then and the commit can be tried again,
    /// unless the error says that the instance must be opened again to find out.
    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>>;

    /// Gives the instance back, so that another caller can open it. A journal that is dropped instead may keep it until
    /// its lock or lease ends.
    ///
    /// # Errors
    /// When something that was recorded could not be written.
    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        drop(self);
        Box::pin(std::future::ready(Ok(())))
    }

    /// Returns a future that ends when the instance does not belong to this journal any more, because another process
    /// has taken it over. The turn that runs then ends with `E_STORE_LOST`, and nothing more is written. It is asked
    /// for each turn. It only saves work: that a journal that has lost its instance writes nothing is for the store to
    /// see to.
    fn lost(&self) -> Option<BoxFuture<'static, ()>> {
        None
    }

    /// Whether [`Journal::note`] stores anything. If not, the runtime renders no events for it.
    fn keeps_runtime_events(&self) -> bool {
        false
    }

    /// Stores runtime events for observers. If they are lost, the conversation is still complete.
    ///
    /// # Errors
    /// When they cannot be stored; the runtime reports it and continues.
    // F-EVENTS
    fn note(&mut self, _events: &[RuntimeEvent]) -> Result<()> {
        Ok(())
    }
}

/// The durability of records after a [`Journal::flush`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// With the operating system: survives a crash of the process. Required before the model sees a record.
    Flushed,
    /// On the disk: survives a crash of the machine too. Required before a tool acts on the world.
    Synced,
}

/// The result of a turn, to be committed.
#[non_exhaustive]
pub struct Commit<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// The conversation with the events of the turn, not yet folded.
    pub conversation: &'a Conversation,
    /// The new state of the extensions that changed theirs.
    pub state: &'a BTreeMap<ExtensionName, Value>,
    /// The outcome of the turn. `None` for a turn that only stores state: the outcome of the turn before it stays.
    pub outcome: Option<&'a TurnOutcome>,
    /// The digest of the event that the turn answered, if it is known.
    pub digest: Option<EventDigest>,
    /// Further events that the turn answered: their inputs joined it while it ran.
    pub joined: &'a [JoinedEvent],
    /// Whether other agents may have had conversations for requests of this turn alone. They are deleted when the turn
    /// is committed, or when the instance is opened the next time.
    // D-40
    pub forgets: bool,
}

impl<'a> Commit<'a> {
    /// The commit of `turn`, with the state that changed.
    pub fn new(turn: &'a TurnId, conversation: &'a Conversation, state: &'a BTreeMap<ExtensionName, Value>) -> Self {
        Self { turn, conversation, state, outcome: None, digest: None, joined: &[], forgets: false }
    }

    /// Sets how the turn ended.
    #[must_use]
    pub fn outcome(mut self, outcome: &'a TurnOutcome, digest: Option<EventDigest>) -> Self {
        (self.outcome, self.digest) = (Some(outcome), digest);
        self
    }

    /// Sets further events that the turn answered.
    // STEER-01
    #[must_use]
    pub fn joined(mut self, joined: &'a [JoinedEvent]) -> Self {
        self.joined = joined;
        self
    }

    /// Sets that other agents may have had conversations for requests of this turn alone.
    // D-40
    #[must_use]
    pub fn forgets(self, forgets: bool) -> Self {
        Self { forgets, ..self }
    }

    /// Returns how the turn ended, for [`Journal::outcome`]: once for each event that it answered.
    pub fn ended(&self) -> impl Iterator<Item = EndedTurn> {
        let of = |digest, outcome| EndedTurn::new(self.turn.clone(), digest, outcome).forgets(self.forgets);
        let own = self.outcome.map(|outcome| of(self.digest, outcome.clone()));
        let joined = self.outcome.into_iter().flat_map(move |outcome| {
            self.joined.iter().map(move |joined| of(Some(joined.digest), outcome.of(joined.event.clone())))
        });
        own.into_iter().chain(joined)
    }
}

/// A turn that is open and does not run.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Suspend<'a> {
    /// The turn.
    pub turn: &'a TurnId,
    /// The calls that wait for a decision. If there are none, those stay that were recorded before.
    pub waits: &'a [Wait],
    /// The new state of the extensions that changed theirs.
    pub state: &'a BTreeMap<ExtensionName, Value>,
}

impl<'a> Suspend<'a> {
    /// The turn `turn`, with the state that changed.
    pub fn new(turn: &'a TurnId, state: &'a BTreeMap<ExtensionName, Value>) -> Self {
        Self { turn, waits: &[], state }
    }

    /// Sets the calls that wait for a decision.
    #[must_use]
    pub fn waits(mut self, waits: &'a [Wait]) -> Self {
        self.waits = waits;
        self
    }
}

impl<S: Store + ?Sized> Store for Arc<S> {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        (**self).open(instance)
    }

    fn list<'a>(&'a self, query: &'a InstanceQuery) -> BoxFuture<'a, Result<InstancePage>> {
        (**self).list(query)
    }

    fn delete<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<bool>> {
        (**self).delete(instance)
    }

    fn messages<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Option<Vec<Arc<Message>>>>> {
        (**self).messages(instance)
    }

    fn outcome<'a>(&'a self, instance: &'a InstanceId, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        (**self).outcome(instance, event)
    }

    fn workspace(&self) -> Option<&str> {
        (**self).workspace()
    }

    fn directories(&self) -> Vec<PathBuf> {
        (**self).directories()
    }

    fn extension_dir(&self, extension: &ExtensionName) -> Result<PathBuf> {
        (**self).extension_dir(extension)
    }

    fn shared_state(&self, extension: &ExtensionName) -> Result<Option<Value>> {
        (**self).shared_state(extension)
    }

    fn update_shared_state(
        &self,
        extension: &ExtensionName,
        change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        (**self).update_shared_state(extension, change)
    }
}
