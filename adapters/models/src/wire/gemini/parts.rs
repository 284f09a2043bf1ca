//! Parts of a request, which borrow the parts of messages.

use std::borrow::Cow;

use goondan_core::{FilePart, Part, ToolOutput};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::{CALL, CANDIDATE, INLINE, LINKED, OWN_ID, SIGNATURE, TEXTS};

use crate::wire::legal::substitute;

/// A part of a content.
pub(super) struct Piece<'a> {
    pub(super) kind: Kind<'a>,
    /// The members of the provider's part that the part has no field for.
    pub(super) rest: Option<&'a Map<String, Value>>,
    pub(super) signature: Signature,
}

pub(super) enum Kind<'a> {
    Text(Cow<'a, str>),
    Call {
        id: Option<&'a str>,
        name: Cow<'a, str>,
        arguments: &'a Value,
    },
    Result {
        id: Option<&'a str>,
        name: Cow<'a, str>,
        output: &'a ToolOutput,
        /// Whether files of the output are part of the result. Otherwise they follow it.
        with_files: bool,
        /// The place of the call among the calls of the conversation.
        place: usize,
    },
    File(File<'a>),
    /// All of it is in the rest.
    Whole,
}

/// The place of the signature in the rest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Signature {
    /// It goes back.
    Kept,
    /// It is left out: it belongs to another model.
    LeftOut,
    /// There is none, and the model is told not to look for one.
    Waived,
}

/// The text that the provider documents for calls that its model did not make.
const WAIVER: &str = "skip_thought_signature_validator";

/// A file that Gemini can read.
pub(super) struct File<'a> {
    media_type: &'a str,
    source: Source<'a>,
}

enum Source<'a> {
    /// The content in Base64.
    Inline(&'a str),
    Link(&'a str),
}

impl<'a> Piece<'a> {
    pub(super) fn new(kind: Kind<'a>) -> Self {
        Self { kind, rest: None, signature: Signature::LeftOut }
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Kind::Text(text.into()))
    }

    /// Returns the part of a file, or a text that names it if Gemini cannot read such files.
    pub(super) fn file(file: &'a FilePart) -> Self {
        match File::new(file) {
            Some(readable) => Self::new(Kind::File(readable)),
            None => Self::text(substitute(file)),
        }
    }

    pub(super) fn is_call(&self) -> bool {
        matches!(self.kind, Kind::Call { .. })
    }

    /// Whether the part is not an empty text without a signature.
    pub(super) fn says_something(&self) -> bool {
        !matches!(&self.kind, Kind::Text(text) if text.is_empty()) || self.has_signature()
    }

    pub(super) fn has_signature(&self) -> bool {
        self.signature == Signature::Kept && self.rest.is_some_and(|rest| rest.contains_key(SIGNATURE))
    }

    /// Returns where the part belongs within the content of the user: results come first, in the order of their calls.
    pub(super) fn rank(&self) -> (bool, usize) {
        match self.kind {
            Kind::Result { place, .. } => (false, place),
            _ => (true, 0),
        }
    }
}

impl<'a> File<'a> {
    pub(super) fn new(file: &'a FilePart) -> Option<Self> {
        let kind = file.media_type.split('/').next()?;
        if !["image", "audio", "video", "text"].contains(&kind) && file.media_type != "application/pdf" {
            return None;
        }
        let source = match file.url.strip_prefix("data:") {
            Some(data) => Source::Inline(data.split_once(";base64,")?.1),
            None => Source::Link(&file.url),
        };
        Some(Self { media_type: &file.media_type, source })
    }

    /// Whether the file can be part of the result of a tool.
    pub(super) fn fits_result(&self) -> bool {
        let known = ["image/png", "image/jpeg", "image/webp", "application/pdf", "text/plain"];
        matches!(self.source, Source::Inline(_)) && known.contains(&self.media_type)
    }

    /// Writes the member of the file. `more` has its members that have no field.
    fn write<M: SerializeMap>(&self, part: &mut M, more: Option<&Map<String, Value>>) -> Result<(), M::Error> {
        let member = match self.source {
            Source::Inline(_) => INLINE,
            Source::Link(_) => LINKED,
        };
        let more = more.and_then(|rest| rest.get(member)).and_then(Value::as_object);
        part.serialize_entry(member, &Content { file: self, more })
    }
}

/// The content of a file.
struct Content<'a> {
    file: &'a File<'a>,
    more: Option<&'a Map<String, Value>>,
}

