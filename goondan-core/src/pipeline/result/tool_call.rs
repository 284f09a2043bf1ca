//! The result of a tool call.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::conversation::{Rewrite, Texts, ToolOutput};
use crate::crossing::{Crossing, MaybeRemote, result_fields};
use crate::depth::from_json;
use crate::error::{Error, ErrorCode, Result};
use crate::name::{ExtensionName, ToolCallId};
use crate::outcome::ToolCallStatus;
use crate::secret::mask_text;
use crate::size;
use crate::tool::{ReplyLimit, ToolReply, WireReply};

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
        reply: Option<Box<WireReply>> = "reply",
        prepared_by: Option<ExtensionName> = "preparedBy",
    }
    local {}
}

/// The end of a call; in JSON `{"output": …}` or `{"error": …}`. If it ended with a reply that is more than text or
/// JSON, the field `reply` has it, and the outcome has it as a text for readers without replies.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome {
    Output(Value),
    Error(ToolError),
    /// In a way that this version does not know.
    #[serde(untagged)]
    Other(Value),
}

impl<'de> Deserialize<'de> for Outcome {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut outcome = Value::deserialize(deserializer)?;
        if let Some(output) = outcome.get_mut("output") {
            return Ok(Self::Output(output.take()));
        }
        match outcome.get_mut("error") {
            Some(error) => ToolError::deserialize(error.take()).map(Self::Error).map_err(D::Error::custom),
            None => Ok(Self::Other(outcome)),
        }
    }
}

/// Returns the fields `outcome` and `reply` of a call that ended like this.
fn fields(outcome: Result<ToolReply, ToolError>) -> (Outcome, Option<Box<WireReply>>) {
    match outcome.map(ToolReply::into_value) {
        Err(error) => (Outcome::Error(error), None),
        Ok(Ok(value)) => (Outcome::Output(value), None),
        Ok(Err(reply)) => {
            let summary = reply.output().to_string();
            let outcome = if reply.is_error() {
                Outcome::Error(Error::new(ErrorCode::TOOL_FAILED, summary).into())
            } else {
                Outcome::Output(summary.into())
            };
            (outcome, Some(Box::new(WireReply(reply))))
        }
    }
}

impl ToolCallData {
    fn new(call_id: ToolCallId, tool_name: String, outcome: Result<ToolReply, ToolError>) -> Self {
        let (outcome, reply) = fields(outcome);
        Self {
            call_id: call_id.into(),
            tool_name: tool_name.into(),
            outcome: outcome.into(),
            reply: reply.into(),
            prepared_by: None.into(),
        }
    }

    fn set(&mut self, outcome: Result<ToolReply, ToolError>) {
        let (outcome, reply) = fields(outcome);
        self.outcome.set(outcome);
        self.reply.set(reply);
    }

    /// Replaces a field by the value that a library wrote. `outcome` and `reply` are two forms of the same, so writing
    /// one sets both.
    ///
    /// # Errors
    /// When there is no such field, or the value has another shape or cannot be in a reply.
    pub fn write_checked(&mut self, name: &str, json: &[u8]) -> Result<()> {
        match name {
            "outcome" => self.set(match from_json(json)? {
                Outcome::Output(output) => ToolReply::from(output).checked().map_err(ToolError::from),
                Outcome::Error(error) => Err(error.masked()),
                Outcome::Other(_) => return Err(Error::msg("the outcome of a call is an output or an error")),
            }),
            // The library has written the whole outcome before.
            "reply" if json == b"null" => {}
            "reply" => self.set(Ok(ToolReply::from_json(json)?)),
            _ => <ToolCallResult as Crossing>::write(self, name, json)?,
        }
        Ok(())
    }
}

impl ToolCallResult {
    /// Returns a copy, for a step whose result is shared. Middlewares cannot copy results (NEXT-01).
    pub(super) fn copied(&self) -> Self {
        Self { data: self.data.copied() }
    }

    pub(in crate::pipeline) fn recovered(id: ToolCallId, tool: String, outcome: Result<ToolReply, ToolError>) -> Self {
        Self { data: MaybeRemote::local(ToolCallData::new(id, tool, outcome.map_err(ToolError::masked))) }
    }

    /// Returns the id of the call.
    pub fn call_id(&self) -> &ToolCallId {
        self.data.field(|data| &data.call_id)
    }

