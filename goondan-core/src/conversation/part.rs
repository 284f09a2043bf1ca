//! Parts of a message: text, reasoning, files, tool calls and their results, and blocks of providers.
// F-MSG

use std::borrow::Cow;
use std::fmt;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::de::Error as _;
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

use super::extra::Extra;
use super::media;
use super::of_model::{ProviderPart, ReasoningPart};
use super::provider::ProviderData;
use super::unknown::{UnknownMembers, take, take_optional};
use crate::error::{Error, ErrorCode};
use crate::name::ToolCallId;
use crate::secret::{mask_json, mask_text};

/// One part of a message. The types of parts convert to it, so that `FilePart::new(…).into()` is one. All but a text
/// are boxed or small, because a message of plain text has the size of the largest.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Part {
    /// Plain text.
    Text(TextPart),
    /// The thoughts of a model before its answer.
    Reasoning(Box<ReasoningPart>),
    /// An image, a document, or another file.
    File(Box<FilePart>),
    /// A request of the model to run a tool.
    ToolCall(Box<ToolCallPart>),
    /// The result of a tool call.
    ToolResult(Box<ToolResultPart>),
    /// A block that only the provider that made it interprets.
    Provider(ProviderPart),
    /// A part of a type that goondan does not interpret; it is stored and sent unchanged.
    Other(Box<Map<String, Value>>),
}

/// Declares the types that convert to a part.
macro_rules! convert {
    ($($part:ident to $variant:ident;)*) => {
        $(impl From<$part> for Part {
            #[inline]
            fn from(part: $part) -> Self {
                Self::$variant(part.into())
            }
        })*
    };
}

convert! {
    TextPart to Text;
    ReasoningPart to Reasoning;
    FilePart to File;
    ToolCallPart to ToolCall;
    ToolResultPart to ToolResult;
    ProviderPart to Provider;
}

/// See [`Part::Text`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "text")]
#[non_exhaustive]
pub struct TextPart {
    /// The text.
    pub text: String,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

impl TextPart {
    /// A part with this text.
    pub fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), extra: Extra::default() }
    }

    /// Sets the data that only the provider that made the part interprets.
    #[must_use]
    pub fn with_provider(mut self, data: ProviderData) -> Self {
        self.extra.set_provider(Some(data));
        self
    }

    /// Whether the part is nothing but its text.
    pub(super) fn is_plain(&self) -> bool {
        self.extra.is_empty()
    }
}

/// See [`Part::File`].
///
/// ```
/// use goondan::conversation::FilePart;
///
/// let png = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("dot.png");
/// assert_eq!(png.url, "data:image/png;base64,iVBORw0KGgo=");
/// let linked = FilePart::new("application/pdf", "https://example.org/paper.pdf");
/// assert_eq!(linked.name, None);
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "file", rename_all = "camelCase")]
#[non_exhaustive]
pub struct FilePart {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// Where the content is: a `data:` URL that holds it, or an `https:` URL.
    pub url: String,
    /// The name of the file, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

impl FilePart {
    /// The largest content that a file can hold in its URL, in bytes.
    pub const MAX_INLINE: usize = 5 << 20;

    /// A file at `url`.
    pub fn new(media_type: impl Into<String>, url: impl Into<String>) -> Self {
        let (media_type, url) = (media_type.into(), url.into());
        Self { media_type, url, name: None, extra: Extra::default() }
    }

    /// A file with this content.
    pub fn from_bytes(media_type: impl Into<String>, content: &[u8]) -> Self {
        let media_type = media_type.into();
        let mut url = format!("data:{media_type};base64,");
        BASE64_STANDARD.encode_string(content, &mut url);
        Self::new(media_type, url)
    }

    /// Sets the data that only the provider that made the part interprets.
    #[must_use]
    pub fn with_provider(mut self, data: ProviderData) -> Self {
        self.extra.set_provider(Some(data));
        self
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn named(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Returns a line that stands for the file in a text, such as `[image/png dot.png]`.
    pub fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("[{} {name}]", self.media_type),
            None => format!("[{}]", self.media_type),
        }
    }

