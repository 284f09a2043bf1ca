//! The log for programs: one object per line, with `timestamp`, `level`, `target`, `message`, `fields` and `spans`.

use std::fmt;

use serde_json::{Map, Value, json};
use tracing::{Event, Subscriber};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use super::fields::FieldMap;

/// Formats an event as one line.
pub(super) struct JsonLine;

/// Stores the fields of a span as the text of a JSON object.
pub(super) struct JsonFields;

impl<S: Subscriber + for<'a> LookupSpan<'a>> FormatEvent<S, JsonFields> for JsonLine {
    fn format_event(
        &self,
        context: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut timestamp = String::new();
        SystemTime.format_time(&mut Writer::new(&mut timestamp))?;
        let mut fields = FieldMap::default();
        event.record(&mut fields);
        fields.mask_secrets();
        let message = fields.0.shift_remove("message").unwrap_or_default();
        // Outermost first.
        let spans: Vec<_> = context
            .event_scope()
            .into_iter()
            .flat_map(|scope| scope.from_root())
            .map(|span| {
                let extensions = span.extensions();
                let mut fields =
                    FieldMap(extensions.get::<FormattedFields<JsonFields>>().map(parse).unwrap_or_default());
                fields.mask_secrets();
                json!({ "name": span.name(), "fields": fields.0 })
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

impl FormatFields<'_> for JsonFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'_>, fields: R) -> fmt::Result {
        let mut all = FieldMap::default();
        fields.record(&mut all);
        write!(writer, "{}", Value::from(all.0))
    }

    fn add_fields(&self, stored: &mut FormattedFields<Self>, fields: &tracing::span::Record<'_>) -> fmt::Result {
        let mut all = FieldMap(parse(stored));
        fields.record(&mut all);
        stored.fields = Value::from(all.0).to_string();
        Ok(())
    }
}

/// Returns the stored fields of a span.
fn parse(stored: &FormattedFields<JsonFields>) -> Map<String, Value> {
    serde_json::from_str(&stored.fields).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use tracing_subscriber::prelude::*;

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn fields_keep_their_types_and_spans_their_fields() {
        let out = Buffer::default();
        let writer = {
            let out = out.clone();
            move || out.clone()
        };
        let layer = tracing_subscriber::fmt::layer().with_writer(writer).fmt_fields(JsonFields).event_format(JsonLine);
        tracing::subscriber::with_default(tracing_subscriber::registry().with(layer), || {
            let outer = tracing::info_span!("turn", id = "a\"b", steps = tracing::field::Empty).entered();
            outer.record("steps", 3);
            let _inner = tracing::info_span!("step").entered();
            tracing::warn!(target: "x::y", count = -1, ratio = 0.5, open = true, name = %"n", "two\nlines {}", 1);
        });
        let text = String::from_utf8(out.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        let mut line: Value = serde_json::from_str(&text).unwrap();
        line["timestamp"].take();
        let expected = json!({
            "timestamp": null,
            "level": "WARN",
            "target": "x::y",
            "message": "two\nlines 1",
            "fields": { "count": -1, "ratio": 0.5, "open": true, "name": "n" },
            "spans": [
                { "name": "turn", "fields": { "id": "a\"b", "steps": 3 } },
                { "name": "step", "fields": {} },
            ],
        });
        assert_eq!(line, expected);
    }
}