    /// Returns the tool's name as the model wrote it.
    pub fn tool_name(&self) -> &str {
        self.data.field(|data| &data.tool_name)
    }

    /// Returns whether the call ended with an output or an error. A tool that said that it failed ended with an error.
    pub fn status(&self) -> ToolCallStatus {
        match self.outcome() {
            Outcome::Output(_) => ToolCallStatus::Ok,
            Outcome::Error(_) => ToolCallStatus::Error,
            Outcome::Other(_) => ToolCallStatus::Other,
        }
    }

    /// Returns the output, if the call ended with one. An output with files is a text in which a line stands for each
    /// file: [`ToolCallResult::to_reply`] has the files.
    pub fn output(&self) -> Option<&Value> {
        match self.outcome() {
            Outcome::Output(output) => Some(output),
            Outcome::Error(_) | Outcome::Other(_) => None,
        }
    }

    /// Returns the error, if the call ended with one. If the tool said that it failed, the code is `E_TOOL_FAILED`, and
    /// the message is its answer.
    pub fn error(&self) -> Option<&ToolError> {
        match self.outcome() {
            Outcome::Output(_) | Outcome::Other(_) => None,
            Outcome::Error(error) => Some(error),
        }
    }

    /// Returns whether the call waits for a decision, and has not run: its error is `E_TOOL_WAITING` until then. What a
    /// layer makes of such a result is not used, and the layers run again when the call is decided. One that counts or
    /// reports results leaves it out.
    // ASK-01
    pub fn is_waiting(&self) -> bool {
        self.error().is_some_and(|error| error.code.as_deref() == Some(ErrorCode::TOOL_WAITING.as_str()))
    }

    /// Returns the answer of the tool, unless the call ended in another way.
    pub fn to_reply(&self) -> Option<ToolReply> {
        self.to_outcome().ok().filter(|_| self.status() != ToolCallStatus::Other)
    }

    /// Returns the extension that has prepared the reply, if no handler ran.
    // PREP-01
    pub fn prepared_by(&self) -> Option<&ExtensionName> {
        self.data.field(|data| &data.prepared_by).as_ref()
    }

    /// Replaces the output or error by `output`, a JSON value or a [`ToolReply`]; an output that is nested too deeply
    /// becomes the error `E_VALUE_DEPTH`.
    pub fn set_output(&mut self, output: impl Into<ToolReply>) {
        self.data.get_mut().set(output.into().checked().map_err(ToolError::from));
    }

    /// Replaces the output or error by `error`. Secrets in its texts are masked.
    pub fn set_error(&mut self, error: impl Into<ToolError>) {
        self.data.get_mut().set(Err(error.into().masked()));
    }

    /// Returns the text that the model is sent: text as text, other output as JSON, a reply as it is, an error with
    /// code, remedy and help page.
    pub fn to_tool_output(&self) -> ToolOutput {
        match self.to_outcome() {
            Ok(reply) => reply.into_output(),
            Err(error) => ToolOutput::Text(error.to_string()),
        }
    }

