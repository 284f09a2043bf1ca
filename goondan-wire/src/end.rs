//! The end of a turn: its result, or the error that it failed with.

#[cfg(feature = "runtime")]
use goondan_core::host::VALUE;
use goondan_core::{
    AgentName, Error, ErrorCode, EventSource, FinishReason, InstanceKey, Result, TokenUsage, ToolCallSummary, TurnId,
    TurnResult, Wait,
};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The end of a turn. `goondan run --json` prints one for each turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct TurnEnd {
    /// The id of the turn; `None` if the input started none.
    pub turn_id: Option<TurnId>,
    /// Why it ended.
    pub finish_reason: FinishReason,
    /// The text of the answer, if there is one.
    pub response: Option<String>,
    /// The value that the answer is, if one was expected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// The number of its steps.
    pub steps: u32,
    /// Its tool calls.
    pub tool_calls: Vec<ToolCallSummary>,
    /// The tokens that it used, if the model reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The tokens that it used with the turns of other agents that it has waited for, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_usage: Option<TokenUsage>,
    /// The calls that wait for decisions, if it is suspended. Secrets in their arguments are masked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits: Vec<Wait>,
    /// The error that it failed with, or from which a middleware recovered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorBody>,
    /// Where it belongs, if it answers no input of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub background: Option<Background>,
}

impl TurnEnd {
    /// The end of a turn with this outcome.
    pub fn of(outcome: &Result<TurnResult>) -> Self {
        match outcome {
            Ok(turn) => Self {
                turn_id: Some(turn.turn_id().clone()),
                finish_reason: turn.finish_reason(),
                response: turn.response().map(|_| turn.text().into_owned()),
                value: turn.is_value().then(|| turn.value().ok()).flatten(),
                steps: turn.steps(),
                tool_calls: turn.tool_calls().to_vec(),
                usage: turn.usage(),
                whole_usage: turn.whole_usage().filter(|whole| turn.usage() != Some(*whole)),
                waits: turn.waits().iter().map(Wait::masked).collect(),
                error: turn.error().map(ErrorBody::from),
                background: None,
            },
            Err(error) => Self {
                turn_id: error.turn().map(|turn| turn.id.clone()),
                finish_reason: FinishReason::Error,
                response: None,
                value: None,
                steps: error.turn().map_or(0, |turn| turn.steps),
                tool_calls: error.turn().map_or_else(Vec::new, |turn| turn.tool_calls.clone()),
                usage: None,
                whole_usage: None,
                waits: Vec::new(),
                error: Some(ErrorBody::from(error)),
                background: None,
            },
        }
    }

    /// The end of a turn that ended earlier, as far as it is left: the outcome and the message with the answer.
    #[cfg(feature = "runtime")]
    pub fn stored(ended: &goondan_runtime::store::EndedTurn, answer: Option<&goondan_core::Message>) -> Self {
        use goondan_runtime::store::TurnOutcome;
        let error = match &ended.outcome {
            TurnOutcome::Failed { code, message, .. } => Some(Error::new(code.clone(), message.clone())),
            TurnOutcome::Cancelled { .. } => Some(Error::new(ErrorCode::TURN_CANCELLED, "the turn was cancelled")),
            TurnOutcome::Interrupted { .. } => {
                Some(Error::new(ErrorCode::TURN_INTERRUPTED, "the turn was interrupted, and closed without an answer"))
            }
            TurnOutcome::Rewound { .. } => Some(Error::new(ErrorCode::TURN_REWOUND, "the turn was taken back")),
            _ => None,
        };
        let finish_reason = match &ended.outcome {
            TurnOutcome::Answered { finish_reason, .. } => *finish_reason,
            _ => FinishReason::Error,
        };
        let text = answer.filter(|_| error.is_none()).map(|message| message.text().into_owned());
        let is_value = answer.is_some_and(|message| message.metadata().get(VALUE) == Some(&Value::Bool(true)));
        Self {
            turn_id: Some(ended.turn.clone()),
            finish_reason,
            value: text.as_deref().filter(|_| is_value).and_then(|text| serde_json::from_str(text).ok()),
            response: text,
            steps: 0,
            tool_calls: Vec::new(),
            usage: None,
            whole_usage: None,
            waits: Vec::new(),
            error: error.as_ref().map(ErrorBody::from),
            background: None,
        }
    }

    /// Says where a turn belongs that answers no input of the user.
    #[must_use]
    pub fn in_background(self, background: impl Into<Background>) -> Self {
        Self { background: Some(background.into()), ..self }
    }
}

/// An error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ErrorBody {
    /// The fault.
    pub message: String,
    /// The stable code.
    pub code: String,
    /// The remedy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The page that explains the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help_url: Option<String>,
}

impl From<&Error> for ErrorBody {
    fn from(error: &Error) -> Self {
        Self {
            message: error.message().into_owned(),
            code: error.code().to_string(),
            suggestion: error.suggestion().map(str::to_owned),
            help_url: error.help_url(),
        }
    }
}

/// Where a turn belongs that answers no input of the user: one that an extension, a tool or an agent started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Background {
    /// The agent that ran the turn.
    pub agent: AgentName,
    /// The key of its instance.
    pub instance: InstanceKey,
    /// The source that started it.
    pub source: EventSource,
    /// The text of its input.
    pub input: Option<String>,
}

#[cfg(feature = "runtime")]
impl From<&goondan_runtime::BackgroundTurn> for Background {
    fn from(turn: &goondan_runtime::BackgroundTurn) -> Self {
        Self {
            agent: turn.agent.clone(),
            instance: turn.instance.clone(),
            source: turn.input.source.clone(),
            input: turn.input.input.clone(),
        }
    }
}
