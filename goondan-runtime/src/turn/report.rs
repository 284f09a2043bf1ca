//! Reports the events of a turn: to event handlers on the bus, and to whatever watches the turn (F-EVENTS).
//!
//! Without a receiver, no event is built and no clock is read.

use std::future::poll_fn;
use std::task::Poll;
use std::time::{Duration, Instant};

use goondan_core::{
    Error, ErrorCode, Event, EventScope, LayerInfo, Result, RuntimeEvent, Span, StepRef, ToolCallId, TurnInfo,
};
use serde::Serialize;

use super::presented::Presented;
use super::watch::Watch;
use crate::bus::Bus;
use crate::ports::observer::Wants;

/// Reports the runtime events of one turn. It is made with the turn and ends with it.
pub(crate) struct Reporter<'a> {
    bus: &'a Bus,
    turn: &'a TurnInfo,
    pub(super) span: Span,
    /// `None` if nothing watches the turn.
    watch: Option<&'a Watch>,
}

impl<'a> Reporter<'a> {
    pub(crate) fn new(bus: &'a Bus, turn: &'a TurnInfo, watch: Option<&'a Watch>) -> Self {
        let span = watch.map_or_else(|| Span::of_turn(turn.input.parent_span_id), Watch::span);
        Self { bus, turn, span, watch }
    }

    /// Returns the watcher of the turn, if it wants that.
    fn wanted(&self, what: Wants) -> Option<&'a Watch> {
        self.watch.filter(|watch| watch.wants(what))
    }

    /// Reports an event in `span`, unless there is no receiver.
    pub(super) fn report(&self, name: &str, span: Span, event: impl FnOnce(EventScope) -> RuntimeEvent) {
        let (on_bus, watch) = (self.bus.wants(name), self.wanted(Wants::EVENTS));
        if !on_bus && watch.is_none() {
            return;
        }
        let event = event(EventScope::now(self.turn, span));
        if on_bus {
            self.emit(name, &event);
        }
        if let Some(watch) = watch {
            watch.event(event);
        }
    }

    /// Reports that the model of a step, whose span is `span`, sends its request again.
    #[cold]
    pub(super) fn report_retry(&self, step: u32, span: Span, reason: &str, wait: Duration) {
        self.report("model.retried", span, |scope| RuntimeEvent::ModelRetried {
            scope,
            step: StepRef::new(&self.turn.turn, step),
            reason: reason.to_owned(),
            wait,
        });
    }

    /// Emits an event on the bus.
    pub(super) fn emit(&self, name: &str, payload: &impl Serialize) {
        // Not checked: it may hold values that another implementation stored.
        match serde_json::to_value(payload) {
            Ok(payload) => self.bus.emit(Event::from_values(name, vec![payload])),
            Err(error) => tracing::error!(event = name, "a runtime event was not emitted: {error}"),
        }
    }

    /// Returns whether a subscription on the bus matches `name`.
    pub(super) fn has_subscription(&self, name: &str) -> bool {
        self.bus.wants(name)
    }

    /// Reports in `span` that a layer failed and is skipped.
    #[cold]
    pub(super) fn report_skipped(&self, span: Span, layer: &LayerInfo, after_next: bool, error: &Error) {
        self.report("extension.skipped", span, |scope| RuntimeEvent::ExtensionSkipped {
            scope,
            extension_name: layer.extension.clone(),
            part: layer.part(),
            after_next,
            error_code: error.code().clone(),
            error_message: error.message().into_owned(),
        });
    }

    /// Returns whether there may be a receiver of events.
    pub(super) fn is_watched(&self) -> bool {
        self.wanted(Wants::EVENTS).is_some() || self.bus.has_subscriptions()
    }

    /// Returns the receiver of the pieces of the model's answer and the progress of tool calls, if anything does.
    pub(super) fn streams(&self) -> Option<&'a Watch> {
        self.wanted(Wants::PIECES)
    }

    /// Tells the output of a call, if anything wants it.
    pub(super) fn report_output(&self, call: &ToolCallId, presented: &Presented<'_>) {
        if let Some(watch) = self.streams() {
            watch.output(call, presented.output());
        }
    }

    /// Lets the stream of the turn deliver its updates, before the turn runs code that may block the thread.
    pub(super) async fn deliver(&self) {
        let mut delivered = !self.watch.is_some_and(Watch::has_stream);
        poll_fn(|cx| {
            if std::mem::replace(&mut delivered, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        })
        .await;
    }

    /// Starts to measure, if there may be a receiver.
    pub(super) fn stopwatch(&self) -> Stopwatch {
        Stopwatch(self.is_watched().then(Instant::now))
    }
}

/// Measures a duration, or returns zero if there is no receiver for it.
#[derive(Clone, Copy)]
pub(super) struct Stopwatch(Option<Instant>);

impl Stopwatch {
    pub(super) fn elapsed(self) -> Duration {
        self.0.map(|start| start.elapsed()).unwrap_or_default()
    }
}

/// Returns the code of a failure for runtime events.
pub(super) fn error_code<T>(outcome: &Result<T>) -> Option<ErrorCode> {
    outcome.as_ref().err().map(|error| error.code().clone())
}

/// Returns the message of a failure for runtime events.
pub(super) fn error_message<T>(outcome: &Result<T>) -> String {
    outcome.as_ref().err().map(Error::to_string).unwrap_or_default()
}
