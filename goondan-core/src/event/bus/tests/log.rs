//! Keeps the log of one test, so that it can be asked what was reported.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber, subscriber};

/// The lines that this thread logs while it lives.
#[derive(Debug)]
pub(super) struct Log {
    lines: Arc<Mutex<Vec<String>>>,
    _installed: subscriber::DefaultGuard,
}

/// Keeps what this thread logs from now on.
pub(super) fn capture() -> Log {
    let lines = Arc::default();
    let _installed = subscriber::set_default(Recorder { lines: Arc::clone(&lines) });
    Log { lines, _installed }
}

impl Log {
    /// The lines that hold `part`: the level, the fields, the text.
    pub(super) fn lines(&self, part: &str) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().filter(|line| line.contains(part)).cloned().collect()
    }
}

struct Recorder {
    lines: Arc<Mutex<Vec<String>>>,
}

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        _ = write!(self.0, " {field}={value:?}");
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        _ = write!(self.0, " {field}={value}");
    }
}

impl Subscriber for Recorder {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("goondan")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}
