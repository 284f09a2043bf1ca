//! A line of input that decides about a tool call which waits.

use goondan_core::{Decision, LiveQuestionId, QuestionId, ToolCallId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A line that `goondan run --json` reads: it decides about a tool call that waits, and the turn goes on; or it answers a
/// live question, [`Update::Asked`](crate::Update::Asked), while the turn runs.
///
/// ```
/// use goondan::wire::DecideLine;
///
/// let line: DecideLine = serde_json::from_str(r#"{"decide": {"call": "call-1", "reject": "not today"}}"#)?;
/// assert!(line.decide.into_decision().is_rejection());
/// # Ok::<(), serde_json::Error>(())
/// ```
// ASK-04
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct DecideLine {
    /// The decision.
    pub decide: Deciding,
}

/// A decision in a [`DecideLine`]. Without `value`, `args` and `reject`, it says yes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct Deciding {
    /// The live question that is answered, if another conversation has a call with the same id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<LiveQuestionId>,
    /// The call.
    pub call: ToolCallId,
    /// The question, which may be left out if one is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// The value that the question expects; `true` by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The arguments that the call has instead of those of the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<Map<String, Value>>,
    /// Why the call does not run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reject: Option<String>,
}

impl Deciding {
    /// Returns the decision, made now.
    pub fn into_decision(self) -> Decision {
        let Self { call, question, value, args, reject, .. } = self;
        let decision = match reject {
            Some(reason) => Decision::reject(call, reason),
            None => Decision::new(call, value.unwrap_or(Value::Bool(true))),
        };
        let decision = args.into_iter().fold(decision, Decision::with_args);
        question.into_iter().fold(decision, Decision::of)
    }
}
