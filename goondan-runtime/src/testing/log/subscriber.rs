//! The `tracing` subscriber that records lines, each with the values of its spans.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use goondan_lock::Lock;
use serde_json::{Map, Value};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::line::{FieldVisitor, LogLine};

/// The recorded lines.
#[derive(Default)]
pub(super) struct Lines(Lock<Vec<LogLine>>);

impl Lines {
    pub(super) fn len(&self) -> usize {
        self.0.lock().len()
    }

    pub(super) fn since(&self, start: usize) -> Vec<LogLine> {
        self.0.lock().iter().skip(start).cloned().collect()
    }
}

/// Records lines. It keeps all spans until it is dropped, because a test is short.
pub(super) struct Recorder {
    lines: Arc<Lines>,
    spans: Lock<Spans>,
}

#[derive(Default)]
struct Spans {
    /// The values of each span, including those of its parents.
    fields: HashMap<u64, Map<String, Value>>,
    /// The entered spans, the innermost last.
    entered: Vec<u64>,
}

impl Recorder {
    pub(super) fn new(lines: Arc<Lines>) -> Self {
        Self { lines, spans: Lock::default() }
    }
}

impl Spans {
    /// Returns the values of the span of a line or span: of `parent` if it is explicit, or of the entered span.
    fn values_of(&self, parent: Option<&Id>, contextual: bool) -> Map<String, Value> {
        let current = || self.entered.last().copied().filter(|_| contextual);
        let span = parent.map(Id::into_u64).or_else(current);
        span.and_then(|span| self.fields.get(&span)).cloned().unwrap_or_default()
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut fields = self.spans.lock().values_of(span.parent(), span.is_contextual());
        span.record(&mut FieldVisitor(&mut fields));
        let mut spans = self.spans.lock();
        let number = spans.fields.len() as u64 + 1;
        spans.fields.insert(number, fields);
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        // Outside of the lock: a value may log while it is formatted.
        let mut fields = Map::new();
        values.record(&mut FieldVisitor(&mut fields));
        if let Some(known) = self.spans.lock().fields.get_mut(&span.into_u64()) {
            known.extend(fields);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let context = self.spans.lock().values_of(event.parent(), event.is_contextual());
        let mut fields = Map::new();
        event.record(&mut FieldVisitor(&mut fields));
        if let Some(line) = LogLine::of(event.metadata(), context, fields) {
            // Outside of the lock, and now: a secret is masked as long as it exists.
            let line = line.masked();
            self.lines.0.lock().push(line);
        }
    }

    fn enter(&self, span: &Id) {
        self.spans.lock().entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut spans = self.spans.lock();
        if let Some(index) = spans.entered.iter().rposition(|entered| *entered == span.into_u64()) {
            spans.entered.remove(index);
        }
    }
}

/// Keeps every callsite enabled. `tracing` caches for each callsite whether any subscriber is interested in it. While
/// there is only one subscriber, it asks the one of the thread that reaches the callsite first, and a thread without a
/// chat would disable the callsite for all threads. Two permanent subscribers with the interest "sometimes" prevent
/// that.
pub(super) fn keep_every_callsite_open() {
    static OPEN: OnceLock<[Dispatch; 2]> = OnceLock::new();
    OPEN.get_or_init(|| [Dispatch::new(AskAgain), Dispatch::new(AskAgain)]);
}

/// Records nothing, and has `tracing` ask `enabled` each time.
struct AskAgain;

impl Subscriber for AskAgain {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, _: &Metadata<'_>) -> bool {
        false
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
