//! The reply of a tool: text, JSON or files, and whether the tool failed.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::conversation::{FilePart, Part, PartExt, Rewrite, TextPart, ToolOutput, ToolResultPart};
use crate::depth::{self, MAX_DEPTH};
use crate::error::{Error, ErrorCode, Result};
use crate::question::Question;

/// The reply of a tool: text, a JSON value, or text and files, and whether the tool failed.
///
/// A tool that answers with text or JSON can return it as it is: any value that derives `Serialize`. A reply can also
/// hold files, and say that the tool failed while the model still reads its answer. In place of a file that
/// [cannot be used](FilePart::check), the model reads the reason.
///
/// ```
/// use goondan::conversation::FilePart;
/// use goondan::tool::ToolReply;
///
/// let chart = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("chart.png");
/// let reply = ToolReply::text("The sales of May:").file(chart);
/// assert!(!reply.is_error());
///
/// let several = ToolReply::content(["before".into(), FilePart::new("image/png", "https://example.org/a.png").into()]);
/// let failed = ToolReply::text("there is no such month").failed();
/// assert!(failed.is_error());
/// # let _ = several;
/// ```
// Not `Serialize`: as a value inside of another one, it would be mistaken for JSON.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolReply {
    /// Text, JSON that is no string, or content of texts and files.
    output: ToolOutput,
    is_error: bool,
    /// The question of a handler that has not acted.
    question: Option<Box<Question>>,
}

/// A part of the content of a [`ToolReply`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ReplyPart {
    /// Text.
    Text(TextPart),
    /// An image, a document, or another file.
    File(FilePart),
}

impl ToolReply {
    fn new(output: ToolOutput) -> Self {
        Self { output, is_error: false, question: None }
    }

