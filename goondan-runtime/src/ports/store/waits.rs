//! Tool calls that wait for a decision, as the journal of their turn keeps them.

use goondan_core::{ExtensionName, Principal, Timestamp, ToolCallId, ToolName};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A tool call that does not run before somebody has decided.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Wait {
    /// The call.
    pub call: ToolCallId,
    /// Its tool.
    pub tool: ToolName,
    /// The arguments with which it would run.
    pub args: Value,
    /// What is asked about it.
    pub questions: Vec<Question>,
    /// When it was asked.
    pub since: Timestamp,
    /// When it is too late for a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Timestamp>,
}

impl Wait {
    /// The call `call` of `tool`, which was asked about now, and has no question yet.
    pub fn new(call: ToolCallId, tool: ToolName, args: Value) -> Self {
        Self { call, tool, args, questions: Vec::new(), since: Timestamp::now(), expires: None }
    }

    /// Adds a question.
    #[must_use]
    pub fn question(mut self, question: Question) -> Self {
        self.questions.push(question);
        self
    }
}

/// A question about a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Question {
    /// The extension that asks.
    pub by: ExtensionName,
    /// What a person reads.
    pub text: String,
    /// The JSON schema of the value that is expected. `None` for any value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

impl Question {
    /// A question of an extension.
    pub fn new(by: ExtensionName, text: impl Into<String>) -> Self {
        Self { by, text: text.into(), schema: None }
    }
}

/// What somebody has decided about a tool call that waits.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Decision {
    /// The call.
    pub call: ToolCallId,
    /// The value that the question expects.
    pub value: Value,
    /// Who has decided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// When.
    pub at: Timestamp,
}

impl Decision {
    /// A decision about `call`, made now.
    pub fn new(call: ToolCallId, value: Value) -> Self {
        Self { call, value, by: None, at: Timestamp::now() }
    }

    /// Sets who has decided.
    #[must_use]
    pub fn by(mut self, principal: Principal) -> Self {
        self.by = Some(principal);
        self
    }
}
