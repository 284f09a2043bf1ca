//! A store that is interrupted at one of its writes: the turn never comes further, or the store says that it is away.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use goondan::conversation::{Message, MessageEvent};
use goondan::decision::Decision;
use goondan::event::RuntimeEvent;
use goondan::name::{EventId, ExtensionName, ToolCallId};
use goondan::store::{
    Commit, Durability, EmittedBy, EndedTurn, InstanceId, InstancePage, InstanceQuery, Journal, Opened, Reached, Store,
    Suspend, TurnRecord, TurnStart,
};
use goondan::{BoxFuture, Error, ErrorCode, Result, Value};
use goondan_lock::Lock;
use tokio::sync::Notify;

/// How a write is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Break {
    /// It never returns, and has written nothing.
    Before,
    /// It never returns, and has written everything.
    After,
    /// It fails because the store is away, and has written nothing.
    Away,
    /// It fails because the store is away, and has written everything.
    AwayAfter,
    /// It never returns, and what was recorded since the write before it is lost, as when a machine stops. The turn can
    /// go on only after a new opening.
    Lost,
}

/// A mistake of a store that returns an open turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Its last fact counts an event that came after it, or the last event is there twice.
    OneTooMany,
    /// The last event that belongs to a fact is missing.
    OneTooFew,
}

/// Where it is interrupted: the numbers of the writes, from 1, which are counted on.
#[derive(Debug, Default)]
pub struct Plan {
    breaks: Vec<(usize, Break)>,
    /// Whether every call of a journal counts, also one that waits for nothing, and every opening.
    is_of_calls: bool,
    writes: AtomicUsize,
    /// Whether the instance is being closed. A closing runs to its end even if its caller is dropped, so a write of it
    /// that is interrupted fails instead of never returning.
    is_closing: AtomicBool,
    /// Notified when a write never returns.
    broken: Notify,
    /// Notified when another process takes the instance over.
    lost: Notify,
    /// If only the writes of one instance count at a time: that one.
    watched: Option<Lock<Option<String>>>,
    fault: Option<Fault>,
}

/// While it lives, the writes of one instance count.
pub struct Watched<'a>(&'a Plan);

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        self.0.set_watched(None);
    }
}

impl Plan {
    /// Returns a plan that interrupts the writes with these numbers.
    pub fn new(breaks: impl IntoIterator<Item = (usize, Break)>) -> Arc<Self> {
        Arc::new(Self { breaks: breaks.into_iter().collect(), ..Self::default() })
    }

    /// A plan in which every call of a journal counts. One that waits for nothing is interrupted by [`Break::Away`] only.
    pub fn of_calls(breaks: impl IntoIterator<Item = (usize, Break)>) -> Arc<Self> {
        Arc::new(Self { breaks: breaks.into_iter().collect(), is_of_calls: true, ..Self::default() })
    }

    /// A plan in which only the writes of an instance count that is [watched](Self::watch).
    pub fn of_watched(breaks: impl IntoIterator<Item = (usize, Break)>, fault: Option<Fault>) -> Arc<Self> {
        let watched = Some(Lock::default());
        Arc::new(Self { breaks: breaks.into_iter().collect(), watched, fault, ..Self::default() })
    }

