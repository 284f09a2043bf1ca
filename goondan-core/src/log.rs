//! Owns the logger: text and structured values, in the name of an extension (LOG-01, LOG-02).

use std::fmt;

use serde::Serialize;
use serde_json::{Map, Value};

/// How important a log line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogLevel {
    /// Something for those who look for a defect.
    Debug,
    /// Something that happened as it should.
    Info,
    /// Something that should not have happened, and was coped with.
    Warn,
    /// Something that failed.
    Error,
}

/// Where log lines go: the runtime, or the C table of a plugin.
pub trait LogHost: Send + Sync {
    /// Writes one line.
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>);
}

/// Writes to the log in the name of an extension. Macros of `tracing` reach the same log.
///
/// ```no_run
/// # fn f(api: &goondan::ExtensionApi) {
/// api.logger().with("removed", 3).info("trimmed the conversation");
/// # }
/// ```
#[derive(Clone)]
pub struct Logger<'a> {
    host: &'a dyn LogHost,
    fields: Map<String, Value>,
}

impl<'a> Logger<'a> {
    /// A logger in front of `host`.
    #[doc(hidden)]
    pub fn new(host: &'a dyn LogHost) -> Self {
        Self { host, fields: Map::new() }
    }

    /// The same logger with a structured value on its lines.
    #[must_use]
    pub fn with(mut self, key: impl Into<String>, value: impl Serialize) -> Self {
        let value = serde_json::to_value(value).unwrap_or_else(|error| format!("not JSON: {error}").into());
        self.fields.insert(key.into(), value);
        self
    }

    /// Writes something for those who look for a defect.
    pub fn debug(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Debug, text.as_ref(), &self.fields);
    }

    /// Writes something that happened as it should.
    pub fn info(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Info, text.as_ref(), &self.fields);
    }

    /// Writes something that should not have happened, and was coped with.
    pub fn warn(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Warn, text.as_ref(), &self.fields);
    }

    /// Writes something that failed.
    pub fn error(&self, text: impl AsRef<str>) {
        self.host.log(LogLevel::Error, text.as_ref(), &self.fields);
    }
}

impl fmt::Debug for Logger<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Logger({:?})", self.fields)
    }
}
