//! In-memory store: instances live as long as the store.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use goondan_core::host::IdMap;
use goondan_core::{
    BoxFuture, Conversation, Decision, Error, ErrorCode, EventId, ExtensionName, Message, MessageEvent, Result,
    Timestamp, ToolCallId, TurnId, TurnInfo,
};
use goondan_lock::Lock;
use serde_json::Value;

use crate::ports::store::{
    Commit, Durability, EmittedBy, EndedTurn, EventDigest, InstanceId, InstancePage, InstanceQuery, InstanceStatus,
    Interrupted, Journal, Opened, Reached, Store, StoredInstance, Suspend, TurnRecord, TurnStart, without_directories,
};
use crate::state::{StateCell, States};

/// Keeps instances in memory, for tests and for programs that need no history. The default store of an agent.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    instances: Arc<Lock<IdMap<InstanceId, MemoryInstance>>>,
    /// The working directories of tools, created when a tool first needs one.
    workdirs: Arc<Workdirs>,
    /// The state that the conversations of each extension share.
    shared: Arc<States>,
    /// Whether extensions get directories.
    with_directories: bool,
}

/// The parent of the working directories, and of those of extensions. Removed when the last clone of the store is
/// dropped.
#[derive(Debug)]
struct Workdirs(PathBuf);

impl Default for Workdirs {
    fn default() -> Self {
        Self(std::env::temp_dir().join(format!("goondan-{}-{:016x}", std::process::id(), fastrand::u64(..))))
    }
}