    /// Lets the writes of an instance count, until the guard is dropped. Returns `None` while another one is watched.
    pub fn watch(&self, instance: &str) -> Option<Watched<'_>> {
        let watched = self.watched.as_ref()?.lock().is_some();
        (!watched).then(|| {
            self.set_watched(Some(instance.to_owned()));
            Watched(self)
        })
    }

    fn set_watched(&self, instance: Option<String>) {
        if let Some(watched) = &self.watched {
            *watched.lock() = instance;
        }
    }

    fn counts(&self, instance: &str) -> bool {
        let is_it = |watched: &Lock<Option<String>>| watched.lock().as_deref() == Some(instance);
        self.watched.as_ref().is_none_or(is_it)
    }

    /// Returns how many writes there were.
    pub fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    /// Returns whether something will be lost, so that it must not be recorded before it is written.
    fn loses(&self) -> bool {
        self.breaks.iter().any(|(_, kind)| *kind == Break::Lost)
    }

    /// Waits until a write never returns.
    pub async fn broken(&self) {
        self.broken.notified().await;
    }

    /// Tells the journal that has the instance that another process has taken it over.
    pub fn lose(&self) {
        self.lost.notify_one();
    }

    pub(crate) fn set_closing(&self, is_closing: bool) {
        self.is_closing.store(is_closing, Ordering::SeqCst);
    }

    fn at(&self, number: usize) -> Option<Break> {
        self.breaks.iter().find(|(at, _)| *at == number).map(|(_, kind)| *kind)
    }

    fn is_lost_next(&self) -> bool {
        self.at(self.writes() + 1) == Some(Break::Lost)
    }

    fn next(&self) -> Option<Break> {
        self.at(self.writes.fetch_add(1, Ordering::SeqCst) + 1)
    }

    /// Makes a call that waits for nothing, unless the store is away.
    fn call(&self) -> Result<()> {
        if self.is_of_calls && self.next() == Some(Break::Away) { Err(away()) } else { Ok(()) }
    }

    async fn write_of<T>(&self, instance: &str, write: impl Future<Output = Result<T>>) -> Result<T> {
        if self.counts(instance) { self.write(write).await } else { write.await }
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let kind = match self.next() {
            Some(Break::Before | Break::Lost) if self.is_closing.load(Ordering::SeqCst) => Some(Break::Away),
            Some(Break::After) if self.is_closing.load(Ordering::SeqCst) => Some(Break::AwayAfter),
            kind => kind,
        };
        let written = match kind {
            Some(Break::Before | Break::Lost) => None,
            Some(Break::Away) => return Err(away()),
            _ => Some(write.await?),
        };
        match (kind, written) {
            (Some(Break::AwayAfter), _) => Err(away()),
            (None, Some(written)) => Ok(written),
            _ => {
                self.broken.notify_one();
                std::future::pending().await
            }
        }
    }
}

fn away() -> Error {
    Error::new(ErrorCode::STORE_UNAVAILABLE, "the store is away").retryable(true)
}

/// Keeps instances in another store, and is interrupted as its plan says.
#[derive(Clone, Debug)]
pub struct Breaking<S> {
    store: S,
    plan: Arc<Plan>,
}

impl<S: Store> Breaking<S> {
    /// Returns `store`, interrupted by `plan`.
    pub fn new(store: S, plan: Arc<Plan>) -> Self {
        Self { store, plan }
    }
}

impl<S: Store> Store for Breaking<S> {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            self.plan.call()?;
            let mut opened = self.store.open(instance).await?;
            if let (Some(fault), Some(open)) = (self.plan.fault, &mut opened.interrupted) {
                match fault {
                    Fault::OneTooMany => {
                        let copy = open.events.last().cloned();
                        open.events.extend(copy);
                        open.facts.newest = open.events.len();
                    }
                    Fault::OneTooFew => {
                        open.events.truncate(open.facts.newest.saturating_sub(1));
                        open.facts.newest = open.events.len();
                    }
                }
            }
            let (journal, plan) = (opened.journal, Arc::clone(&self.plan));
            let instance = instance.to_string();
            opened.journal = Box::new(BreakingJournal { journal, plan, instance, held: Vec::new(), is_lost: false });
            Ok(opened)
        })
    }

    fn list<'a>(&'a self, query: &'a InstanceQuery) -> BoxFuture<'a, Result<InstancePage>> {
        self.store.list(query)
    }

    fn delete<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            let name = instance.to_string();
            self.plan.write_of(&name, self.store.delete(instance)).await
        })
    }

    fn messages<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Option<Vec<Arc<Message>>>>> {
        self.store.messages(instance)
    }

    fn outcome<'a>(&'a self, instance: &'a InstanceId, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        self.store.outcome(instance, event)
    }

    fn workspace(&self) -> Option<&str> {
        self.store.workspace()
    }

    fn directories(&self) -> Vec<PathBuf> {
        self.store.directories()
    }

    fn extension_dir(&self, extension: &ExtensionName) -> Result<PathBuf> {
        self.store.extension_dir(extension)
    }

    fn shared_state(&self, extension: &ExtensionName) -> Result<Option<Value>> {
        self.store.shared_state(extension)
    }

    fn update_shared_state(
        &self,
        extension: &ExtensionName,
        change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        self.store.update_shared_state(extension, change)
    }
}

