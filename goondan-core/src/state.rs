//! Owns the state of extensions while an instance is open: one JSON value for each, and whether it waits to be stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;

use crate::error::Result;
use crate::name::ExtensionName;

/// The states of all extensions of an instance, those that are not configured now included: they keep theirs.
#[derive(Debug)]
pub(crate) struct States(Mutex<BTreeMap<ExtensionName, Arc<StateCell>>>);

/// The state of one extension.
#[derive(Debug, Default)]
pub(crate) struct StateCell(Mutex<Cell>);

#[derive(Debug, Default)]
struct Cell {
    value: Option<Value>,
    /// Whether the store has another value.
    changed: bool,
}

impl States {
    /// The states as the store had them.
    pub(crate) fn new(stored: BTreeMap<ExtensionName, Value>) -> Self {
        let cell = |value| Arc::new(StateCell(Mutex::new(Cell { value: Some(value), changed: false })));
        Self(Mutex::new(stored.into_iter().map(|(name, value)| (name, cell(value))).collect()))
    }

    /// The state of `extension`.
    pub(crate) fn of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(states.entry(extension.clone()).or_default())
    }

    /// A state for a successor of `extension`: it begins as a copy, and is nobody else's before [`States::hand_over`].
    pub(crate) fn copy_of(&self, extension: &ExtensionName) -> Arc<StateCell> {
        let value = self.of(extension).get();
        Arc::new(StateCell(Mutex::new(Cell { value, changed: false })))
    }

    /// Makes `successor`, which came from [`States::copy_of`], the state of `extension`. What the extension does with its
    /// state from now on is lost.
    pub(crate) fn hand_over(&self, extension: &ExtensionName, successor: &Arc<StateCell>) {
        let mut states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(old) = states.insert(extension.clone(), Arc::clone(successor)) {
            let old = std::mem::take(&mut *old.lock());
            let mut new = successor.lock();
            if !new.changed {
                // What was set since the copy was taken.
                *new = old;
            }
        }
    }

    /// Every state that there is.
    pub(crate) fn all(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.get()?))).collect()
    }

    /// Whether something waits to be stored.
    pub(crate) fn have_changed(&self) -> bool {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.values().any(|cell| cell.lock().changed)
    }

    /// What changed since the last time, to be stored; it counts as stored from now on.
    pub(crate) fn take_changed(&self) -> BTreeMap<ExtensionName, Value> {
        let states = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        states.iter().filter_map(|(name, cell)| Some((name.clone(), cell.take_changed()?))).collect()
    }

    /// Takes back that these were stored.
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

    /// Changes the value in one step, unless `change` fails (D-23).
    pub(crate) fn update(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        let mut cell = self.lock();
        let value = change(cell.value.clone())?;
        // F-STORE: state that did not change is not written again.
        if cell.value.as_ref() != Some(&value) {
            *cell = Cell { value: Some(value), changed: true };
        }
        Ok(())
    }

    fn take_changed(&self) -> Option<Value> {
        let mut cell = self.lock();
        std::mem::take(&mut cell.changed).then(|| cell.value.clone())?
    }

    /// A panic inside of `change` leaves the old value: it is replaced in one step.
    fn lock(&self) -> MutexGuard<'_, Cell> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