impl Drop for Workdirs {
    fn drop(&mut self) {
        // Most often no tool created one. A directory that cannot be removed is left to the system's cleaning of
        // temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A stored instance.
#[derive(Debug)]
struct MemoryInstance {
    created_at: Timestamp,
    updated_at: Timestamp,
    /// The committed messages before `since`.
    base: Vec<Arc<Message>>,
    /// The events of later turns. They are applied when the instance is opened, so that a commit is as cheap as
    /// possible.
    since: Vec<MessageEvent>,
    state: BTreeMap<ExtensionName, Value>,
    /// The turn that was not committed when the instance was closed.
    interrupted: Option<Interrupted>,
    ended: EndedTurns,
    open: bool,
}

/// The newest turns that answered an event.
#[derive(Debug, Default)]
struct EndedTurns {
    by_event: IdMap<EventId, EndedTurn>,
    /// The events, oldest first.
    order: VecDeque<EventId>,
}

/// The most of them that are kept.
// ONCE-01
const ENDED_TURNS: usize = 256;

impl EndedTurns {
    fn add(&mut self, turn: EndedTurn) {
        let Some(event) = turn.outcome.event().cloned() else { return };
        let gone = turn.outcome.taken_back();
        if !gone.is_empty() {
            self.by_event.values_mut().for_each(|ended| ended.rewind(gone));
        }
        if self.by_event.insert(event.clone(), turn).is_none() {
            if self.order.len() == ENDED_TURNS
                && let Some(oldest) = self.order.pop_front()
            {
                self.by_event.remove(&oldest);
            }
            self.order.push_back(event);
        }
    }
}

impl EndedTurns {
    fn newest(&self) -> Option<&EndedTurn> {
        self.by_event.get(self.order.back()?)
    }
}

impl MemoryInstance {
    fn new() -> Self {
        let now = Timestamp::now();
        Self {
            created_at: now,
            updated_at: now,
            base: Vec::new(),
            since: Vec::new(),
            state: BTreeMap::new(),
            interrupted: None,
            ended: EndedTurns::default(),
            open: false,
        }
    }

    fn status(&self) -> InstanceStatus {
        match &self.interrupted {
            _ if self.open => InstanceStatus::Open,
            Some(turn) if turn.facts.undecided().next().is_some() => InstanceStatus::Suspended,
            Some(_) => InstanceStatus::Interrupted,
            None => InstanceStatus::Idle,
        }
    }

    /// Stores the messages of a turn. Once there would be more events than messages, replaces the base instead: that
    /// costs no more than the events did.
    fn commit(&mut self, conversation: &Conversation) {
        let events = conversation.events();
        if self.since.len() + events.len() <= conversation.len() {
            self.since.extend_from_slice(events);
        } else {
            self.since.clear();
            self.base.clear();
            self.base.extend(conversation.messages().cloned());
        }
    }

    /// Returns the committed messages, oldest first.
    fn messages(&self) -> Result<Vec<Arc<Message>>> {
        let (mut conversation, _) = Conversation::from_base(self.base.iter().cloned());
        for event in &self.since {
            conversation.apply(event.clone())?;
        }
        Ok(conversation.messages().cloned().collect())
    }
}

impl MemoryStore {
    /// Returns an empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives extensions directories for their files ([`InitContext::state_dir`](goondan_core::InitContext::state_dir))
    /// and shared state ([`InitContext::shared_state`](goondan_core::InitContext::shared_state)). They are temporary:
    /// removed with the store, as everything in it. Without this, asking for them is an error.
    #[must_use]
    pub fn with_directories(mut self) -> Self {
        self.with_directories = true;
        self
    }

    fn with<T>(&self, instance: &InstanceId, change: impl FnOnce(&mut MemoryInstance) -> T) -> T {
        let mut instances = self.instances.lock();
        change(instances.entry(instance.clone()).or_insert_with(MemoryInstance::new))
    }

    /// Returns the shared state of `extension`.
    fn shared(&self, extension: &ExtensionName) -> Result<Arc<StateCell>> {
        if self.with_directories {
            Ok(self.shared.of(extension))
        } else {
            Err(without_directories(&format!("the extension `{extension}` has no shared state")))
        }
    }
}

impl Store for MemoryStore {
    fn extension_dir(&self, extension: &ExtensionName) -> Result<PathBuf> {
        if !self.with_directories {
            return Err(without_directories(&format!("the extension `{extension}` has no directory")));
        }
        let dir = self.workdirs.0.join("extensions").join(extension.as_str());
        private_dirs(&dir).map_err(|error| {
            let message = format!("{} cannot be made: {error}", dir.display());
            Error::new(ErrorCode::STORE_IO, message).suggest("make sure that temporary files can be written")
        })?;
        Ok(dir)
    }

    fn shared_state(&self, extension: &ExtensionName) -> Result<Option<Value>> {
        Ok(self.shared(extension)?.get())
    }

    fn update_shared_state(
        &self,
        extension: &ExtensionName,
        change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        self.shared(extension)?.update(extension, change)
    }

    fn list<'a>(&'a self, query: &'a InstanceQuery) -> BoxFuture<'a, Result<InstancePage>> {
        let instances = self.instances.lock();
        let listed =
            instances.iter().map(|(id, stored)| StoredInstance::new(id.clone(), stored.created_at, stored.updated_at));
        let status = |id: &InstanceId| instances.get(id).map_or(InstanceStatus::Idle, MemoryInstance::status);
        let page = query.page(listed, status);
        Box::pin(std::future::ready(Ok(page)))
    }

    fn delete<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<bool>> {
        let mut instances = self.instances.lock();
        let deleted = match instances.get(instance) {
            Some(stored) if stored.open => Err(is_open(instance)),
            _ => Ok(instances.remove(instance).is_some()),
        };
        Box::pin(std::future::ready(deleted))
    }

    fn messages<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Option<Vec<Arc<Message>>>>> {
        let messages = self.instances.lock().get(instance).map(MemoryInstance::messages).transpose();
        Box::pin(std::future::ready(messages))
    }

    fn outcome<'a>(&'a self, instance: &'a InstanceId, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        let instances = self.instances.lock();
        let ended = instances.get(instance).and_then(|stored| stored.ended.by_event.get(event).cloned());
        Box::pin(std::future::ready(Ok(ended)))
    }

    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            self.with(instance, |stored| {
                if stored.open {
                    return Err(is_open(instance));
                }
                let workdir = self.workdirs.0.join(instance.directory_name());
                let base = stored.messages()?;
                let interrupted = stored.interrupted.take();
                let turn = interrupted.clone().map(|turn| OpenTurn::Found(Box::new(turn)));
                let (store, instance) = (self.clone(), instance.clone());
                let journal = Box::new(MemoryJournal { store, instance, turn, records: Vec::new() });
                stored.open = true;
                let (state, newest) = (stored.state.clone(), stored.ended.newest().cloned());
                Ok(Opened { base, interrupted, state, newest, workdir, journal })
            })
        })
    }
}

