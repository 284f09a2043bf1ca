//! The log for people: the time of day, the level, the place, and the message with its fields.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Write};

use goondan::secret::mask;
use serde_json::{Map, Value};
use tracing::{Level, Metadata};
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::FormatTime;
use tracing_subscriber::fmt::{FormatFields, MakeWriter};

use super::fields::FieldMap;
use crate::output::{self, Style, Styled};

/// The field with the fields of a line of an extension, as the text of a JSON object.
const OF_EXTENSION: &str = "fields";

/// Makes the writers of lines for people.
pub(super) struct TextLines {
    pub(super) colors: bool,
}

impl<'a> MakeWriter<'a> for TextLines {
    type Writer = TextLine;

    fn make_writer(&'a self) -> TextLine {
        TextLine { level: None, colors: self.colors }
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> TextLine {
        TextLine { level: Some(*metadata.level()), colors: self.colors }
    }
}

/// Writes a line for people to standard error, above the line that is being typed: masks it, cleans it, and colours its
/// time and level.
pub(super) struct TextLine {
    level: Option<Level>,
    colors: bool,
}

impl TextLine {
    fn styled(&self, line: &str) -> Styled {
        let styled = Styled::new(self.colors);
        // The level is behind the time, which contains no word.
        let split = self.level.and_then(|level| Some((level, line.split_once(level.as_str())?)));
        let Some((level, (time, rest))) = split else { return styled.text(line) };
        let style = match level {
            Level::ERROR => Style::Red,
            Level::WARN => Style::Yellow,
            Level::INFO => Style::Green,
            Level::DEBUG => Style::Blue,
            Level::TRACE => Style::Magenta,
        };
        styled.paint(Style::Dim, time).paint(style, level.as_str()).text(rest)
    }
}

impl Write for TextLine {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        output::eprint_log(self.styled(&mask(&String::from_utf8_lossy(line))));
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes the time in whole seconds: local time with the feature `local-time`, and UTC without.
pub(super) struct TimeOfDay;

impl FormatTime for TimeOfDay {
    #[cfg(feature = "local-time")]
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        write!(writer, "{}", chrono::Local::now().format("%H:%M:%S"))
    }

    #[cfg(not(feature = "local-time"))]
    fn format_time(&self, writer: &mut Writer<'_>) -> fmt::Result {
        use std::time::{SystemTime, UNIX_EPOCH};

        // Before 1970, the clock is wrong anyway.
        let seconds = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        write!(writer, "{:02}:{:02}:{:02}Z", seconds / 3600 % 24, seconds / 60 % 60, seconds % 60)
    }
}

/// Writes the message, and behind it each field as `name=value`.
pub(super) struct TextFields;

impl FormatFields<'_> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'_>, fields: R) -> fmt::Result {
        let mut all = FieldMap::default();
        fields.record(&mut all);
        let mut all = all.0;
        let of_extension = all.get(OF_EXTENSION).and_then(Value::as_str);
        if let Some(of_extension) = of_extension.and_then(|json| serde_json::from_str::<Map<_, _>>(json).ok()) {
            all.shift_remove(OF_EXTENSION);
            all.extend(of_extension);
        }
        let mut separator = "";
        if let Some(message) = all.shift_remove("message") {
            write!(writer, "{}", message.as_str().unwrap_or_default())?;
            separator = " ";
        }
        for (name, value) in &all {
            write!(writer, "{separator}{name}={}", shown(value))?;
            separator = " ";
        }
        Ok(())
    }
}

/// Returns a text of one word as it is, and everything else as JSON.
fn shown(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) if !text.is_empty() && !text.contains([' ', '=', '"', '\n', '\t']) => text.into(),
        _ => value.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn texts_of_one_word_need_no_quotes() {
        let values = [json!("main"), json!("two words"), json!(""), json!("a=b"), json!(3), json!([1, "x"])];
        let expected = ["main", "\"two words\"", "\"\"", "\"a=b\"", "3", "[1,\"x\"]"];
        assert_eq!(values.each_ref().map(shown), expected);
    }
}