    /// Checks that the file can be part of a message: that its content is in base64, not empty, of its media type,
    /// and not larger than [`FilePart::MAX_INLINE`]. Every file is checked before it comes into a conversation, because
    /// a provider would refuse each request that has a bad one. The content of a link is not known, and a type that
    /// goondan does not know can have any content.
    ///
    /// ```
    /// use goondan::conversation::FilePart;
    ///
    /// assert!(FilePart::from_bytes("image/gif", b"GIF89a\x01").check().is_ok());
    /// let error = FilePart::from_bytes("image/png", b"GIF89a\x01").named("dot.png").check().unwrap_err();
    /// assert!(error.message().ends_with("cannot be used: its content is image/gif"));
    /// ```
    ///
    /// # Errors
    /// `E_INPUT_FILE`, with the fault.
    // REFUSED-01
    pub fn check(&self) -> Result<(), Error> {
        match self.problem() {
            None => Ok(()),
            Some(problem) => Err(self.unusable(&problem)),
        }
    }

    /// Returns the error for a file that cannot be used, and why.
    #[doc(hidden)]
    pub fn unusable(&self, problem: &str) -> Error {
        Error::new(ErrorCode::INPUT_FILE, format!("the file{} cannot be used: {problem}", self.described())).suggest(
            "give a file whose content is of its type, not empty, and of at most 5 MB; or a link to a larger one",
        )
    }

    /// Returns the fault of the file: see [`FilePart::check`].
    pub(crate) fn problem(&self) -> Option<Cow<'static, str>> {
        let is_large = self.url.len() / 4 * 3 > Self::MAX_INLINE;
        is_large.then(|| "it has more than 5 MB".into()).or_else(|| media::problem(&self.media_type, &self.url))
    }

    /// Corrects the media type if the content is of another known one. The size does not matter: this is for files
    /// that models made.
    ///
    /// # Errors
    /// The fault of the file, if it cannot be corrected.
    #[doc(hidden)]
    pub fn correct_type(&mut self) -> Result<(), Cow<'static, str>> {
        let Some(problem) = media::problem(&self.media_type, &self.url) else { return Ok(()) };
        let (media_type, content) = media::type_of(&self.url).ok_or(problem)?;
        self.url = format!("data:{media_type};base64,{content}");
        self.media_type = media_type.to_owned();
        Ok(())
    }

    /// Returns a text that stands for the file in a message, which is left out because of a problem.
    #[doc(hidden)]
    pub fn left_out(&self, problem: &str) -> TextPart {
        TextPart::new(format!("[The file{} is left out: {problem}.]", self.described()))
    }

    /// Returns the name and the type, to follow "the file" in a sentence.
    fn described(&self) -> String {
        let name = self.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
        match media::essence(&self.media_type) {
            Some(_) => format!("{name} of the type {}", self.media_type),
            None => name,
        }
    }
}

/// See [`Part::ToolCall`].
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename = "tool-call", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolCallPart {
    /// The id that the call and its result share.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it; it may be illegal.
    pub tool_name: String,
    /// The arguments as the model wrote them.
    pub input: Value,
    #[serde(flatten)]
    pub(super) extra: Extra,
}

impl ToolCallPart {
    /// A call of the tool `tool_name` with the arguments `input`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, input: Value) -> Self {
        let tool_name = tool_name.into();
        Self { tool_call_id, tool_name, input, extra: Extra::default() }
    }

    /// Sets the data that only the provider that made the part interprets.
    #[must_use]
    pub fn with_provider(mut self, data: ProviderData) -> Self {
        self.extra.set_provider(Some(data));
        self
    }
}

/// See [`Part::ToolResult`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ToolResultPart {
    /// The id of the call that this answers.
    pub tool_call_id: ToolCallId,
    /// The tool's name as the model wrote it.
    pub tool_name: String,
    /// The output.
    pub output: ToolOutput,
    /// Whether the tool said in its [`ToolReply`](crate::ToolReply) that it failed.
    pub is_error: bool,
    /// The members of `output` beside its type and value.
    pub(super) output_unknown: UnknownMembers,
    pub(super) unknown: UnknownMembers,
}

impl ToolResultPart {
    /// The result of the call `tool_call_id`.
    pub fn new(tool_call_id: ToolCallId, tool_name: impl Into<String>, output: ToolOutput) -> Self {
        let (output_unknown, unknown) = Default::default();
        Self { tool_call_id, tool_name: tool_name.into(), output, is_error: false, output_unknown, unknown }
    }
}

