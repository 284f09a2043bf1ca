//! Presentation of a commit and of a proposal: the reason, and whether it is accepted.
// PRESENT-01

use goondan::Value;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

pub(crate) fn commit(call: &ShownCall<'_>) -> Presentation {
    with_status(call, Presentation::new(call.arg("message")))
}

pub(crate) fn proposal(call: &ShownCall<'_>) -> Presentation {
    with_status(call, Presentation::new(call.arg("reason")))
}

/// Adds the status of the answer: of one that is accepted the number of files, of another the problem.
fn with_status(call: &ShownCall<'_>, presentation: Presentation) -> Presentation {
    let Some(status) = call.output("status").and_then(Value::as_str) else { return presentation };
    let problem = call.output("error").and_then(|error| error.get("message")).and_then(Value::as_str);
    let presentation = match problem {
        Some(problem) => presentation.output(problem),
        None => presentation,
    };
    if !["ok", "proposed"].contains(&status) {
        return presentation.outcome(ToolOutcome::failed(status));
    }
    let lists = call.output("summary").and_then(Value::as_object).into_iter().flat_map(|summary| summary.values());
    let files: usize = lists.filter_map(Value::as_array).map(Vec::len).sum();
    presentation.outcome(ToolOutcome::ok(match files {
        1 => "1 file".to_owned(),
        files => format!("{files} files"),
    }))
}
