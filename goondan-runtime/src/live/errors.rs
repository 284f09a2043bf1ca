//! Why a decision is not taken.
// ASK-02

use goondan_core::{Decision, Error, ErrorCode, Question, Result, Verdict};

use crate::schema::{Schema, summary};

/// Fails if the value of a decision does not fit its question.
///
/// # Errors
/// `E_DECISION_INVALID`.
pub(crate) fn check_value(decision: &Decision, question: &Question) -> Result<()> {
    let (Verdict::Accept { value, .. }, Some(schema)) = (&decision.verdict, &question.schema) else { return Ok(()) };
    let violations = Schema::compile(schema).map(|schema| schema.violations(value)).unwrap_or_default();
    if violations.is_empty() {
        return Ok(());
    }
    Err(invalid(decision, &format!("its value does not fit: {}", summary(&violations))))
}

#[cold]
pub(crate) fn not_waiting(decision: Option<&Decision>) -> Error {
    let message = match decision {
        Some(decision) => format!("the call `{}` does not wait for a decision", decision.call),
        None => "no call waits for a decision".to_owned(),
    };
    Error::new(ErrorCode::NOT_WAITING, message).suggest("`Instance::waits` returns the calls that wait")
}

#[cold]
pub(crate) fn taken(first: &Decision) -> Error {
    let by = first.by.as_ref().map(|by| format!(" by {} `{}`", by.kind, by.id)).unwrap_or_default();
    let what = if first.is_rejection() { "rejected" } else { "approved" };
    let message = format!("the call `{}` was {what}{by} at {}", first.call, first.at);
    let error = Error::new(ErrorCode::DECISION_TAKEN, message).suggest("the first decision counts");
    match serde_json::to_string(first) {
        Ok(first) => error.with_detail("decision", first),
        Err(_) => error,
    }
}

#[cold]
pub(crate) fn invalid(decision: &Decision, why: &str) -> Error {
    Error::new(
        ErrorCode::DECISION_INVALID,
        format!("the decision about the call `{}` is not taken: {why}", decision.call),
    )
    .suggest("`Instance::waits` returns the questions, with what they expect")
}