    /// A reply with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(ToolOutput::Text(text.into()))
    }

    /// A reply with `value` as JSON; a string is a text.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` when the value is nested too deeply; the error of its `Serialize`.
    pub fn json(value: impl Serialize) -> Result<Self> {
        depth::to_value_within(&value, MAX_DEPTH).map(Self::from).map_err(|error| error.of_output(value))
    }

    /// A reply with these texts and files, in this order.
    pub fn content(parts: impl IntoIterator<Item = ReplyPart>) -> Self {
        Self::of_parts(parts.into_iter().map(Part::from).collect())
    }

    pub(super) fn of_parts(parts: Vec<Part>) -> Self {
        Self::new(ToolOutput::Content(parts))
    }

    /// Asks a person, or a program, before the tool acts: the call waits for the decision, on the disk, for as long as
    /// it takes. Then the handler runs again from its start, and [`ToolContext::decision`] returns the decision. If
    /// that is a rejection, it does not run, and the model reads why.
    ///
    /// The tool says so in its declaration, `#[tool(asks)]`. A handler that asks has not acted; its work before it
    /// asks happens again. A [`Question::named`] tells several questions of a handler apart; one that is decided is not
    /// asked again.
    ///
    /// ```
    /// use goondan::decision::Question;
    /// use goondan::prelude::*;
    /// use goondan::tool::ToolReply;
    ///
    /// # struct Shop;
    /// # #[goondan::extension(name = "shop")]
    /// # impl Shop {
    /// #     #[init]
    /// #     fn new() -> Self {
    /// #         Self
    /// #     }
    /// #
    /// /// Sends a parcel.
    /// #[tool(asks)]
    /// async fn send(&self, ctx: &ToolContext<'_>) -> Result<ToolReply> {
    ///     let Some(carrier) = ctx.decision::<String>()? else {
    ///         return Ok(ToolReply::ask(Question::choose("Which carrier?", ["Post", "Express"])));
    ///     };
    ///     Ok(ToolReply::text(format!("sent with {carrier}")))
    /// }
    /// # }
    /// ```
    ///
    /// [`ToolContext::decision`]: crate::ToolContext::decision
    // ASK-04
    pub fn ask(question: Question) -> Self {
        // The text for a host that does not know questions.
        let text = format!("the tool asks, and cannot be answered here: {}", question.text);
        Self { question: Some(Box::new(question)), ..Self::text(text).failed() }
    }

    /// Returns the question, if the handler asks instead of answering.
    pub fn question(&self) -> Option<&Question> {
        self.question.as_deref()
    }

    /// Returns the question, if the handler asks instead of answering.
    #[doc(hidden)]
    pub fn take_question(&mut self) -> Option<Box<Question>> {
        self.question.take()
    }

    /// Adds a file. The reply so far becomes content: JSON becomes a text.
    #[must_use]
    pub fn file(self, file: FilePart) -> Self {
        let mut parts = match self.output {
            ToolOutput::Content(parts) => parts,
            other => vec![TextPart::new(other.to_text()).into()],
        };
        parts.push(file.into());
        Self { output: ToolOutput::Content(parts), ..self }
    }

    /// Says that the tool failed: the call gets the status `error` with the code `E_TOOL_FAILED`. The model reads the
    /// reply as it is.
    #[must_use]
    pub fn failed(self) -> Self {
        Self { is_error: true, ..self }
    }

    /// Returns the content that the model is sent.
    pub fn output(&self) -> &ToolOutput {
        &self.output
    }

    /// Returns the content that the model is sent, without copying it.
    pub fn into_output(self) -> ToolOutput {
        self.output
    }

    /// Returns whether the tool failed.
    pub fn is_error(&self) -> bool {
        self.is_error
    }

    /// Rewrites each text of the reply that a model or a person reads: see [`Content::map_text`] and
    /// [`ToolOutput::texts`].
    ///
    /// [`Content::map_text`]: crate::Content::map_text
    #[must_use]
    pub fn map_text(self, map: impl FnMut(&str) -> Cow<'_, str>) -> Self {
        self.rewritten(map).0
    }

    /// Returns the reply with its texts rewritten, and whether one has changed.
    pub(crate) fn rewritten(mut self, mut map: impl FnMut(&str) -> Cow<'_, str>) -> (Self, bool) {
        let mut rewrite = Rewrite::new(&mut map);
        rewrite.output(&mut self.output);
        let has_changed = rewrite.has_changed();
        let output = match self.output {
            // A number that became a text.
            ToolOutput::Json(Value::String(text)) => ToolOutput::Text(text),
            output => output,
        };
        (Self { output, ..self }, has_changed)
    }

    /// Returns the value if the reply is nothing but text or JSON, which is how most tools answer.
    #[doc(hidden)]
    pub fn into_value(self) -> Result<Value, Self> {
        match self.output {
            ToolOutput::Text(text) if !self.is_error => Ok(Value::String(text)),
            ToolOutput::Json(value) if !self.is_error => Ok(value),
            output => Err(Self { output, ..self }),
        }
    }

    /// Returns the reply if it can be stored and sent to a model. In place of a file that cannot be used, it has a text
    /// that says why.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH` when a value is nested too deeply; `E_MESSAGE_PART` when a part has data of a provider, which
    /// only a model can make.
    #[doc(hidden)]
    pub fn checked(self) -> Result<Self> {
        let ToolOutput::Content(mut parts) = self.output else {
            return match self.output {
                ToolOutput::Json(value) => {
                    depth::checked_output(value).map(|value| Self { output: ToolOutput::Json(value), ..self })
                }
                output => Ok(Self { output, ..self }),
            };
        };
        match parts.iter().try_for_each(check_part) {
            Ok(()) => {
                parts.iter_mut().for_each(leave_out_unusable);
                Ok(Self { output: ToolOutput::Content(parts), ..self })
            }
            Err(error) => {
                parts.into_iter().for_each(Part::discard);
                Err(error)
            }
        }
    }

    /// Returns the reply that a message of a tool holds.
    #[doc(hidden)]
    pub fn recorded(result: &ToolResultPart) -> Self {
        Self { is_error: result.is_error, ..Self::new(result.output.clone()) }
    }

    /// Reads a reply that a library wrote.
    ///
    /// # Errors
    /// As [`ToolReply::checked`], and when the JSON is no reply, or one of a type that this version does not know.
    #[doc(hidden)]
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let WireReply(reply) = depth::from_json(json)?;
        match &reply.output {
            ToolOutput::Other(_) => Err(Error::msg("the output of a tool is of the type text, json or content")),
            ToolOutput::Content(parts) if parts.iter().any(|part| matches!(part, Part::Other(_))) => Err(other_part()),
            _ => reply.checked(),
        }
    }
}

