//! The functions `log_…`: log lines of a library become events of this program's `tracing`, each with the callsite in
//! the library that wrote it.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use tracing::level_filters::LevelFilter;
use tracing_core::callsite::{self, Identifier};
use tracing_core::field::{FieldSet, Value, display};
use tracing_core::{Callsite, Event, Interest, Kind, Level, Metadata, dispatcher};

use crate::panic::catch_or_log;
use crate::table::{LogPlace, LogValue, Text};

/// All registered callsites. They are never dropped, as libraries are never unloaded.
static CALLSITES: LazyLock<RwLock<Callsites>> = LazyLock::new(RwLock::default);

#[derive(Default)]
struct Callsites {
    all: Vec<&'static LibraryCallsite>,
    numbers: HashMap<CallsiteKey, u64>,
}

/// Identifies a callsite. A new build of a library shares the callsites that did not change.
#[derive(Clone, PartialEq, Eq, Hash)]
struct CallsiteKey {
    name: String,
    target: String,
    file: String,
    line: u32,
    level: u32,
    fields: Vec<String>,
}

/// A callsite of a library, in the form that `tracing` requires.
struct LibraryCallsite(OnceLock<Metadata<'static>>);

impl Callsite for LibraryCallsite {
    fn set_interest(&self, _: Interest) {}

    #[expect(clippy::expect_used, reason = "`new` sets it before it registers the callsite")]
    fn metadata(&self) -> &Metadata<'_> {
        self.0.get().expect("a callsite without metadata")
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

impl LibraryCallsite {
    fn new(key: &CallsiteKey) -> &'static Self {
        let callsite: &'static Self = Box::leak(Box::new(Self(OnceLock::new())));
        let names: Vec<_> = key.fields.iter().map(|name| leaked(name)).collect();
        let fields = FieldSet::new(Box::leak(names.into_boxed_slice()), Identifier(callsite));
        let level = match key.level {
            1 => Level::ERROR,
            2 => Level::WARN,
            3 => Level::INFO,
            4 => Level::DEBUG,
            _ => Level::TRACE,
        };
        let file = if key.file.is_empty() { None } else { Some(leaked(&key.file)) };
        let line = if key.line == 0 { None } else { Some(key.line) };
        let (name, target) = (leaked(&key.name), leaked(&key.target));
        callsite.0.get_or_init(|| Metadata::new(name, target, level, file, line, None, fields, Kind::EVENT));
        callsite::register(callsite);
        callsite
    }
}

fn find(number: u64) -> Option<&'static LibraryCallsite> {
    let callsites = CALLSITES.read().unwrap_or_else(PoisonError::into_inner);
    callsites.all.get(usize::try_from(number).ok()?).copied()
}

pub(super) unsafe extern "C" fn place(place: *const LogPlace) -> u64 {
    // SAFETY: The contract makes the place valid for this call.
    let place = unsafe { &*place };
    // SAFETY: The contract makes its texts valid for this call.
    let text = |text: Text| unsafe { text.str() }.to_owned();
    let fields = match place.field_count {
        0 => &[],
        // SAFETY: The contract makes its list of fields valid for this call; the count is not 0, so it is not null.
        count => unsafe { std::slice::from_raw_parts(place.fields, count) },
    };
    let key = CallsiteKey {
        name: text(place.name),
        target: text(place.target),
        file: text(place.file),
        line: place.line,
        level: place.level,
        fields: fields.iter().map(|name| text(*name)).collect(),
    };
    catch_or_log("registering a callsite", || {
        if let Some(number) = CALLSITES.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&key) {
            return *number;
        }
        // Without the lock, because registering calls the subscriber, which may log and thereby get here again.
        let callsite = LibraryCallsite::new(&key);
        let mut callsites = CALLSITES.write().unwrap_or_else(PoisonError::into_inner);
        callsites.all.push(callsite);
        let number = callsites.all.len() as u64 - 1;
        *callsites.numbers.entry(key).or_insert(number)
    })
    .unwrap_or(u64::MAX)
}

pub(super) unsafe extern "C" fn enabled(number: u64) -> u32 {
    let enabled = || {
        let Some(callsite) = find(number) else { return false };
        let metadata = callsite.metadata();
        *metadata.level() <= LevelFilter::current()
            && dispatcher::get_default(|subscriber| subscriber.enabled(metadata))
    };
    catch_or_log("checking a log level", enabled).unwrap_or_default().into()
}

pub(super) unsafe extern "C" fn line(number: u64, values: *const LogValue, count: usize) {
    let values = match count {
        0 => &[],
        // SAFETY: The contract makes the values valid for this call; the count is not 0, so the pointer is not null.
        count => unsafe { std::slice::from_raw_parts(values, count) },
    };
    catch_or_log("a log line", || {
        let Some(metadata) = find(number).and_then(|callsite| callsite.0.get()) else { return };
        let values: Vec<_> = values.iter().map(value).collect();
        let values: Vec<_> = values.iter().map(Option::as_deref).collect();
        if values.len() == metadata.fields().len() {
            Event::dispatch(metadata, &metadata.fields().value_set_all(&values));
        }
    });
}

fn value(value: &LogValue) -> Option<Box<dyn Value + '_>> {
    // SAFETY: `line` requires values whose text is valid for the call, and `value` is borrowed from them.
    let text = || unsafe { value.text.str() };
    Some(match value.kind {
        1 => Box::new(text()),
        2 => Box::new(value.bits.cast_signed()),
        3 => Box::new(value.bits),
        4 => Box::new(f64::from_bits(value.bits)),
        5 => Box::new(value.bits != 0),
        6 => Box::new(display(text())),
        _ => return None,
    })
}
