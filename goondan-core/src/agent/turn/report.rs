//! Owns what a turn tells those who watch: bus handlers, the stream of the turn, the store (F-EVENTS).
//!
//! Nothing is rendered, and no clock is read, for nobody.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::stream::{TurnUpdate, Updates};
use crate::error::{Error, Result};
use crate::event::TurnInfo;
use crate::event::{Bus, Event, EventScope, RuntimeEvent, Span};

pub(in crate::agent) struct Reporter<'a> {
    bus: &'a Bus,
    turn: &'a TurnInfo,
    pub(super) span: Span,
    updates: Option<Updates>,
    /// What the store will be handed; `None` when it keeps no runtime events. Behind a lock because tool calls may run
    /// side by side.
    notes: Option<Mutex<Vec<RuntimeEvent>>>,
}

impl<'a> Reporter<'a> {
    pub(in crate::agent) fn new(bus: &'a Bus, turn: &'a TurnInfo, updates: Option<Updates>, keep: bool) -> Self {
        Self { bus, turn, span: Span::of_turn(turn.input.parent_span_id), updates, notes: keep.then(Mutex::default) }
    }

    /// Tells that something happened in `span`.
    pub(super) fn tell(&self, name: &str, span: Span, event: impl FnOnce(EventScope) -> RuntimeEvent) {
        let on_bus = self.bus.wants(name);
        if !on_bus && self.updates.is_none() && self.notes.is_none() {
            return;
        }
        let event = event(EventScope::now(self.turn, span));
        if on_bus {
            match Event::new(name, (&event,)) {
                Ok(event) => self.bus.emit(event),
                Err(error) => tracing::error!(event = name, "a runtime event was not emitted: {}", error.report()),
            }
        }
        if let Some(notes) = &self.notes {
            notes.lock().unwrap_or_else(PoisonError::into_inner).push(event.clone());
        }
        self.update(|| TurnUpdate::Event(Box::new(event)));
    }

    /// Whether somebody wants the model's text as it comes.
    pub(super) fn streams(&self) -> bool {
        self.updates.is_some()
    }

    pub(super) fn update(&self, update: impl FnOnce() -> TurnUpdate) {
        if let Some(updates) = &self.updates {
            // A watcher that went away is none.
            let _ = updates.send(update());
        }
    }

    /// Starts to measure, if somebody may want to know.
    pub(super) fn stopwatch(&self) -> Stopwatch {
        let watched = self.updates.is_some() || self.notes.is_some() || self.bus.has_subscriptions();
        Stopwatch(watched.then(Instant::now))
    }

    /// What the store is to keep.
    pub(super) fn into_notes(self) -> Vec<RuntimeEvent> {
        self.notes.map(|notes| notes.into_inner().unwrap_or_else(PoisonError::into_inner)).unwrap_or_default()
    }
}

/// How long something takes, if somebody wants to know.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(super) fn elapsed(self) -> Duration {
        self.0.map(|start| start.elapsed()).unwrap_or_default()
    }
}

/// The message of a failure, as runtime events carry it.
pub(super) fn message_of<T>(outcome: &Result<T>) -> String {
    outcome.as_ref().err().map(Error::to_string).unwrap_or_default()
}
