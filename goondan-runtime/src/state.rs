//! Extension state of an open instance: one JSON value for each extension, and whether it must still be stored.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::thread::{self, ThreadId};

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use goondan_lock::Lock;
use serde_json::Value;

/// The states of all extensions of an instance. Extensions that are no longer configured are included: their state is
/// kept.
#[derive(Debug, Default)]
pub(crate) struct States {
    cells: Lock<BTreeMap<ExtensionName, Arc<StateCell>>>,
    moment: Arc<Moment>,
}

/// The moment of the turn, which all states of a conversation share.
// RESUME-01
#[derive(Debug, Default)]
struct Moment {
    /// Whether a turn runs.
    in_turn: AtomicBool,
    /// Whether a value may have changed since the newest fact of the turn. It is asked for each fact.
    unrecorded: AtomicBool,
    /// Whether a value may have changed while no turn ran.
    outside: AtomicBool,
}

/// The state of one extension. Code of the extension changes it, so no lock that readers need is held meanwhile.
#[derive(Debug, Default)]
pub(crate) struct StateCell {
    value: Lock<TrackedValue>,
    /// Held by the thread that changes the value, from reading the old one to setting the new one.
    changing: Lock<()>,
    /// That thread.
    changer: Lock<Option<ThreadId>>,
    /// That of the [`States`] which it belongs to.
    moment: Arc<Moment>,
}

#[derive(Debug, Default)]
struct TrackedValue {
    value: Option<Value>,
    /// Whether the value differs from the stored one.
    changed: bool,
    /// Whether this value is being stored.
    taken: bool,
    /// The value at the newest fact of the open turn, if it was changed since.
    // RESUME-01
    before: Option<Option<Value>>,
    /// Whether the value was changed while no turn ran, since it was last recorded or stored.
    outside: bool,
}

impl States {
    /// Returns the states that the store had.
    pub(crate) fn new(stored: BTreeMap<ExtensionName, Value>) -> Self {
        let states = Self::default();
        for (name, value) in stored {
            states.insert(name, TrackedValue { value: Some(value), ..TrackedValue::default() });
        }
        states
    }

    /// Adds the state that an open turn has recorded: it is not stored yet.
    pub(crate) fn add_recorded(&self, recorded: &BTreeMap<ExtensionName, Value>) {
        for (name, value) in recorded {
            let value = Some(value.clone());
            self.insert(name.clone(), TrackedValue { value, changed: true, ..TrackedValue::default() });
        }
    }

    fn insert(&self, name: ExtensionName, value: TrackedValue) {
        self.cells.lock().insert(name, Arc::new(self.cell(value)));
    }

    fn cell(&self, value: TrackedValue) -> StateCell {
        StateCell { value: Lock::new(value), moment: Arc::clone(&self.moment), ..StateCell::default() }
    }

    /// Returns the state of `extension`, empty if it has none yet.
    pub(crate) fn of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let mut states = self.cells.lock();
        Arc::clone(states.entry(extension.clone()).or_insert_with(|| Arc::new(self.cell(TrackedValue::default()))))
    }

    /// Returns a copy of the state of `extension`, for its replacement. Only the replacement uses it until
    /// [`States::hand_over`].
    pub(crate) fn copy_of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        Arc::new(self.cell(TrackedValue { value: self.of(extension).get(), ..TrackedValue::default() }))
    }

    /// Makes `successor`, which [`States::copy_of`] returned, the state of `extension`. Later changes by the replaced
    /// extension are lost.
    pub(crate) fn hand_over(&self, extension: &ExtensionName, successor: &Arc<StateCell>) {
        self.moment.unrecorded.store(true, Ordering::Release);
        let mut states = self.cells.lock();
        if let Some(old) = states.insert(extension.clone(), Arc::clone(successor)) {
            let old = std::mem::take(&mut *old.lock());
            let mut new = successor.lock();
            if new.changed {
                new.before = old.before.or(new.before.take());
            } else {
                // Keep values that were set after the copy was made.
                *new = old;
            }
        }
    }

    /// Returns all states that have a value.
    pub(crate) fn all(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.cells.lock();
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.get()?))).collect()
    }

    /// Whether any state must still be stored.
    pub(crate) fn have_changed(&self) -> bool {
        let states = self.cells.lock();
        states.values().any(|cell| cell.lock().changed)
    }

    /// Returns the states that must still be stored.
    pub(crate) fn changed(&self) -> BTreeMap<ExtensionName, Value> {
        self.take(|tracked| {
            tracked.taken = tracked.changed;
            tracked.changed
        })
    }

    /// Marks the states that [`States::changed`] returned as stored, but for those that have changed since.
    pub(crate) fn mark_stored(&self) {
        for cell in self.cells.lock().values() {
            let mut tracked = cell.lock();
            if std::mem::take(&mut tracked.taken) {
                (tracked.changed, tracked.before, tracked.outside) = (false, None, false);
            }
        }
    }

    /// Marks that a turn runs, until the guard is dropped.
    pub(crate) fn enter_turn(self: &Arc<Self>) -> InTurn {
        self.moment.in_turn.store(true, Ordering::Release);
        InTurn(Arc::clone(self))
    }

    /// Takes the states that changed since the newest fact of the turn that runs, which the next one records.
    #[inline]
    pub(crate) fn take_unrecorded(&self) -> Option<TakenState> {
        // It is asked for each fact, and a load costs less than a swap.
        let is_any = self.moment.unrecorded.load(Ordering::Acquire);
        if is_any { self.take_marked(&self.moment.unrecorded, |tracked| tracked.before.is_some()) } else { None }
    }

    /// Takes the states that changed while no turn ran, and were not recorded or stored since.
    pub(crate) fn take_outside(&self) -> Option<TakenState> {
        let is_any = self.moment.outside.load(Ordering::Acquire);
        if is_any { self.take_marked(&self.moment.outside, |tracked| tracked.outside) } else { None }
    }

    #[cold]
    fn take_marked(&self, mark: &AtomicBool, is_taken: impl Fn(&TrackedValue) -> bool) -> Option<TakenState> {
        // Before the values are read: one that changes meanwhile is found by the next fact.
        mark.store(false, Ordering::Release);
        let mut taken = TakenState::default();
        for (name, cell) in self.cells.lock().iter() {
            let mut tracked = cell.lock();
            if let Some(value) = tracked.value.clone().filter(|_| is_taken(&tracked)) {
                taken.state.insert(name.clone(), value);
                let (before, outside) = (tracked.before.take(), std::mem::take(&mut tracked.outside));
                taken.marks.push((Arc::clone(cell), before, outside));
            }
        }
        (!taken.state.is_empty()).then_some(taken)
    }

    /// Marks state again that was taken and could not be recorded.
    pub(crate) fn give_back(&self, TakenState { marks, .. }: TakenState) {
        for (cell, before, outside) in marks {
            let mut tracked = cell.lock();
            tracked.before = before.or(tracked.before.take());
            tracked.outside |= outside;
        }
        for mark in [&self.moment.unrecorded, &self.moment.outside] {
            mark.store(true, Ordering::Release);
        }
    }

    fn take(&self, is_taken: impl Fn(&mut TrackedValue) -> bool) -> BTreeMap<ExtensionName, Value> {
        let states = self.cells.lock();
        let taken = |cell: &StateCell| {
            let mut tracked = cell.lock();
            if is_taken(&mut tracked) { tracked.value.clone() } else { None }
        };
        states.iter().filter_map(|(name, cell)| Some((name.clone(), taken(cell)?))).collect()
    }

    /// Gives each state the value that it had at the newest fact of the open turn, unless it was changed since while no
    /// turn ran.
    pub(crate) fn restore(&self) {
        for cell in self.cells.lock().values() {
            let mut tracked = cell.lock();
            if !tracked.outside
                && let Some(before) = tracked.before.take()
            {
                tracked.value = before;
            }
        }
    }
}

