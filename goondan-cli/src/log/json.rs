//! Owns the log for programs: one object a line, with `timestamp`, `level`, `target`, `message`, `fields` and `spans`.

use std::fmt::{self, Debug};

use serde_json::{Map, Value, json};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// Writes an event as a line.
pub(super) struct Line;

/// Keeps the fields of a span as the text of an object.
pub(super) struct Fields;

impl<S: Subscriber + for<'a> LookupSpan<'a>> FormatEvent<S, Fields> for Line {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Fields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut fields = Members::default();
        event.record(&mut fields);
        let message = fields.0.shift_remove("message").unwrap_or_default();
        // The outermost first, as they were entered.
        let spans: Vec<_> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| {
                let extensions = span.extensions();
                let fields = extensions.get::<FormattedFields<Fields>>().map(members).unwrap_or_default();
                json!({ "name": span.name(), "fields": fields })
            })
            .collect();
        let metadata = event.metadata();
        let line = json!({
            "timestamp": timestamp,
            "level": metadata.level().as_str(),
            "target": metadata.target(),
            "message": message,
            "fields": fields.0,
            "spans": spans,
        });
        writeln!(writer, "{line}")
    }
}

impl FormatFields<'_> for Fields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'_>, fields: R) -> fmt::Result {
        let mut all = Members::default();
        fields.record(&mut all);
        write!(writer, "{}", Value::from(all.0))
    }

    fn add_fields(&self, kept: &mut FormattedFields<Self>, fields: &tracing::span::Record<'_>) -> fmt::Result {
        let mut all = Members(members(kept));
        fields.record(&mut all);
        kept.fields = Value::from(all.0).to_string();
        Ok(())
    }
}

/// What was kept of a span.
fn members(kept: &FormattedFields<Fields>) -> Map<String, Value> {
    serde_json::from_str(&kept.fields).unwrap_or_default()
}

/// Fields on their way into an object.
#[derive(Default)]
struct Members(Map<String, Value>);

impl Members {
    fn add(&mut self, field: &Field, value: impl Into<Value>) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}

impl Visit for Members {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add(field, format!("{value:?}"));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value);
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.add(field, value);
    }
}