impl Serialize for ToolResultPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        /// The output with its unknown members.
        #[derive(Serialize)]
        struct Output<'a> {
            #[serde(flatten)]
            known: &'a ToolOutput,
            #[serde(flatten)]
            unknown: &'a UnknownMembers,
        }
        let mut part = serializer.serialize_map(None)?;
        part.serialize_entry("type", "tool-result")?;
        part.serialize_entry("toolCallId", &self.tool_call_id)?;
        part.serialize_entry("toolName", &self.tool_name)?;
        match &self.output {
            ToolOutput::Other(output) => part.serialize_entry("output", output)?,
            known => part.serialize_entry("output", &Output { known, unknown: &self.output_unknown })?,
        }
        if self.is_error {
            part.serialize_entry("isError", &true)?;
        }
        self.unknown.serialize_into(&mut part)?;
        part.end()
    }
}

/// The output of a tool as the model sees it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", content = "value", rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolOutput {
    /// Text.
    Text(String),
    /// Any JSON value.
    Json(Value),
    /// Text and files.
    Content(Vec<Part>),
    /// An output of a type that goondan does not interpret; it is stored and sent unchanged.
    #[serde(untagged)]
    Other(Value),
}

impl ToolOutput {
    /// Returns the output as text: JSON as it is written, and of content the texts, joined by newlines.
    pub fn to_text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) | Self::Other(value) => Cow::Owned(value.to_string()),
            Self::Content(parts) => text_of(parts),
        }
    }

    /// Reads an output.
    pub(crate) fn read(output: Value) -> Result<Self, serde_json::Error> {
        Self::from_json(output).map(|(output, _)| output)
    }

    /// Reads an output, and returns the members beside its type and value too.
    fn from_json<E: serde::de::Error>(output: Value) -> Result<(Self, UnknownMembers), E> {
        let Value::Object(mut members) = output else { return Ok((Self::Other(output), UnknownMembers::default())) };
        let read = match members.get("type").and_then(Value::as_str) {
            Some("text") => Self::Text(take(&mut members, "value")?),
            Some("json") => Self::Json(take(&mut members, "value")?),
            // Other implementations may write another value under this name.
            Some("content") if members.get("value").is_some_and(Value::is_array) => {
                Self::Content(take(&mut members, "value")?)
            }
            _ => return Ok((Self::Other(Value::Object(members)), UnknownMembers::default())),
        };
        members.shift_remove("type");
        Ok((read, members.into()))
    }
}

impl Part {
    /// Returns the data that only the provider that made the part interprets, if it has some.
    pub fn provider(&self) -> Option<&ProviderData> {
        match self {
            Self::Text(part) => part.extra.provider(),
            Self::Reasoning(part) => part.provider(),
            Self::File(part) => part.extra.provider(),
            Self::ToolCall(part) => part.extra.provider(),
            Self::Provider(part) => Some(part.provider()),
            Self::ToolResult(_) | Self::Other(_) => None,
        }
    }

    /// Whether only a model can make such a part. Other code can pass it on or leave it out.
    pub(super) fn is_of_model(&self) -> bool {
        matches!(self, Self::Reasoning(_)) || self.provider().is_some()
    }

    /// Masks secrets, also in members that are not known, but not in the data of a provider, which must come back
    /// unchanged.
    pub(super) fn mask(&mut self) {
        match self {
            Self::Text(part) => {
                mask_text(&mut part.text);
                part.extra.mask();
            }
            Self::Reasoning(part) => part.mask(),
            Self::File(part) => {
                // No secret can be found in encoded content, which is long.
                if !part.url.starts_with("data:") {
                    mask_text(&mut part.url);
                }
                part.name.iter_mut().for_each(mask_text);
                part.extra.mask();
            }
            Self::ToolCall(call) => {
                mask_json(&mut call.input);
                call.extra.mask();
            }
            Self::ToolResult(result) => {
                match &mut result.output {
                    ToolOutput::Text(text) => mask_text(text),
                    ToolOutput::Json(value) | ToolOutput::Other(value) => mask_json(value),
                    ToolOutput::Content(parts) => parts.iter_mut().for_each(Self::mask),
                }
                result.output_unknown.mask();
                result.unknown.mask();
            }
            Self::Provider(_) => {}
            Self::Other(members) => members.values_mut().for_each(mask_json),
        }
    }
}

