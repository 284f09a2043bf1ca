//! The result of a tool call.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::conversation::ToolOutput;
use crate::crossing::{MaybeRemote, result_fields};
use crate::depth;
use crate::error::Error;
use crate::name::ToolCallId;
use crate::outcome::ToolCallStatus;
use crate::pipeline::{ToolCallContext, ToolCallDraft};
use crate::secret::mask_text;

/// The result of a tool call: the output of the handler, or an error, which the model reads.
///
/// A tool-call middleware gets it from [`Next::run`](crate::Next::run), and a step middleware in
/// [`StepResult::tool_results`](crate::StepResult::tool_results). A middleware can change the output or the error, and
/// can neither construct nor clone a result.
///
/// ```
/// use goondan::prelude::*;
///
/// # struct Shorten;
/// # #[goondan::extension(name = "shorten")]
/// # impl Shorten {
/// #     #[init]
/// #     fn new() -> Self {
/// #         Self
/// #     }
/// #
/// #[middleware(toolCall)]
/// async fn shorten(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
///     let mut result = next.run(ctx).await?;
///     if let Some(text) = result.output().and_then(|output| output.as_str()).filter(|text| text.len() > 10_000) {
///         let short: String = text.chars().take(10_000).collect();
///         result.set_output(short);
///     }
///     Ok(result)
/// }
/// # }
/// ```
// F-TOOL, NEXT-01
#[derive(Debug)]
pub struct ToolCallResult {
    data: MaybeRemote<ToolCallData>,
}

result_fields! {
    /// The fields of a [`ToolCallResult`].
    pub struct ToolCallData for ToolCallResult {
        call_id: ToolCallId = "toolCallId",
        tool_name: String = "toolName",
        outcome: Outcome = "outcome",
    }
    local {}
}

/// How a call ended; in JSON `{"output": …}` or `{"error": …}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Output(Value),
    Error(ToolError),
}

impl From<Result<Value, ToolError>> for Outcome {
    fn from(outcome: Result<Value, ToolError>) -> Self {
        outcome.map_or_else(Self::Error, Self::Output)
    }
}

impl ToolCallResult {
    #[cfg(feature = "runtime")]
    pub(crate) fn from_parts(call_id: ToolCallId, tool_name: String, outcome: Result<Value, ToolError>) -> Self {
        Self {
            data: MaybeRemote::local(ToolCallData {
                call_id: call_id.into(),
                tool_name: tool_name.into(),
                outcome: Outcome::from(outcome).into(),
            }),
        }
    }

    pub(in crate::pipeline) fn recovered(_: Error, draft: ToolCallDraft, ctx: &ToolCallContext<'_>) -> Self {
        Self {
            data: MaybeRemote::local(ToolCallData {
                call_id: ctx.call_id().clone().into(),
                tool_name: ctx.tool_name().to_owned().into(),
                outcome: Outcome::from(draft.outcome.map_err(ToolError::masked)).into(),
            }),
        }
    }

    /// Returns the id of the call.
    pub fn call_id(&self) -> &ToolCallId {
        self.data.field(|data| &data.call_id)
    }

    /// Returns the tool's name as the model wrote it.
    pub fn tool_name(&self) -> &str {
        self.data.field(|data| &data.tool_name)
    }

    /// Returns whether the call ended with an output or an error.
    pub fn status(&self) -> ToolCallStatus {
        match self.outcome() {
            Outcome::Output(_) => ToolCallStatus::Ok,
            Outcome::Error(_) => ToolCallStatus::Error,
        }
    }

    /// Returns the output, if the call ended with one.
    pub fn output(&self) -> Option<&Value> {
        match self.outcome() {
            Outcome::Output(output) => Some(output),
            Outcome::Error(_) => None,
        }
    }

    /// Returns the error, if the call ended with one.
    pub fn error(&self) -> Option<&ToolError> {
        match self.outcome() {
            Outcome::Output(_) => None,
            Outcome::Error(error) => Some(error),
        }
    }

    /// Replaces the output or error by `output`; an output that is nested too deeply becomes the error `E_VALUE_DEPTH`.
    pub fn set_output(&mut self, output: impl Into<Value>) {
        let outcome = depth::checked_output(output.into()).map_err(ToolError::from);
        self.data.get_mut().outcome.set(outcome.into());
    }

    /// Replaces the output or error by `error`. Secrets in its texts are masked.
    pub fn set_error(&mut self, error: impl Into<ToolError>) {
        self.data.get_mut().outcome.set(Outcome::Error(error.into().masked()));
    }

    /// Returns what the model is sent: text as text, other output as JSON, an error with code, remedy and help page.
    pub fn to_tool_output(&self) -> ToolOutput {
        match self.outcome() {
            Outcome::Output(Value::String(text)) => ToolOutput::Text(text.clone()),
            Outcome::Output(value) => ToolOutput::Json(value.clone()),
            Outcome::Error(error) => ToolOutput::Text(error.to_string()),
        }
    }

    fn outcome(&self) -> &Outcome {
        self.data.field(|data| &data.outcome)
    }
}

/// The error of a tool call, as the model reads it.
// F-TOOL
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolError {
    /// The message.
    pub message: String,
    /// The stable code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// What the model can do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The page that explains the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help_url: Option<String>,
}

impl From<&Error> for ToolError {
    fn from(error: &Error) -> Self {
        Self {
            message: error.message().into_owned(),
            code: Some(error.code().to_string()),
            suggestion: error.suggestion().map(str::to_owned),
            help_url: error.help_url(),
        }
    }
}

impl ToolError {
    /// An error with this message, and without a code.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: None, suggestion: None, help_url: None }
    }

    /// Returns the error with secrets masked: a middleware may have written any text into its fields.
    fn masked(mut self) -> Self {
        mask_text(&mut self.message);
        let optional = [&mut self.code, &mut self.suggestion, &mut self.help_url];
        optional.into_iter().flatten().for_each(mask_text);
        self
    }

    /// Returns the error with its message cut to `limit` characters.
    // F-TOOL
    #[cfg(feature = "runtime")]
    #[must_use]
    pub(crate) fn cut(mut self, limit: usize) -> Self {
        const END: &str = "... (truncated)";
        if self.message.chars().count() > limit {
            let end = if limit > END.len() { END } else { "" };
            self.message = self.message.chars().take(limit - end.len()).collect();
            self.message.push_str(end);
        }
        self
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        Self::from(&error)
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("error")?;
        if let Some(code) = &self.code {
            write!(f, " {code}")?;
        }
        write!(f, ": {}", self.message)?;
        if let Some(suggestion) = &self.suggestion {
            write!(f, "\nsuggestion: {suggestion}")?;
        }
        if let Some(url) = &self.help_url {
            write!(f, "\nhelp: {url}")?;
        }
        Ok(())
    }
}