    /// Returns each text that a model or a person reads of the output, or of the error.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut texts = Texts::default();
        match (self.data.field(|data| &data.reply), self.outcome()) {
            (Some(reply), _) => texts.output(reply.0.output()),
            (None, Outcome::Output(value) | Outcome::Other(value)) => texts.json(value),
            (None, Outcome::Error(ToolError { message, code, suggestion, help_url })) => {
                texts.add(message);
                [code, suggestion, help_url].into_iter().flatten().for_each(|text| texts.add(text));
            }
        }
        texts.into_iter()
    }

    /// Rewrites each text that a model or a person reads of the output, or of the error, with the rules of
    /// [`Content::map_text`](crate::Content::map_text). Nothing is set if no text changes.
    ///
    /// ```
    /// use goondan::prelude::*;
    ///
    /// # struct Hide;
    /// # #[goondan::extension(name = "hide")]
    /// # impl Hide {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// #[middleware(toolCall)]
    /// async fn hide(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
    ///     let mut result = next.run(ctx).await?;
    ///     result.map_text(|text| text.replace("4711", "[code]").into());
    ///     Ok(result)
    /// }
    /// # }
    /// ```
    pub fn map_text(&mut self, mut map: impl FnMut(&str) -> Cow<'_, str>) {
        match self.to_outcome().map_err(Clone::clone) {
            Ok(reply) => {
                let (reply, has_changed) = reply.rewritten(map);
                if has_changed {
                    self.set_output(reply);
                }
            }
            Err(mut error) => {
                let mut rewrite = Rewrite::new(&mut map);
                let ToolError { message, code, suggestion, help_url } = &mut error;
                rewrite.text(message);
                [code, suggestion, help_url].into_iter().flatten().for_each(|text| _ = rewrite.text(text));
                if rewrite.has_changed() {
                    self.set_error(error);
                }
            }
        }
    }

    /// Returns how the call ended.
    fn to_outcome(&self) -> Result<ToolReply, &ToolError> {
        match (self.data.field(|data| &data.reply), self.outcome()) {
            (Some(reply), _) => Ok(reply.0.clone()),
            (None, Outcome::Output(value) | Outcome::Other(value)) => Ok(value.clone().into()),
            (None, Outcome::Error(error)) => Err(error),
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
    /// The remedy, for the model.
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

    fn size(&self) -> usize {
        let Self { message, code, suggestion, help_url } = self;
        message.len() + [code, suggestion, help_url].into_iter().flatten().map(String::len).sum::<usize>()
    }

    /// Returns an error that is too large without its large parts.
    #[cold]
    fn within(&self, limit: &ReplyLimit<'_>) -> Self {
        let mut error = Self::new("");
        error.message = self.message.chars().take(limit.size.bytes / 4).collect();
        error.code = self.code.clone().filter(|code| code.len() < 100);
        error
    }

    /// Cuts the message to `limit` characters.
    // F-TOOL
    fn cut(&mut self, limit: usize) {
        const END: &str = "... (truncated)";
        if self.message.chars().count() > limit {
            let end = if limit > END.len() { END } else { "" };
            self.message = self.message.chars().take(limit - end.len()).collect();
            self.message.push_str(end);
        }
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

/// The members of a [`ToolCallResult`] for the runtime.
pub trait ToolCallResultExt {
    /// Returns a copy in this binary.
    fn copy(&self) -> Self;
    /// Returns the result of a tool call in this binary.
    fn from_parts(call_id: ToolCallId, tool_name: String, outcome: Result<ToolReply, ToolError>) -> Self;
    /// Says that the extension `by` has prepared the outcome of the call.
    fn set_prepared_by(&mut self, by: ExtensionName);
    /// Cuts the message of the error, if there is one, to `limit` characters.
    // F-TOOL
    fn cut_error(&mut self, limit: usize);
    /// Replaces a reply that is too large by an excerpt.
    // SIZE-01
    fn keep_within(&mut self, limit: &ReplyLimit<'_>);
    /// Returns whether the tool said that it failed.
    fn has_failed_reply(&self) -> bool;
}

impl ToolCallResultExt for ToolCallResult {
    fn copy(&self) -> Self {
        let outcome = self.to_outcome().map_err(Clone::clone);
        Self::from_parts(self.call_id().clone(), self.tool_name().to_owned(), outcome)
    }

    #[inline]
    fn from_parts(call_id: ToolCallId, tool_name: String, outcome: Result<ToolReply, ToolError>) -> Self {
        Self { data: MaybeRemote::local(ToolCallData::new(call_id, tool_name, outcome)) }
    }

    #[inline]
    fn set_prepared_by(&mut self, by: ExtensionName) {
        self.data.get_mut().prepared_by.set(Some(by));
    }

    fn cut_error(&mut self, limit: usize) {
        if let Outcome::Error(error) = self.data.field_mut(|data| &mut data.outcome) {
            error.cut(limit);
        }
    }

    fn keep_within(&mut self, limit: &ReplyLimit<'_>) {
        let fits = match (self.data.field(|data| &data.reply), self.outcome()) {
            (Some(reply), _) => reply.0.fits(limit.size),
            (None, Outcome::Output(value) | Outcome::Other(value)) => size::of_json(value) <= limit.size.bytes,
            (None, Outcome::Error(error)) => error.size() <= limit.size.bytes,
        };
        if !fits {
            let outcome = self.to_outcome().map(|reply| reply.within(limit)).map_err(|error| error.within(limit));
            self.data.get_mut().set(outcome);
        }
    }

    #[inline]
    fn has_failed_reply(&self) -> bool {
        self.data.field(|data| &data.reply).as_ref().is_some_and(|reply| reply.0.is_error())
    }
}