/// Replaces a file that cannot be used.
// REFUSED-01
fn leave_out_unusable(part: &mut Part) {
    if let Part::File(file) = part
        && let Some(problem) = file.problem()
    {
        *part = Part::Text(file.left_out(&problem));
    }
}

fn other_part() -> Error {
    let message = "the reply of a tool can hold text and files, and no other part";
    Error::new(ErrorCode::MESSAGE_PART, message).suggest("leave the part out")
}

fn check_part(part: &Part) -> Result<()> {
    part.check_depth(MAX_DEPTH).map_err(|error| error.refuse("the output of the tool"))?;
    match part {
        Part::Text(_) | Part::File(_) if part.provider().is_some() => {
            let message = "the reply of a tool cannot hold data of a provider, which only a model can make";
            Err(Error::new(ErrorCode::MESSAGE_PART, message).suggest("make a new part with the same content"))
        }
        Part::Text(_) | Part::File(_) => Ok(()),
        // Read from a newer host, which knows it.
        Part::Other(_) => Ok(()),
        _ => Err(other_part()),
    }
}

impl<T: Into<Value>> From<T> for ToolReply {
    fn from(value: T) -> Self {
        match value.into() {
            Value::String(text) => Self::text(text),
            value => Self::new(ToolOutput::Json(value)),
        }
    }
}

impl From<FilePart> for ToolReply {
    fn from(file: FilePart) -> Self {
        Self::content([ReplyPart::File(file)])
    }
}

impl From<&str> for ReplyPart {
    fn from(text: &str) -> Self {
        Self::Text(TextPart::new(text))
    }
}

impl From<String> for ReplyPart {
    fn from(text: String) -> Self {
        Self::Text(TextPart::new(text))
    }
}

impl From<TextPart> for ReplyPart {
    fn from(part: TextPart) -> Self {
        Self::Text(part)
    }
}

impl From<FilePart> for ReplyPart {
    fn from(part: FilePart) -> Self {
        Self::File(part)
    }
}

impl From<ReplyPart> for Part {
    fn from(part: ReplyPart) -> Self {
        match part {
            ReplyPart::Text(part) => part.into(),
            ReplyPart::File(part) => part.into(),
        }
    }
}

/// A reply as it crosses to another binary: `{"output": …, "isError": true}`, the output as in a message,
/// and `ask` with the question of one that asks.
#[derive(Clone, Debug)]
pub struct WireReply(pub ToolReply);

impl Serialize for WireReply {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(ToolReply { output, is_error, question }) = self;
        let mut members = serializer.serialize_struct("WireReply", 2)?;
        members.serialize_field("output", output)?;
        if *is_error {
            members.serialize_field("isError", is_error)?;
        }
        if let Some(question) = question {
            members.serialize_field("ask", question)?;
        }
        members.end()
    }
}

impl<'de> Deserialize<'de> for WireReply {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Members {
            output: Value,
            #[serde(default)]
            is_error: bool,
            #[serde(default)]
            ask: Option<Box<Question>>,
        }
        let Members { output, is_error, ask: question } = Members::deserialize(deserializer)?;
        let reply = match ToolOutput::read(output).map_err(D::Error::custom)? {
            ToolOutput::Json(value) => ToolReply::from(value),
            output => ToolReply::new(output),
        };
        Ok(Self(ToolReply { is_error, question, ..reply }))
    }
}
