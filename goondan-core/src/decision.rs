//! Decisions about tool calls that wait.
// ASK-02

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::conversation::Timestamp;
use crate::depth::checked;
use crate::error::{Error, ErrorCode, Result};
use crate::event::Principal;
use crate::name::ToolCallId;
use crate::question::QuestionId;

/// A decision about a tool call that waits: it runs, perhaps with other arguments, or it does not.
///
/// ```
/// use goondan::decision::Decision;
/// use goondan::event::Principal;
///
/// let yes = Decision::approve("call-1").by(Principal::new("user", "ada"));
/// let no = Decision::reject("call-2", "this customer was refunded yesterday");
/// assert!(!yes.is_rejection() && no.is_rejection());
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Decision {
    /// The call.
    pub call: ToolCallId,
    /// The question that is decided. It may be left out if one question about the call is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<QuestionId>,
    /// The verdict.
    pub verdict: Verdict,
    /// Who has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// When.
    pub at: Timestamp,
}

/// The verdict of a decision.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum Verdict {
    /// The call runs.
    #[non_exhaustive]
    Accept {
        /// The value that the question expects.
        value: Value,
        /// The arguments that the call has instead of those of the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        args: Option<Map<String, Value>>,
    },
    /// The call does not run.
    #[non_exhaustive]
    Reject {
        /// Why; the model reads it.
        reason: String,
    },
    /// The call runs, with a secret value that is not stored: the stored form of such a decision. It counts for
    /// nothing, since its value is lost with the process: the question is asked again.
    // ASK-04
    Withheld,
}

impl Decision {
    /// A decision, made now, that the call runs; with the value that its question expects.
    pub fn new(call: impl Into<ToolCallId>, value: impl Into<Value>) -> Self {
        Self::made(call.into(), Verdict::Accept { value: value.into(), args: None })
    }

    /// A decision, made now, that the call runs; with the value `true`.
    pub fn approve(call: impl Into<ToolCallId>) -> Self {
        Self::new(call, true)
    }

    /// A decision, made now, that the call does not run. The model reads the reason.
    pub fn reject(call: impl Into<ToolCallId>, reason: impl Into<String>) -> Self {
        Self::made(call.into(), Verdict::Reject { reason: reason.into() })
    }

    fn made(call: ToolCallId, verdict: Verdict) -> Self {
        Self { call, question: None, verdict, by: None, at: Timestamp::now() }
    }

    /// Sets the arguments that the call has instead of those of the model. Does nothing to a rejection.
    #[must_use]
    pub fn with_args(mut self, new: Map<String, Value>) -> Self {
        if let Verdict::Accept { args, .. } = &mut self.verdict {
            *args = Some(new);
        }
        self
    }

    /// Sets the question that is decided, for a call with several.
    #[must_use]
    pub fn of(mut self, question: QuestionId) -> Self {
        self.question = Some(question);
        self
    }

    /// Sets who has decided.
    #[must_use]
    pub fn by(mut self, principal: Principal) -> Self {
        self.by = Some(principal);
        self
    }

    /// Returns the decision, unless a value in it is nested too deeply.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` with the place.
    #[doc(hidden)]
    pub fn checked(self) -> Result<Self> {
        let Verdict::Accept { value, args } = self.verdict else { return Ok(self) };
        let value = checked(value).map_err(|error| error.refuse("the value of a decision"))?;
        let args = match args.map(|args| checked(Value::Object(args))) {
            Some(Ok(Value::Object(args))) => Some(args),
            Some(Err(error)) => return Err(error.refuse("the arguments of a decision")),
            _ => None,
        };
        Ok(Self { verdict: Verdict::Accept { value, args }, ..self })
    }

    /// Returns the decision without its value, as it is stored if that is a secret.
    #[doc(hidden)]
    #[must_use]
    pub fn withheld(&self) -> Self {
        Self { verdict: Verdict::Withheld, ..self.clone() }
    }

    /// Returns the decisions without those about calls that another one rejects, which need no more.
    #[doc(hidden)]
    pub fn needed(mut decisions: Vec<Self>) -> Vec<Self> {
        let rejected: Vec<_> = decisions.iter().filter(|it| it.is_rejection()).map(|it| it.call.clone()).collect();
        decisions.retain(|it| it.is_rejection() || !rejected.contains(&it.call));
        decisions.dedup_by(|later, earlier| later.is_rejection() && later.call == earlier.call);
        decisions
    }

    /// Returns whether the call does not run.
    pub fn is_rejection(&self) -> bool {
        matches!(self.verdict, Verdict::Reject { .. })
    }

    /// Returns the arguments that the call has instead of those of the model, if the decision sets some.
    pub fn args(&self) -> Option<&Map<String, Value>> {
        match &self.verdict {
            Verdict::Accept { args, .. } => args.as_ref(),
            Verdict::Reject { .. } | Verdict::Withheld => None,
        }
    }
}

/// Returns the value that was decided about the question with this name, `None` before that.
pub(crate) fn decided<T: DeserializeOwned>(decisions: Vec<Decision>, name: Option<&str>) -> Result<Option<T>> {
    let is_named = |decision: &Decision| decision.question.as_ref().and_then(|it| it.name.as_deref()) == name;
    match decisions.into_iter().find(is_named).map(|decision| decision.verdict) {
        None | Some(Verdict::Withheld) => Ok(None),
        Some(Verdict::Reject { reason }) => Err(Error::rejected(reason)),
        Some(Verdict::Accept { value, .. }) => T::deserialize(value).map(Some).map_err(|error| unfit(&error)),
    }
}

/// Returns the error for a value that is read as another type than the question expects.
#[cold]
pub(crate) fn unfit(error: &serde_json::Error) -> Error {
    Error::new(ErrorCode::DECISION_INVALID, format!("the value of the decision does not fit: {error}"))
        .suggest("let the question expect a value of the type that is read")
}
