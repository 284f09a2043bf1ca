//! Owns the subscriber of `tracing` that keeps lines, each with the values of the spans around it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock};

use serde_json::{Map, Value};
use tracing::span::{Attributes, Id, Record};
use tracing::subscriber::Interest;
use tracing::{Dispatch, Event, Metadata, Subscriber};

use super::line::{Fields, LogLine};
use crate::testing::lock;

/// The lines that were kept.
#[derive(Default)]
pub(super) struct Lines(Mutex<Vec<LogLine>>);

impl Lines {
    pub(super) fn len(&self) -> usize {
        lock(&self.0).len()
    }

    pub(super) fn since(&self, start: usize) -> Vec<LogLine> {
        lock(&self.0).iter().skip(start).cloned().collect()
    }
}

/// Keeps lines. Spans are kept as long as it: a test is short.
pub(super) struct Recorder {
    lines: Arc<Lines>,
    spans: Mutex<Spans>,
}

#[derive(Default)]
struct Spans {
    /// The values of each span, those of the spans around it included.
    fields: HashMap<u64, Map<String, Value>>,
    /// The spans that are entered, the innermost last.
    entered: Vec<u64>,
}

impl Recorder {
    pub(super) fn new(lines: Arc<Lines>) -> Self {
        Self { lines, spans: Mutex::default() }
    }
}

impl Spans {
    /// The values around something that says that `parent` is around it, or leaves it to what is entered.
    fn around(&self, parent: Option<&Id>, contextual: bool) -> Map<String, Value> {
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
        let mut fields = lock(&self.spans).around(span.parent(), span.is_contextual());
        span.record(&mut Fields(&mut fields));
        let mut spans = lock(&self.spans);
        let number = spans.fields.len() as u64 + 1;
        spans.fields.insert(number, fields);
        Id::from_u64(number)
    }

    fn record(&self, span: &Id, values: &Record<'_>) {
        // Not under the lock: a value may log while it is rendered.
        let mut fields = Map::new();
        values.record(&mut Fields(&mut fields));
        if let Some(known) = lock(&self.spans).fields.get_mut(&span.into_u64()) {
            known.extend(fields);
        }
    }

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let context = lock(&self.spans).around(event.parent(), event.is_contextual());
        let mut fields = Map::new();
        event.record(&mut Fields(&mut fields));
        if let Some(line) = LogLine::of(event.metadata(), context, fields) {
            lock(&self.lines.0).push(line);
        }
    }

    fn enter(&self, span: &Id) {
        lock(&self.spans).entered.push(span.into_u64());
    }

    fn exit(&self, span: &Id) {
        let mut spans = lock(&self.spans);
        if let Some(place) = spans.entered.iter().rposition(|entered| *entered == span.into_u64()) {
            spans.entered.remove(place);
        }
    }
}

/// `tracing` asks once per place in the code whether anybody wants its lines, and while there is one subscriber it asks
/// that of the thread that comes there first: a thread without a chat would close the place for all. Two subscribers that
/// stay, and want to be asked again, keep it open.
pub(super) fn keep_every_callsite_open() {
    static OPEN: OnceLock<[Dispatch; 2]> = OnceLock::new();
    OPEN.get_or_init(|| [Dispatch::new(AskAgain), Dispatch::new(AskAgain)]);
}

/// Keeps nothing, but may change its mind.
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