struct BreakingJournal {
    journal: Box<dyn Journal>,
    plan: Arc<Plan>,
    instance: String,
    /// What is recorded at the next write, if something is to be lost.
    held: Vec<TurnRecord>,
    /// Whether the machine has stopped.
    is_lost: bool,
}

impl BreakingJournal {
    fn keep(&mut self, record: TurnRecord) -> Result<()> {
        self.plan.call()?;
        if self.is_lost {
            return Ok(());
        }
        if self.plan.loses() {
            self.held.push(record);
            return Ok(());
        }
        self.record_now(record)
    }

    fn record_now(&mut self, record: TurnRecord) -> Result<()> {
        match record {
            TurnRecord::Event(event, by) => self.journal.record(&event, by.as_ref()),
            TurnRecord::Reached(what) => self.journal.reached(&what),
            TurnRecord::State(state) => self.journal.record_state(&state),
            TurnRecord::Started(call) => self.journal.start_call(&call),
            TurnRecord::Resumed(keep) => self.journal.resume(keep),
            TurnRecord::Decided(decision) => self.journal.decide(&[*decision]),
            // A suspension is written at once.
            _ => Ok(()),
        }
    }

    /// Records what was held back, unless it is lost at the write that follows.
    fn settle(&mut self) -> Result<()> {
        if self.plan.is_lost_next() {
            self.is_lost = true;
        }
        let held = std::mem::take(&mut self.held);
        if self.is_lost { Ok(()) } else { held.into_iter().try_for_each(|record| self.record_now(record)) }
    }
}

impl Journal for BreakingJournal {
    fn begin(&mut self, turn: TurnStart<'_>) -> Result<()> {
        self.plan.call()?;
        self.journal.begin(turn)
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.keep(TurnRecord::Event(event.clone(), by.cloned()))
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.keep(TurnRecord::Reached(what.clone()))
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.keep(TurnRecord::State(state.clone()))
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.keep(TurnRecord::Started(call.clone()))
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        self.keep(TurnRecord::Resumed(keep))
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        decisions.iter().try_for_each(|decision| self.keep(TurnRecord::Decided(Box::new(decision.clone()))))
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.settle()?;
            self.plan.write_of(&self.instance, self.journal.suspend(turn)).await
        })
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        Box::pin(async move {
            self.plan.call()?;
            self.journal.outcome(event).await
        })
    }

    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            self.settle()?;
            self.plan.write_of(&self.instance, self.journal.flush(durability)).await
        })
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.settle()?;
            self.plan.write_of(&self.instance, self.journal.commit(turn)).await
        })
    }

    fn close(self: Box<Self>) -> BoxFuture<'static, Result<()>> {
        match self.plan.call() {
            Ok(()) => self.journal.close(),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn keeps_runtime_events(&self) -> bool {
        self.journal.keeps_runtime_events()
    }

    fn note(&mut self, events: &[RuntimeEvent]) -> Result<()> {
        self.plan.call()?;
        self.journal.note(events)
    }

    fn lost(&self) -> Option<BoxFuture<'static, ()>> {
        let plan = Arc::clone(&self.plan);
        Some(Box::pin(async move { plan.lost.notified().await }))
    }
}
