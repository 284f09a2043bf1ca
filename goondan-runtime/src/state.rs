//! Extension state of an open instance: one JSON value for each extension, and whether it must still be stored.

use std::collections::BTreeMap;
use std::sync::{Arc, MutexGuard};
use std::thread::{self, ThreadId};

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use goondan_lock::Lock;
use serde_json::Value;

/// The states of all extensions of an instance. Extensions that are no longer configured are included: their state is
/// kept.
#[derive(Debug, Default)]
pub(crate) struct States(Lock<BTreeMap<ExtensionName, Arc<StateCell>>>);

/// The state of one extension. Code of the extension changes it, so no lock that readers need is held meanwhile.
#[derive(Debug, Default)]
pub(crate) struct StateCell {
    value: Lock<TrackedValue>,
    /// Held by the thread that changes the value, from reading the old one to setting the new one.
    changing: Lock<()>,
    /// That thread.
    changer: Lock<Option<ThreadId>>,
}

#[derive(Debug, Default)]
struct TrackedValue {
    value: Option<Value>,
    /// Whether the value differs from the stored one.
    changed: bool,
}

impl States {
    /// Returns the states that the store had.
    pub(crate) fn new(stored: BTreeMap<ExtensionName, Value>) -> Self {
        let cell = |value| Arc::new(StateCell::new(Some(value)));
        Self(Lock::new(stored.into_iter().map(|(name, value)| (name, cell(value))).collect()))
    }

    /// Returns the state of `extension`, empty if it has none yet.
    pub(crate) fn of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let mut states = self.0.lock();
        Arc::clone(states.entry(extension.clone()).or_default())
    }

    /// Returns a copy of the state of `extension`, for its replacement. Only the replacement uses it until
    /// [`States::hand_over`].
    pub(crate) fn copy_of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        Arc::new(StateCell::new(self.of(extension).get()))
    }

    /// Makes `successor`, which [`States::copy_of`] returned, the state of `extension`. Later changes by the replaced
    /// extension are lost.
    pub(crate) fn hand_over(&self, extension: &ExtensionName, successor: &Arc<StateCell>) {
        let mut states = self.0.lock();
        if let Some(old) = states.insert(extension.clone(), Arc::clone(successor)) {
            let old = std::mem::take(&mut *old.lock());
            let mut new = successor.lock();
            if !new.changed {
                // Keep what was set after the copy was made.
                *new = old;
            }
        }
    }

    /// Returns all states that have a value.
    pub(crate) fn all(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.0.lock();
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.get()?))).collect()
    }

    /// Whether any state must still be stored.
    pub(crate) fn have_changed(&self) -> bool {
        let states = self.0.lock();
        states.values().any(|cell| cell.lock().changed)
    }

    /// Returns the states that changed since the last call, and marks them as stored.
    pub(crate) fn take_changed(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.0.lock();
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.take_changed()?))).collect()
    }

    /// Marks states as not stored again, after storing them failed.
    pub(crate) fn put_back(&self, unstored: &BTreeMap<ExtensionName, Value>) {
        for name in unstored.keys() {
            self.of(name).lock().changed = true;
        }
    }
}

impl StateCell {
    fn new(value: Option<Value>) -> Self {
        Self { value: Lock::new(TrackedValue { value, changed: false }), ..Self::default() }
    }

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
            *tracked = TrackedValue { value: Some(value), changed: true };
        }
        Ok(())
    }

    fn take_changed(&self) -> Option<Value> {
        let mut tracked = self.lock();
        std::mem::take(&mut tracked.changed).then(|| tracked.value.clone())?
    }

    // A poisoned lock is fine: the value is set in one assignment.
    fn lock(&self) -> MutexGuard<'_, TrackedValue> {
        self.value.lock()
    }

    fn changer(&self) -> MutexGuard<'_, Option<ThreadId>> {
        self.changer.lock()
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
