//! Presents tool calls to people: runs the presenters of their tools, and cleans and limits their output.
// PRESENT-01

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use goondan_core::host::panic::catch;
use goondan_core::{Error, Presentation, ShownCall, ToolCallResult, ToolCallStatus, ToolOutcome};
use serde_json::{Map, Value, json};

use crate::registry::Tool;

/// The longest time of a presenter.
const LIMIT: Duration = Duration::from_millis(10);

/// The member of the metadata of a result's message that holds the presentation of its call.
pub(super) const PRESENTATION: &str = "presentation";

/// Returns the presentation of a call that is about to run.
pub(super) fn before(tool: &Tool, args: &Map<String, Value>) -> Presentation {
    ask(tool, &ShownCall::new(args, None)).unwrap_or_else(|| Presentation::of_arguments(args)).cleaned()
}

/// Presentation of a call that has ended.
pub(super) struct Presented<'a> {
    args: &'a Map<String, Value>,
    result: &'a ToolCallResult,
    /// Returned by the presenter of the tool, if there is one.
    own: Option<Presentation>,
}

impl<'a> Presented<'a> {
    pub(super) fn new(tool: Option<&Tool>, args: &'a Map<String, Value>, result: &'a ToolCallResult) -> Self {
        let own = tool.filter(|tool| tool.handler.presenter().is_some()).and_then(|tool| {
            let reply = result.to_reply();
            ask(tool, &ShownCall::new(args, reply.as_ref())).map(|own| with_outcome(own, result).cleaned())
        });
        Self { args, result, own }
    }

    /// Returns the output as text, and whether the presenter made it.
    pub(super) fn output(&self) -> (String, bool) {
        match self.own.as_ref().and_then(|own| own.output.clone()) {
            Some(text) => (text, true),
            None => (self.result.to_tool_output().to_text().into_owned(), false),
        }
    }

    /// Returns the presentation for runtime events, which have no output.
    pub(super) fn in_event(&self) -> Presentation {
        match &self.own {
            Some(Presentation { line, outcome, .. }) => {
                let mut presentation = Presentation::new(line.clone());
                presentation.outcome.clone_from(outcome);
                presentation
            }
            None => with_outcome(Presentation::of_arguments(self.args), self.result).cleaned(),
        }
    }

    /// Returns the JSON to store; `None` if it is derived from the arguments, which are stored anyway.
    pub(super) fn into_stored(self) -> Option<Value> {
        self.own.map(stored)
    }
}

fn stored(presentation: Presentation) -> Value {
    let Presentation { line, outcome, .. } = presentation;
    let mut stored = Map::from_iter([("line".to_owned(), line.into())]);
    if let Some(ToolOutcome { failed, words, .. }) = outcome {
        stored.insert("outcome".to_owned(), json!({ "failed": failed, "words": words }));
    }
    stored.into()
}

/// Sets the outcome, unless the presenter did.
fn with_outcome(presentation: Presentation, result: &ToolCallResult) -> Presentation {
    match (&presentation.outcome, result.status()) {
        (Some(_), _) => presentation,
        (None, ToolCallStatus::Ok) => presentation.outcome(ToolOutcome::ok("")),
        (None, _) => {
            let words =
                result.error().map_or("failed", |error| error.message.trim().lines().next().unwrap_or("failed"));
            presentation.outcome(ToolOutcome::failed(words))
        }
    }
}

/// Calls the presenter of a tool, if there is one that may be called.
fn ask(tool: &Tool, call: &ShownCall<'_>) -> Option<Presentation> {
    let (presenter, state) = (tool.handler.presenter()?, &tool.presenter);
    if state.is_slow.load(Ordering::Relaxed) {
        return None;
    }
    // Twice, because a busy machine may hold up one that is fast.
    for _ in 0..2 {
        let start = Instant::now();
        let presented = catch(|| presenter.present(call));
        if start.elapsed() <= LIMIT {
            let presented = presented.unwrap_or_else(|text| Err(Error::panicked(&text)));
            return presented.map_err(|error| log_failure(tool, &error)).ok();
        }
    }
    state.is_slow.store(true, Ordering::Relaxed);
    let extension = &tool.extension;
    tracing::warn!(%extension, "the presenter of a tool takes longer than {LIMIT:?}, and is not called again");
    None
}

/// Logs the first failure of a presenter.
#[cold]
fn log_failure(tool: &Tool, error: &Error) {
    if !tool.presenter.has_failed.swap(true, Ordering::Relaxed) {
        let extension = &tool.extension;
        tracing::warn!(%extension, code = %error.code(), "the presenter of a tool failed: {}", error.message());
    }
}
