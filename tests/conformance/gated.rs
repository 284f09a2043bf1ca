//! A store that waits for the test before it opens or commits, or fails to commit.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use goondan::conversation::MessageEvent;
use goondan::decision::Decision;
use goondan::name::{EventId, ExtensionName, ToolCallId};
use goondan::store::{
    Commit, Durability, EmittedBy, EndedTurn, InstanceId, Journal, MemoryStore, Opened, Reached, Store, Suspend,
    TurnStart,
};
use goondan::{BoxFuture, Error, ErrorCode, Result, Value};
use tokio::sync::Semaphore;

/// Keeps instances in memory. Clones share one store.
#[derive(Clone)]
pub(crate) struct GatedStore {
    store: MemoryStore,
    gates: Arc<Gates>,
}

#[derive(Default)]
pub(crate) struct Gates {
    pub(crate) open: Gate,
    pub(crate) commit: Gate,
    pub(crate) failing: AtomicBool,
    pub(crate) openings: AtomicUsize,
}

/// A gate of a test, which is open at first.
pub(crate) struct Gate {
    shut: AtomicBool,
    reached: Semaphore,
    passage: Semaphore,
}

impl Default for Gate {
    fn default() -> Self {
        Self { shut: AtomicBool::new(false), reached: Semaphore::new(0), passage: Semaphore::new(0) }
    }
}

impl Gate {
    pub(crate) fn shut(&self) {
        self.shut.store(true, Ordering::SeqCst);
    }

    /// Waits until a task waits at the gate.
    pub(crate) async fn reached(&self) {
        self.reached.acquire().await.unwrap().forget();
    }

    /// Releases the task that waits at the gate, and lets later ones pass.
    pub(crate) fn open(&self) {
        self.shut.store(false, Ordering::SeqCst);
        self.passage.add_permits(1);
    }

    async fn pass(&self) {
        if self.shut.load(Ordering::SeqCst) {
            self.reached.add_permits(1);
            self.passage.acquire().await.unwrap().forget();
        }
    }
}

impl GatedStore {
    pub(crate) fn new() -> (Self, Arc<Gates>) {
        let gates = Arc::<Gates>::default();
        (Self { store: MemoryStore::new(), gates: Arc::clone(&gates) }, gates)
    }
}

impl Store for GatedStore {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move {
            self.gates.openings.fetch_add(1, Ordering::SeqCst);
            self.gates.open.pass().await;
            let mut opened = self.store.open(instance).await?;
            opened.journal = Box::new(GatedJournal { journal: opened.journal, gates: Arc::clone(&self.gates) });
            Ok(opened)
        })
    }
}

struct GatedJournal {
    journal: Box<dyn Journal>,
    gates: Arc<Gates>,
}

impl Journal for GatedJournal {
    fn begin(&mut self, turn: TurnStart<'_>) -> Result<()> {
        self.journal.begin(turn)
    }

    fn record(&mut self, event: &MessageEvent, by: Option<&EmittedBy>) -> Result<()> {
        self.journal.record(event, by)
    }

    fn reached(&mut self, what: &Reached) -> Result<()> {
        self.journal.reached(what)
    }

    fn record_state(&mut self, state: &BTreeMap<ExtensionName, Value>) -> Result<()> {
        self.journal.record_state(state)
    }

    fn resume(&mut self, keep: usize) -> Result<()> {
        self.journal.resume(keep)
    }

    fn suspend<'a>(&'a mut self, turn: Suspend<'a>) -> BoxFuture<'a, Result<()>> {
        self.journal.suspend(turn)
    }

    fn decide(&mut self, decisions: &[Decision]) -> Result<()> {
        self.journal.decide(decisions)
    }

    fn outcome<'a>(&'a self, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        self.journal.outcome(event)
    }

    fn start_call(&mut self, call: &ToolCallId) -> Result<()> {
        self.journal.start_call(call)
    }

    fn flush(&mut self, durability: Durability) -> BoxFuture<'_, Result<()>> {
        self.journal.flush(durability)
    }

    fn commit<'a>(&'a mut self, turn: Commit<'a>) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.gates.commit.pass().await;
            if self.gates.failing.load(Ordering::SeqCst) {
                return Err(Error::new(ErrorCode::STORE_IO, "the disk is full"));
            }
            self.journal.commit(turn).await
        })
    }
}
