//! The logger of an extension: text and structured values.
// LOG-01, LOG-02

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

use crate::depth;

/// The importance of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum LogLevel {
    /// Details for finding a defect.
    Debug,
    /// Normal operation.
    Info,
    /// A problem that was handled.
    Warn,
    /// A failure.
    Error,
}

/// The receiver of log lines: the runtime, or the host behind the C table of a loaded extension.
pub trait LogHost: Send + Sync {
    /// Writes one line.
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>);
}

/// Writes to the log; each line carries the name of the extension. The macros of `tracing` write to the same log.
///
/// ```no_run
/// # fn f(api: &goondan::extension::ExtensionApi) {
/// api.logger().with("removed", 3).info("trimmed the conversation");
/// # }
/// ```
#[derive(Clone)]
pub struct Logger<'a> {
    host: &'a dyn LogHost,
    fields: Map<String, Value>,
}

impl<'a> Logger<'a> {
    /// Returns a logger that writes to `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn LogHost) -> Self {
        Self { host, fields: Map::new() }
    }

    /// Adds a structured value to all lines of this logger.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Serialize) -> Self {
        let value = depth::to_value(value).unwrap_or_else(|error| format!("not JSON: {error}").into());
        self.fields.insert(key.into(), value);
        self
    }

    /// Writes a line of this level.
    pub fn log(&self, level: LogLevel, text: impl AsRef<str>) {
        self.host.log(level, text.as_ref(), &self.fields);
    }

    /// Writes a line of the level [`Debug`](LogLevel::Debug).
    pub fn debug(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Debug, text.as_ref(), &self.fields);
    }

    /// Writes a line of the level [`Info`](LogLevel::Info).
    pub fn info(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Info, text.as_ref(), &self.fields);
    }

    /// Writes a line of the level [`Warn`](LogLevel::Warn).
    pub fn warn(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Warn, text.as_ref(), &self.fields);
    }

    /// Writes a line of the level [`Error`](LogLevel::Error).
    pub fn error(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Error, text.as_ref(), &self.fields);
    }
}

impl fmt::Debug for Logger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logger({:?})", self.fields)
    }
}
