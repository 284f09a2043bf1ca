//! Owns the functions `log_…`: lines of a library's `tracing` become lines of this program's, with the place that they
//! come from.

use std::collections::HashMap;
use std::sync::{LazyLock, OnceLock, PoisonError, RwLock};

use tracing::level_filters::LevelFilter;
use tracing_core::callsite::{self, Identifier};
use tracing_core::field::{FieldSet, Value, display};
use tracing_core::{Callsite, Event, Interest, Kind, Level, Metadata, dispatcher};

use crate::panic::logged;
use crate::table::{LogPlace, LogValue, Text};

/// All places that were made known. They live as long as the process, like the libraries.
static PLACES: LazyLock<RwLock<Places>> = LazyLock::new(RwLock::default);

#[derive(Default)]
struct Places {
    all: Vec<&'static Place>,
    numbers: HashMap<Key, u64>,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Key {
    name: String,
    target: String,
    file: String,
    line: u32,
    level: u32,
    fields: Vec<String>,
}

/// A place, in the form in which `tracing` knows them.
struct Place(OnceLock<Metadata<'static>>);

impl Callsite for Place {
    fn set_interest(&self, _: Interest) {}

    #[expect(clippy::expect_used, reason = "it is put there before anyone knows the place")]
    fn metadata(&self) -> &Metadata<'_> {
        self.0.get().expect("a place without metadata")
    }
}

fn leaked(text: &str) -> &'static str {
    Box::leak(text.to_owned().into_boxed_str())
}

impl Place {
    fn new(key: &Key) -> &'static Self {
        let place: &'static Self = Box::leak(Box::new(Self(OnceLock::new())));
        let names: Vec<_> = key.fields.iter().map(|name| leaked(name)).collect();
        let fields = FieldSet::new(Box::leak(names.into_boxed_slice()), Identifier(place));
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
        place.0.get_or_init(|| Metadata::new(name, target, level, file, line, None, fields, Kind::EVENT));
        callsite::register(place);
        place
    }
}

fn find(number: u64) -> Option<&'static Place> {
    let places = PLACES.read().unwrap_or_else(PoisonError::into_inner);
    places.all.get(usize::try_from(number).ok()?).copied()
}

pub(super) unsafe extern "C" fn place(place: *const LogPlace) -> u64 {
    // SAFETY: The place is borrowed for this function.
    let place = unsafe { &*place };
    // SAFETY: As are its texts.
    let text = |text: Text| unsafe { text.str() }.to_owned();
    let fields = match place.field_count {
        0 => &[],
        // SAFETY: As is its list of fields.
        count => unsafe { std::slice::from_raw_parts(place.fields, count) },
    };
    let key = Key {
        name: text(place.name),
        target: text(place.target),
        file: text(place.file),
        line: place.line,
        level: place.level,
        fields: fields.iter().map(|name| text(*name)).collect(),
    };
    logged("making a place known", || {
        if let Some(number) = PLACES.read().unwrap_or_else(PoisonError::into_inner).numbers.get(&key) {
            return *number;
        }
        // Outside of the lock: whoever learns of it may log in turn.
        let place = Place::new(&key);
        let mut places = PLACES.write().unwrap_or_else(PoisonError::into_inner);
        places.all.push(place);
        let number = places.all.len() as u64 - 1;
        *places.numbers.entry(key).or_insert(number)
    })
    .unwrap_or(u64::MAX)
}

pub(super) unsafe extern "C" fn enabled(number: u64) -> u32 {
    let enabled = || {
        let Some(place) = find(number) else { return false };
        let metadata = place.metadata();
        *metadata.level() <= LevelFilter::current()
            && dispatcher::get_default(|subscriber| subscriber.enabled(metadata))
    };
    logged("asking for a log line", enabled).unwrap_or_default().into()
}

pub(super) unsafe extern "C" fn line(number: u64, values: *const LogValue, count: usize) {
    let values = match count {
        0 => &[],
        // SAFETY: The values are borrowed for this function.
        count => unsafe { std::slice::from_raw_parts(values, count) },
    };
    logged("a log line", || {
        let Some(metadata) = find(number).and_then(|place| place.0.get()) else { return };
        let values: Vec<_> = values.iter().map(value).collect();
        let values: Vec<_> = values.iter().map(Option::as_deref).collect();
        if values.len() == metadata.fields().len() {
            Event::dispatch(metadata, &metadata.fields().value_set_all(&values));
        }
    });
}

fn value(value: &LogValue) -> Option<Box<dyn Value + '_>> {
    // SAFETY: The text is borrowed for as long as the value.
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
