//! Extension state of an open instance: one JSON value for each extension, and whether it must still be stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::error::Result;
use crate::name::ExtensionName;

/// The states of all extensions of an instance. Extensions that are no longer configured are included: their state is
/// kept.
#[derive(Debug)]
pub(crate) struct States(Mutex<BTreeMap<ExtensionName, Arc<StateCell>>>);

/// The state of one extension.
#[derive(Debug, Default)]
pub(crate) struct StateCell(Mutex<TrackedValue>);

#[derive(Debug, Default)]
struct TrackedValue {
    value: Option<Value>,
    /// Whether the value differs from the stored one.
    changed: bool,
}

impl States {
    /// Returns the states that the store had.
    pub(crate) fn new(stored: BTreeMap<ExtensionName, Value>) -> Self {
        let cell = |value| Arc::new(StateCell(Mutex::new(TrackedValue { value: Some(value), changed: false })));
        Self(Mutex::new(stored.into_iter().map(|(name, value)| (name, cell(value))).collect()))
    }

    /// Returns the state of `extension`, empty if it has none yet.
    pub(crate) fn of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(states.entry(extension.clone()).or_default())
    }

    /// Returns a copy of the state of `extension`, for its replacement. Only the replacement uses it until
    /// [`States::hand_over`].
    pub(crate) fn copy_of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let value = self.of(extension).get();
        Arc::new(StateCell(Mutex::new(TrackedValue { value, changed: false })))
    }

    /// Makes `successor`, which [`States::copy_of`] returned, the state of `extension`. Later changes by the replaced
    /// extension are lost.
    pub(crate) fn hand_over(&self, extension: &ExtensionName, successor: &Arc<StateCell>) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.get()?))).collect()
    }

    /// Whether any state must still be stored.
    pub(crate) fn have_changed(&self) -> bool {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.values().any(|cell| cell.lock().changed)
    }

    /// Returns the states that changed since the last call, and marks them as stored.
    pub(crate) fn take_changed(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
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
    pub(crate) fn get(&self) -> Option<Value> {
        self.lock().value.clone()
    }

    /// Changes the value atomically, or leaves it unchanged if `change` fails (D-23).
    pub(crate) fn update(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        let mut cell = self.lock();
        let value = change(cell.value.clone())?;
        // F-STORE: state that did not change is not written again.
        if cell.value.as_ref() != Some(&value) {
            *cell = TrackedValue { value: Some(value), changed: true };
        }
        Ok(())
    }

    fn take_changed(&self) -> Option<Value> {
        let mut cell = self.lock();
        std::mem::take(&mut cell.changed).then(|| cell.value.clone())?
    }

    // A poisoned lock is fine: a panic in `change` leaves the old value, since the new one is set in one assignment.
    fn lock(&self) -> MutexGuard<'_, TrackedValue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
