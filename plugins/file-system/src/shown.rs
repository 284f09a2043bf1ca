//! Presentation of files that are read and directories that are listed.
// PRESENT-01

use goondan::Value;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

pub(crate) fn read(call: &ShownCall<'_>) -> Presentation {
    let presentation = Presentation::new(call.arg("path"));
    match call.output("content").and_then(Value::as_str) {
        Some(content) => presentation.output(content),
        None => presentation,
    }
}

pub(crate) fn list(call: &ShownCall<'_>) -> Presentation {
    let path = call.arg("path");
    let presentation = Presentation::new(if path.is_empty() { "." } else { &path });
    let Some(entries) = call.output("entries").and_then(Value::as_array) else { return presentation };
    let names = entries.iter().filter_map(|entry| entry.get("path").and_then(Value::as_str));
    let outcome = ToolOutcome::ok(match entries.len() {
        1 => "1 entry".to_owned(),
        count => format!("{count} entries"),
    });
    presentation.outcome(outcome).output(names.collect::<Vec<_>>().join("\n"))
}