impl StateCell {
    /// Returns the value, during a change the old one.
    pub(crate) fn get(&self) -> Option<Value> {
        self.lock().value.clone()
    }

    /// Changes the value atomically, or leaves it unchanged if `change` fails. Waits for changes of other threads.
    ///
    /// # Errors
    /// The error of `change`, and `E_EXT_STATE` when this thread is inside of a `change` already: it would wait for
    /// itself.
    // D-23
    pub(crate) fn update(
        &self,
        extension: &ExtensionName,
        change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        let _changing = Changing::start(self).ok_or_else(|| {
            let message = format!("the state of `{extension}` is being changed by this thread already");
            Error::new(ErrorCode::EXT_STATE, message)
                .suggest("change the value that the outer `update` passes, instead of calling `set` or `update` in it")
        })?;
        let value = change(self.get())?;
        let mut tracked = self.lock();
        // F-STORE: state that did not change is not written again.
        if tracked.value.as_ref() != Some(&value) {
            let old = tracked.value.replace(value);
            tracked.before.get_or_insert(old);
            (tracked.changed, tracked.taken) = (true, false);
            if self.moment.in_turn.load(Ordering::Acquire) {
                self.moment.unrecorded.store(true, Ordering::Release);
            } else {
                tracked.outside = true;
                self.moment.outside.store(true, Ordering::Release);
            }
        }
        Ok(())
    }

    // A poisoned lock is fine: the value is set in one assignment.
    fn lock(&self) -> MutexGuard<'_, TrackedValue> {
        self.value.lock()
    }

    fn changer(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.changer.lock()
    }
}

/// State that was taken to be recorded.
#[derive(Default)]
pub(crate) struct TakenState {
    pub(crate) state: BTreeMap<ExtensionName, Value>,
    /// The mark of each: the value at the newest fact, and whether it was changed while no turn ran.
    marks: Vec<(Arc<StateCell>, Option<Option<Value>>, bool)>,
}

/// While it lives, a turn runs.
pub(crate) struct InTurn(Arc<States>);

impl Drop for InTurn {
    fn drop(&mut self) {
        self.0.moment.in_turn.store(false, Ordering::Release);
    }
}

/// The right of one thread to change a state, until it is dropped.
struct Changing<'a> {
    cell: &'a StateCell,
    _lock: MutexGuard<'a, ()>,
}

impl<'a> Changing<'a> {
    /// Waits for other threads. Returns `None` if this thread has the right already.
    fn start(cell: &'a StateCell) -> Option<Self> {
        let this = thread::current().id();
        if *cell.changer() == Some(this) {
            return None;
        }
        // Poisoned by a panic in `change`, which left the old value.
        let lock = cell.changing.lock();
        *cell.changer() = Some(this);
        Some(Self { cell, _lock: lock })
    }
}

impl Drop for Changing<'_> {
    fn drop(&mut self) {
        *self.cell.changer() = None;
    }
}