impl Serialize for Content<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut content = serializer.serialize_map(None)?;
        content.serialize_entry("mimeType", self.file.media_type)?;
        match self.file.source {
            Source::Inline(data) => content.serialize_entry("data", data)?,
            Source::Link(url) => content.serialize_entry("fileUri", url)?,
        }
        write_all(&mut content, self.more)?;
        content.end()
    }
}

fn write_all<M: SerializeMap>(map: &mut M, members: Option<&Map<String, Value>>) -> Result<(), M::Error> {
    members.into_iter().flatten().try_for_each(|(name, value)| map.serialize_entry(name, value))
}

impl Serialize for Piece<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut part = serializer.serialize_map(None)?;
        let own: &[&str] = match &self.kind {
            Kind::Text(text) => {
                part.serialize_entry("text", text)?;
                &["text"]
            }
            Kind::Call { id, name, arguments } => {
                let more = self.rest.and_then(|rest| rest.get(CALL)).and_then(Value::as_object);
                part.serialize_entry(CALL, &Call { id: *id, name, arguments, more })?;
                &[CALL, OWN_ID]
            }
            Kind::Result { id, name, output, with_files, .. } => {
                let response = FunctionResponse { id: *id, name, output, with_files: *with_files };
                part.serialize_entry("functionResponse", &response)?;
                &[]
            }
            Kind::File(file) => {
                file.write(&mut part, self.rest)?;
                &[INLINE, LINKED]
            }
            Kind::Whole => &[],
        };
        let stays = |name: &str| match name {
            CANDIDATE | TEXTS => false,
            SIGNATURE => self.signature == Signature::Kept,
            name => !own.contains(&name),
        };
        for (name, value) in self.rest.into_iter().flatten().filter(|(name, _)| stays(name)) {
            part.serialize_entry(name, value)?;
        }
        if self.signature == Signature::Waived {
            part.serialize_entry(SIGNATURE, WAIVER)?;
        }
        part.end()
    }
}

struct Call<'a> {
    id: Option<&'a str>,
    name: &'a str,
    arguments: &'a Value,
    more: Option<&'a Map<String, Value>>,
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut call = serializer.serialize_map(None)?;
        if let Some(id) = self.id {
            call.serialize_entry("id", id)?;
        }
        call.serialize_entry("name", self.name)?;
        call.serialize_entry("args", &Arguments(self.arguments))?;
        write_all(&mut call, self.more)?;
        call.end()
    }
}

/// The arguments of a call: an object, as Gemini demands. Those of another model may be something else.
struct Arguments<'a>(&'a Value);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Value::Object(arguments) => arguments.serialize(serializer),
            other => serializer.collect_map([("arguments", other)]),
        }
    }
}

struct FunctionResponse<'a> {
    id: Option<&'a str>,
    name: &'a str,
    output: &'a ToolOutput,
    with_files: bool,
}

impl Serialize for FunctionResponse<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut response = serializer.serialize_map(None)?;
        if let Some(id) = self.id {
            response.serialize_entry("id", id)?;
        }
        response.serialize_entry("name", self.name)?;
        match self.output {
            ToolOutput::Json(value) => response.serialize_entry("response", &Output { output: value })?,
            ToolOutput::Content(parts) => {
                response.serialize_entry("response", &Output { output: lines(parts) })?;
                if self.with_files && files(parts).any(|file| file.fits_result()) {
                    response.serialize_entry("parts", &Files(parts))?;
                }
            }
            other => response.serialize_entry("response", &Output { output: other.to_text() })?,
        }
        response.end()
    }
}

/// The object that a result has to be.
#[derive(Serialize)]
struct Output<T> {
    output: T,
}

/// Returns the texts of an output, with a text in place of each file that Gemini cannot read.
fn lines(parts: &[Part]) -> String {
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    for part in parts {
        match part {
            Part::Text(part) if !part.text.is_empty() => lines.push((&*part.text).into()),
            Part::File(file) if File::new(file).is_none() => lines.push(substitute(file).into()),
            _ => {}
        }
    }
    lines.join("\n")
}

/// Returns the files of an output that Gemini can read.
pub(super) fn files(parts: &[Part]) -> impl Iterator<Item = File<'_>> {
    parts.iter().filter_map(|part| if let Part::File(file) = part { File::new(file) } else { None })
}

/// The files within a result.
struct Files<'a>(&'a [Part]);

impl Serialize for Files<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(None)?;
        for file in files(self.0).filter(File::fits_result) {
            list.serialize_element(&Piece::new(Kind::File(file)))?;
        }
        list.end()
    }
}
