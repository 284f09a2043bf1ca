//! Presentation of a request for people: its URL, and the status and body of the answer.
// PRESENT-01

use goondan::Value;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

pub(crate) fn to_url(call: &ShownCall<'_>) -> Presentation {
    answered(call, call.arg("url").into_owned())
}

pub(crate) fn with_method(call: &ShownCall<'_>) -> Presentation {
    answered(call, format!("{} {}", call.arg("method"), call.arg("url")))
}

fn answered(call: &ShownCall<'_>, line: String) -> Presentation {
    let presentation = Presentation::new(line);
    let Some(status) = call.output("status").and_then(Value::as_u64) else { return presentation };
    let outcome = if status < 400 { ToolOutcome::ok } else { ToolOutcome::failed };
    let body = call.output("body").and_then(Value::as_str).unwrap_or_default();
    presentation.outcome(outcome(status.to_string())).output(body)
}
