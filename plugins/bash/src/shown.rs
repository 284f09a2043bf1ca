//! Presentation of a command for people: its text, its output and its end.
// PRESENT-01

use goondan::Value;
use goondan::tool::{Presentation, ShownCall, ToolOutcome};

pub(crate) fn exec(call: &ShownCall<'_>) -> Presentation {
    ended(call, call.arg("command").into_owned())
}

pub(crate) fn script(call: &ShownCall<'_>) -> Presentation {
    let args = call.args().get("args").and_then(Value::as_array).into_iter().flatten();
    let words = args.filter_map(Value::as_str).map(|arg| format!(" {arg}"));
    ended(call, words.fold(call.arg("path").into_owned(), |line, word| line + &word))
}

/// Adds how the program ended.
fn ended(call: &ShownCall<'_>, line: String) -> Presentation {
    let presentation = Presentation::new(line);
    if call.reply().is_none() {
        return presentation;
    }
    let code = call.output("exitCode").and_then(Value::as_i64);
    let outcome = match (call.output("timedOut").and_then(Value::as_bool), code) {
        (Some(true), _) => ToolOutcome::failed("timed out"),
        (_, Some(0)) => ToolOutcome::ok(""),
        (_, Some(code)) => ToolOutcome::failed(format!("exit {code}")),
        (_, None) => ToolOutcome::failed(call.output("signal").and_then(Value::as_str).unwrap_or("ended by a signal")),
    };
    let wrote = |stream| call.output(stream).and_then(Value::as_str).unwrap_or_default();
    let (stdout, stderr) = (wrote("stdout"), wrote("stderr"));
    let between = if stdout.is_empty() || stdout.ends_with('\n') { "" } else { "\n" };
    presentation.outcome(outcome).output(format!("{stdout}{between}{stderr}"))
}
