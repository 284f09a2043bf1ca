//! A store that is interrupted at one of its writes: the turn never comes further, or the store says that it is away.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use goondan::conversation::MessageEvent;
use goondan::name::{EventId, ExtensionName, ToolCallId};
use goondan::store::{
    Commit, Decision, Durability, EmittedBy, EndedTurn, InstanceId, Journal, Opened, Reached, Store, Suspend, TurnStart,
};
use goondan::{BoxFuture, Error, ErrorCode, Result, Value};
use tokio::sync::Notify;

/// How a write is interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Break {
    /// It never returns, and has written nothing.
    Before,
    /// It never returns, and has written everything.
    After,
    /// It fails because the store is away, and has written nothing.
    Away,
    /// It fails because the store is away, and has written everything.
    AwayAfter,
}

/// Where it is interrupted: the numbers of the writes, from 1, which are counted on.
#[derive(Default)]
pub(crate) struct Plan {
    breaks: Vec<(usize, Break)>,
    /// Whether every call of a journal counts, also one that waits for nothing.
    is_of_calls: bool,
    writes: AtomicUsize,
    /// Notified when a write never returns.
    pub(crate) broken: Notify,
}

impl Plan {
    pub(crate) fn new(breaks: Vec<(usize, Break)>) -> Arc<Self> {
        Arc::new(Self { breaks, ..Self::default() })
    }

    /// A plan in which every call of a journal counts.
    pub(crate) fn of_calls(breaks: Vec<(usize, Break)>) -> Arc<Self> {
        Arc::new(Self { breaks, is_of_calls: true, ..Self::default() })
    }

    /// Returns how many writes there were.
    pub(crate) fn writes(&self) -> usize {
        self.writes.load(Ordering::SeqCst)
    }

    fn next(&self) -> Option<Break> {
        let number = self.writes.fetch_add(1, Ordering::SeqCst) + 1;
        self.breaks.iter().find(|(at, _)| *at == number).map(|(_, kind)| *kind)
    }

    /// Makes a call that waits for nothing, unless the store is away.
    fn call<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.is_of_calls && self.next() == Some(Break::Away) { Err(away()) } else { call() }
    }

    async fn write<T>(&self, write: impl Future<Output = Result<T>>) -> Result<T> {
        let kind = self.next();
        let written = match kind {
            Some(Break::Before) => None,
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
#[derive(Clone)]
pub(crate) struct Breaking<S> {
    pub(crate) store: S,
    pub(crate) plan: Arc<Plan>,
}

impl<S: Store> Store for Breaking<S> {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            let mut opened = self.store.open(instance).await?;
            opened.journal = Box::new(BreakingJournal { journal: opened.journal, plan: Arc::clone(&self.plan) });
            Ok(opened)
        })
    }
}

struct BreakingJournal {
    journal: Box<dyn Journal>,
    plan: Arc<Plan>,
}

impl Journal for BreakingJournal {
    fn begin(&mut self, turn: TurnStart<'_>) -> Result<()> {
        self.plan.call(|| self.journal.begin(turn))
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.plan.call(|| self.journal.record(event, by))
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.plan.call(|| self.journal.reached(what))
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.plan.call(|| self.journal.record_state(state))
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.plan.call(|| self.journal.start_call(call))
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        self.plan.call(|| self.journal.resume(keep))
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.plan.write(self.journal.suspend(turn)))
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        self.plan.call(|| self.journal.decide(decisions))
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        Box::pin(async move {
            self.plan.call(|| Ok(()))?;
            self.journal.outcome(event).await
        })
    }

    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>> {
        Box::pin(self.plan.write(self.journal.flush(durability)))
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(self.plan.write(self.journal.commit(turn)))
    }
}
