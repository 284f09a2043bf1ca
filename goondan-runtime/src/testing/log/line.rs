//! A log line: one event of `tracing`, in the terms of extensions.

use std::fmt;

use goondan_core::LogLevel;
use goondan_core::host::secret::{mask_members, mask_text};
use serde_json::{Map, Value};
use tracing::field::{Field, Visit};
use tracing::{Level, Metadata};

/// A line of the log. If a test fails, all lines are printed.
///
/// Lines are recorded from the thread that the chat was started on: that is all lines of a test on tokio's
/// current-thread runtime, the default of `#[tokio::test]`. Lines of other threads, such as those of blocking tools,
/// are not recorded. Values of a [`Secret`](goondan_core::Secret) are masked, as they are in every log.
///
/// ```
/// use goondan::extension::LogLevel;
/// use goondan::testing::Chat;
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> goondan::Result<()> {
/// let chat = Chat::builder().start().await?;
/// tracing::warn!(disk = 97, "nearly full");
/// let line = &chat.logs()[0];
/// assert_eq!((line.level, line.text.as_str()), (LogLevel::Warn, "nearly full"));
/// assert_eq!(line.fields["disk"], 97);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub struct LogLine {
    /// The level. Lines below [`LogLevel::Debug`] are not recorded.
    pub level: LogLevel,
    /// The module that logged it; `goondan::extension` for the logger of an extension.
    pub target: String,
    /// The text.
    pub text: String,
    /// The extension that logged it, or that it is about.
    pub extension: Option<String>,
    /// The values of the line, such as those of [`Logger::with`](goondan_core::Logger::with).
    pub fields: Map<String, Value>,
    /// The values that the runtime adds: the conversation, and the turn and step in which the line was logged.
    pub context: Map<String, Value>,
}

impl LogLine {
    /// Returns the line with `fields`, in spans with the values `context`; `None` for the level trace, which is not
    /// recorded.
    pub(super) fn of(
        metadata: &Metadata<'_>,
        mut context: Map<String, Value>,
        mut fields: Map<String, Value>,
    ) -> Option<Self> {
        let level = match *metadata.level() {
            Level::ERROR => LogLevel::Error,
            Level::WARN => LogLevel::Warn,
            Level::INFO => LogLevel::Info,
            Level::DEBUG => LogLevel::Debug,
            Level::TRACE => return None,
        };
        let text = take(&mut fields, "message").unwrap_or_default();
        let around = take(&mut context, "extension");
        let extension = take(&mut fields, "extension").or(around);
        if metadata.target() == "goondan::extension" {
            // The logger of an extension has all its values in one field; the other fields are the runtime's.
            let own = take(&mut fields, "fields").and_then(|json| serde_json::from_str(&json).ok());
            context.extend(std::mem::replace(&mut fields, own.unwrap_or_default()));
        }
        Some(Self { level, target: metadata.target().to_owned(), text, extension, fields, context })
    }

    /// Returns the line without secrets.
    pub(super) fn masked(mut self) -> Self {
        mask_text(&mut self.text);
        mask_members(&mut self.fields);
        mask_members(&mut self.context);
        self
    }
}

impl fmt::Debug for LogLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} ", self.level)?;
        if let Some(extension) = &self.extension {
            write!(f, "[{extension}] ")?;
        }
        f.write_str(&self.text)?;
        // A value that is in both is printed once.
        let context = self.context.iter().filter(|(name, _)| !self.fields.contains_key(*name));
        context.chain(&self.fields).try_for_each(|(name, value)| write!(f, " {name}={value}"))
    }
}

fn take(values: &mut Map<String, Value>, name: &str) -> Option<String> {
    match values.shift_remove(name)? {
        Value::String(text) => Some(text),
        other => Some(other.to_string()),
    }
}

/// Collects the fields of an event or a span.
pub(super) struct FieldVisitor<'a>(pub(super) &'a mut Map<String, Value>);

impl FieldVisitor<'_> {
    fn put(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for FieldVisitor<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.put(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.put(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, value);
    }
}
