//! Forwards log lines and panics of a library to the host. A library has its own copy of `tracing`, whose only
//! subscriber is the one below.

use std::collections::HashMap;
use std::fmt::{Debug, Write};
use std::panic::PanicHookInfo;
use std::sync::{Once, PoisonError, RwLock};

use goondan_core::LogLevel;
use serde_json::{Map, Value};
use tracing::callsite::Identifier;
use tracing::field::{Field, Visit};
use tracing::subscriber::Interest;
use tracing::{Event, Level, Metadata, Subscriber, span};

use super::host;
use crate::table::{LogPlace, LogValue, Text};

/// Installs the subscriber and the panic hook.
pub(super) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // Fails if the library has already set a subscriber, which then stays.
        let _ = tracing::subscriber::set_global_default(Forward::default());
        std::panic::set_hook(Box::new(panicked));
    });
}

/// Logs a panic with its location, which is known only here: the host receives the message alone.
fn panicked(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no message");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = std::thread::current();
    let thread = thread.name().unwrap_or_default();
    tracing::error!(target: "goondan::extension", place, thread, "an extension panicked: {text}");
}

/// The number of a level, for the functions `extension_log` and `run_log`.
pub(super) fn level_number(level: LogLevel) -> u32 {
    match level {
        LogLevel::Error => 1,
        LogLevel::Warn => 2,
        LogLevel::Info => 3,
        _ => 4,
    }
}

/// The fields of a line as JSON, for the same functions.
pub(super) fn fields_json(fields: &Map<String, Value>) -> Vec<u8> {
    // A map of JSON values always serializes.
    serde_json::to_vec(fields).unwrap_or_default()
}

/// A subscriber that passes events to the host and ignores spans.
#[derive(Default)]
struct Forward {
    /// The number that the host returned for each callsite.
    places: RwLock<HashMap<Identifier, u64>>,
}

impl Forward {
    fn place(&self, metadata: &Metadata<'_>) -> u64 {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(&metadata.callsite()) {
            return *place;
        }
        drop(places);
        let names: Vec<_> = metadata.fields().iter().map(|field| Text::new(field.name().as_bytes())).collect();
        let place = LogPlace {
            size: size_of::<LogPlace>(),
            name: Text::new(metadata.name().as_bytes()),
            target: Text::new(metadata.target().as_bytes()),
            file: Text::new(metadata.file().unwrap_or_default().as_bytes()),
            line: metadata.line().unwrap_or_default(),
            level: trace_level_number(*metadata.level()),
            fields: names.as_ptr(),
            field_count: names.len(),
        };
        // SAFETY: The place and everything that it points to is borrowed for the call.
        let number = unsafe { (host().log_place)(&raw const place) };
        self.places.write().unwrap_or_else(PoisonError::into_inner).insert(metadata.callsite(), number);
        number
    }
}

fn trace_level_number(level: Level) -> u32 {
    match level {
        Level::ERROR => 1,
        Level::WARN => 2,
        Level::INFO => 3,
        Level::DEBUG => 4,
        Level::TRACE => 5,
    }
}

impl Subscriber for Forward {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        // The host may enable or disable the callsite later.
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // SAFETY: `log_place` returned the number.
        metadata.is_event() && unsafe { (host().log_enabled)(self.place(metadata)) } == 1
    }

    /// Spans of a library are not passed to the host; its lines appear within the spans of the host.
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, event: &Event<'_>) {
        let fields = event.metadata().fields();
        let mut values = Values { all: (0..fields.len()).map(|_| Recorded::Nothing).collect() };
        event.record(&mut values);
        let raw: Vec<_> = values.all.iter().map(Recorded::raw).collect();
        // SAFETY: `log_place` returned the number; the values, one for each field, are borrowed for the call.
        unsafe { (host().log_line)(self.place(event.metadata()), raw.as_ptr(), raw.len()) };
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

/// The values of one line, indexed by field.
struct Values {
    all: Vec<Recorded>,
}

enum Recorded {
    Nothing,
    Text(String),
    Rendered(String),
    Bits(u32, u64),
}

impl Recorded {
    fn raw(&self) -> LogValue {
        let (kind, bits, text) = match self {
            Self::Nothing => (0, 0, Text::EMPTY),
            Self::Text(text) => (1, 0, Text::new(text.as_bytes())),
            Self::Bits(kind, bits) => (*kind, *bits, Text::EMPTY),
            Self::Rendered(text) => (6, 0, Text::new(text.as_bytes())),
        };
        LogValue { kind, bits, text }
    }
}

impl Values {
    fn put(&mut self, field: &Field, value: Recorded) {
        if let Some(slot) = self.all.get_mut(field.index()) {
            *slot = value;
        }
    }
}

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let mut text = String::new();
        // Fails only if the `Debug` implementation of the value does.
        let _ = write!(text, "{value:?}");
        self.put(field, Recorded::Rendered(text));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, Recorded::Text(value.to_owned()));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, Recorded::Bits(2, value.cast_unsigned()));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, Recorded::Bits(3, value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, Recorded::Bits(4, value.to_bits()));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, Recorded::Bits(5, value.into()));
    }
}
