//! Owns the store that forgets: instances live as long as the program.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use serde_json::Value;

use super::{Commit, Durability, InstanceId, Journal, Opened, Store};
use crate::BoxFuture;
use crate::conversation::{Conversation, Message, MessageEvent};
use crate::error::{Error, ErrorCode, Result};
use crate::name::{ExtensionName, ToolCallId, TurnId};

/// Keeps instances in memory: for tests, and for programs that need no history. The default of an agent.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore {
    instances: Arc<Mutex<HashMap<InstanceId, Kept>>>,
    /// Where tools work on files; made when one does.
    workdirs: Arc<Workdirs>,
}

/// The directory below which the work directories lie; it goes away with the store.
#[derive(Debug)]
struct Workdirs(PathBuf);

impl Default for Workdirs {
    fn default() -> Self {
        Self(std::env::temp_dir().join(format!("goondan-{}-{:016x}", std::process::id(), fastrand::u64(..))))
    }
}

impl Drop for Workdirs {
    fn drop(&mut self) {
        // Most often no tool made one; what cannot be removed is left to the system's own cleaning.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[derive(Debug, Default)]
struct Kept {
    /// The committed messages, as they were before `since`.
    base: Vec<Arc<Message>>,
    /// What later turns changed. Applied by whoever opens the instance, so that a commit costs as little as it can.
    since: Vec<MessageEvent>,
    state: BTreeMap<ExtensionName, Value>,
    open: bool,
}

impl Kept {
    /// Takes in the messages of a turn. Once the events are as many as the messages, these are written down anew: that costs
    /// no more than each of the events did.
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

    /// The committed messages, oldest first.
    fn messages(&self) -> Result<Vec<Arc<Message>>> {
        let (mut conversation, _) = Conversation::from_base(self.base.iter().cloned());
        for event in &self.since {
            conversation.apply(event.clone())?;
        }
        Ok(conversation.messages().cloned().collect())
    }
}

impl MemoryStore {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    fn with<T>(&self, instance: &InstanceId, change: impl FnOnce(&mut Kept) -> T) -> T {
        let mut instances = self.instances.lock().unwrap_or_else(PoisonError::into_inner);
        change(instances.entry(instance.clone()).or_default())
    }
}

impl Store for MemoryStore {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            self.with(instance, |kept| {
                if kept.open {
                    return Err(Error::new(
                        ErrorCode::STORE_LOCKED,
                        format!("the instance `{instance}` is open already"),
                    )
                    .suggest("drop the other handle first"));
                }
                let workdir = self.workdirs.0.join(super::file::directory_name(&instance.to_string()));
                let journal = Box::new(MemoryJournal { store: self.clone(), instance: instance.clone() });
                let base = kept.messages()?;
                kept.open = true;
                Ok(Opened { base, interrupted: None, state: kept.state.clone(), workdir, journal })
            })
        })
    }
}

/// What succeeded already. A box of it holds nothing, and so is not allocated.
struct Done;

impl Future for Done {
    type Output = Result<()>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Result<()>> {
        Poll::Ready(Ok(()))
    }
}

struct MemoryJournal {
    store: MemoryStore,
    instance: InstanceId,
}

impl Journal for MemoryJournal {
    fn begin(&mut self, _: &TurnId) -> Result<()> {
        Ok(())
    }

    fn record(&mut self, _: &MessageEvent) -> Result<()> {
        Ok(())
    }

    fn start_call(&mut self, _: &ToolCallId) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self, _: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(Done)
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        self.store.with(&self.instance, |kept| {
            kept.commit(turn.conversation);
            kept.state.extend(turn.state.iter().map(|(name, value)| (name.clone(), value.clone())));
        });
        Box::pin(Done)
    }
}

impl Drop for MemoryJournal {
    fn drop(&mut self) {
        self.store.with(&self.instance, |kept| kept.open = false);
    }
}