/// Writes the part for a person, as in a transcript: its text, `name {"argument": 1}` for a call, the output for a
/// result, the [label](FilePart::label) of a file.
impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(part) => f.write_str(&part.text),
            Self::Reasoning(part) => f.write_str(part.text()),
            Self::File(part) => f.write_str(&part.label()),
            Self::ToolCall(call) => write!(f, "{} {}", call.tool_name, call.input),
            Self::ToolResult(result) => result.output.fmt(f),
            Self::Provider(part) => write!(f, "[block of {}]", part.provider().api()),
            Self::Other(members) => f.write_str(&serde_json::to_string(members).map_err(|_| fmt::Error)?),
        }
    }
}

/// Writes the output for a person: text and JSON as they are, of content a line for each part, also for files.
impl fmt::Display for ToolOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Json(value) | Self::Other(value) => value.fmt(f),
            Self::Content(parts) => parts.iter().enumerate().try_for_each(|(index, part)| {
                let separator = if index > 0 { "\n" } else { "" };
                write!(f, "{separator}{part}")
            }),
        }
    }
}

/// Returns the text of the parts, tool results included, joined by newlines. Reasoning and files have none, and
/// an empty text, which a model may send for its signature, is no line.
pub fn text_of(parts: &[Part]) -> Cow<'_, str> {
    let mut texts = parts.iter().filter_map(|part| match part {
        Part::Text(part) => (!part.text.is_empty()).then_some(Cow::Borrowed(part.text.as_str())),
        Part::ToolResult(part) => Some(part.output.to_text()),
        Part::Reasoning(_) | Part::File(_) | Part::ToolCall(_) | Part::Provider(_) | Part::Other(_) => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(first, |all, text| Cow::Owned(format!("{all}\n{text}")))
}

impl<'de> Deserialize<'de> for Part {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let members = Map::deserialize(deserializer)?;
        let Some(kind) = members.get("type").and_then(Value::as_str) else {
            return Err(D::Error::missing_field("type"));
        };
        // F-MSG: other implementations of this format spell the types with underscores.
        match kind {
            "text" => read(members, TextPart::from_members).map(Self::from),
            "tool-call" | "tool_call" | "tool_use" => read(members, ToolCallPart::from_members).map(Self::from),
            "tool-result" | "tool_result" => read(members, ToolResultPart::from_members).map(Self::from),
            // Other implementations write other members under these names, and so their parts are not damaged.
            "reasoning" => Ok(read_or_other(members, ReasoningPart::from_members)),
            "file" => Ok(read_or_other(members, FilePart::from_members)),
            "provider" => Ok(read_or_other(members, ProviderPart::from_members)),
            _ => Ok(Self::Other(Box::new(members))),
        }
    }
}

/// Reads a part whose type is known.
fn read<T, E>(
    mut members: Map<String, Value>,
    from_members: impl FnOnce(Map<String, Value>) -> Result<T, E>,
) -> Result<T, E> {
    members.shift_remove("type");
    from_members(members)
}

fn read_or_other<T: Into<Part>>(
    members: Map<String, Value>,
    from_members: impl FnOnce(Map<String, Value>) -> Result<T, serde_json::Error>,
) -> Part {
    read(members.clone(), from_members).map_or_else(|_| Part::Other(Box::new(members)), T::into)
}

impl TextPart {
    fn from_members<E: serde::de::Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self { text: take(&mut members, "text")?, extra: Extra::from_members(members) })
    }
}

impl FilePart {
    fn from_members<E: serde::de::Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self {
            media_type: take(&mut members, "mediaType")?,
            url: take(&mut members, "url")?,
            name: take_optional(&mut members, "name"),
            extra: Extra::from_members(members),
        })
    }
}

impl ToolCallPart {
    fn from_members<E: serde::de::Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        Ok(Self {
            tool_call_id: take(&mut members, "toolCallId")?,
            tool_name: take(&mut members, "toolName")?,
            input: take(&mut members, "input")?,
            extra: Extra::from_members(members),
        })
    }
}

impl ToolResultPart {
    fn from_members<E: serde::de::Error>(mut members: Map<String, Value>) -> Result<Self, E> {
        let (output, output_unknown) = ToolOutput::from_json(take(&mut members, "output")?)?;
        let is_error = members.get("isError") == Some(&Value::Bool(true));
        if is_error {
            members.shift_remove("isError");
        }
        Ok(Self {
            tool_call_id: take(&mut members, "toolCallId")?,
            tool_name: take(&mut members, "toolName")?,
            output,
            is_error,
            output_unknown,
            unknown: members.into(),
        })
    }
}