fn is_open(instance: &InstanceId) -> Error {
    Error::new(ErrorCode::STORE_LOCKED, format!("the instance `{instance}` is open already"))
        .suggest("drop the other handle first")
}

/// Makes a directory and its parents, for their owner alone.
fn private_dirs(dir: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.recursive(true).create(dir)
}

/// A future that is ready with `Ok(())`. It has no size, so boxing it does not allocate.
struct ReadyOk;

impl Future for ReadyOk {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// A future that is ready with `Ok(None)`, and has no size either.
struct NotEnded;

impl Future for NotEnded {
    type Output = Result<Option<EndedTurn>>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        Poll::Ready(Ok(None))
    }
}

struct MemoryJournal {
    store: MemoryStore,
    instance: InstanceId,
    turn: Option<OpenTurn>,
    /// The records of the open turn by this journal.
    records: Vec<TurnRecord>,
}

/// The turn that is open.
enum OpenTurn {
    Begun {
        turn: TurnId,
        event: Option<EventId>,
        digest: Option<EventDigest>,
        info: Option<Arc<TurnInfo>>,
    },
    /// It was open when the instance was opened.
    Found(Box<Interrupted>),
}

impl OpenTurn {
    /// Returns the record of the turn. Its facts are found here only, because most turns are committed.
    fn interrupted(self, records: impl Iterator<Item = TurnRecord>) -> Interrupted {
        let mut interrupted = match self {
            Self::Begun { turn, event, digest, info } => {
                let input = info.map(|info| info.input.clone());
                Interrupted { event, input, digest, ..Interrupted::new(turn) }
            }
            Self::Found(interrupted) => *interrupted,
        };
        records.for_each(|record| interrupted.add(record));
        interrupted
    }
}

impl Journal for MemoryJournal {
    fn begin(&mut self, start: TurnStart<'_>) -> Result<()> {
        let TurnStart { turn, event, digest, info } = start;
        let event = event.map(|event| event.id.clone());
        self.turn = Some(OpenTurn::Begun { turn: turn.clone(), event, digest, info: info.cloned() });
        Ok(())
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.records.push(TurnRecord::Event(event.clone(), by.cloned()));
        Ok(())
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.records.push(TurnRecord::Started(call.clone()));
        Ok(())
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.records.push(TurnRecord::Reached(what.clone()));
        Ok(())
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.records.push(TurnRecord::State(state.clone()));
        Ok(())
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        self.records.push(TurnRecord::Resumed(keep));
        Ok(())
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        self.records.push(TurnRecord::Suspended(turn.waits.to_vec(), turn.state.clone()));
        Box::pin(ReadyOk)
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        self.records.extend(decisions.iter().cloned().map(|decision| TurnRecord::Decided(Box::new(decision))));
        Ok(())
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        match self.store.with(&self.instance, |stored| stored.ended.by_event.get(event).cloned()) {
            Some(ended) => Box::pin(std::future::ready(Ok(Some(ended)))),
            None => Box::pin(NotEnded),
        }
    }

    fn flush(&mut self, _: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(ReadyOk)
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        self.store.with(&self.instance, |stored| {
            stored.updated_at = Timestamp::now();
            stored.commit(turn.conversation);
            stored.state.extend(turn.state.iter().map(|(name, value)| (name.clone(), value.clone())));
            turn.ended().for_each(|ended| stored.ended.add(ended));
        });
        self.turn = None;
        self.records.clear();
        Box::pin(ReadyOk)
    }
}

impl Drop for MemoryJournal {
    fn drop(&mut self) {
        let interrupted = self.turn.take().map(|turn| turn.interrupted(self.records.drain(..)));
        self.store.with(&self.instance, |stored| {
            stored.interrupted = interrupted;
            stored.open = false;
        });
    }
}
