//! Blocks of a request, which borrow the parts of messages.

use std::borrow::Cow;

use goondan_core::{FilePart, ToolOutput};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::answer::{CALLED, NOTES};
use crate::wire::arguments::Arguments;
use crate::wire::legal::substitute;

/// A block of a message.
pub(super) struct Block<'a> {
    pub(super) kind: Kind<'a>,
    /// The members of the provider's block that the part has no field for.
    pub(super) rest: Option<&'a Map<String, Value>>,
    /// The mark of the cache, if the request is kept up to here.
    pub(super) cache: Option<&'a Value>,
}

pub(super) enum Kind<'a> {
    Text(Cow<'a, str>),
    /// Reasoning with its signature, which is in the rest.
    Thinking(&'a str),
    ToolUse {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    ToolResult {
        id: Cow<'a, str>,
        output: &'a ToolOutput,
        /// Whether the tool said that it failed.
        is_error: bool,
    },
    File(File<'a>),
    /// All of it is in the rest.
    Whole,
}

/// A file that Anthropic can read.
pub(super) struct File<'a> {
    kind: &'static str,
    source: Source<'a>,
    title: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "lowercase")]
enum Source<'a> {
    Base64 { media_type: &'a str, data: &'a str },
    Url { url: &'a str },
}

impl<'a> Block<'a> {
    pub(super) fn new(kind: Kind<'a>, rest: Option<&'a Map<String, Value>>) -> Self {
        Self { kind, rest, cache: None }
    }

    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::new(Kind::Text(text.into()), None)
    }

    /// Returns the block of a file, or a text that names it if Anthropic cannot read such files.
    pub(super) fn file(file: &'a FilePart) -> Self {
        match File::new(file) {
            Some(readable) => Self::new(Kind::File(readable), None),
            None => Self::text(substitute(file)),
        }
    }

    /// Whether the block is the result of a tool.
    pub(super) fn is_result(&self) -> bool {
        matches!(self.kind, Kind::ToolResult { .. })
    }

    /// Whether the block is reasoning.
    pub(super) fn is_thinking(&self) -> bool {
        match self.kind {
            Kind::Thinking(_) => true,
            Kind::Whole => self.rest.and_then(|rest| rest.get("type")).is_some_and(|kind| kind == "redacted_thinking"),
            _ => false,
        }
    }
}

impl<'a> File<'a> {
    fn new(file: &'a FilePart) -> Option<Self> {
        let kind = match &*file.media_type {
            "image/jpeg" | "image/png" | "image/gif" | "image/webp" => "image",
            "application/pdf" => "document",
            _ => return None,
        };
        let source = if file.url.starts_with("https:") {
            Source::Url { url: &file.url }
        } else {
            let data = file.url.strip_prefix("data:")?.split_once(";base64,")?.1;
            Source::Base64 { media_type: &file.media_type, data }
        };
        Some(Self { kind, source, title: file.name.as_deref().filter(|_| kind == "document") })
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut block = serializer.serialize_map(None)?;
        let own: &[&str] = match &self.kind {
            Kind::Text(text) => {
                block.serialize_entry("type", "text")?;
                block.serialize_entry("text", text)?;
                &["type", "text"]
            }
            Kind::Thinking(text) => {
                block.serialize_entry("type", "thinking")?;
                block.serialize_entry("thinking", text)?;
                &["type", "thinking"]
            }
            Kind::ToolUse { id, name, input } => {
                block.serialize_entry("type", "tool_use")?;
                block.serialize_entry("id", id)?;
                block.serialize_entry("name", name)?;
                block.serialize_entry("input", &Arguments(input))?;
                &["type", "id", "name", "input"]
            }
            Kind::ToolResult { id, output, is_error } => {
                block.serialize_entry("type", "tool_result")?;
                block.serialize_entry("tool_use_id", id)?;
                block.serialize_entry("content", &Output(output))?;
                if *is_error {
                    block.serialize_entry("is_error", &true)?;
                }
                &[]
            }
            Kind::File(file) => {
                block.serialize_entry("type", file.kind)?;
                block.serialize_entry("source", &file.source)?;
                if let Some(title) = file.title {
                    block.serialize_entry("title", title)?;
                }
                &[]
            }
            Kind::Whole => &[],
        };
        let rest = self.rest.into_iter().flatten();
        let left_out =
            |name: &str| [CALLED, NOTES].contains(&name) || (self.cache.is_some() && name == "cache_control");
        for (name, value) in rest.filter(|(name, _)| !own.contains(&name.as_str()) && !left_out(name)) {
            block.serialize_entry(name, value)?;
        }
        if let Some(cache) = self.cache {
            block.serialize_entry("cache_control", cache)?;
        }
        block.end()
    }
}

/// The output of a tool: a text, or blocks.
struct Output<'a>(&'a ToolOutput);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use goondan_core::Part;

        let parts = match self.0 {
            ToolOutput::Text(text) => return serializer.serialize_str(text),
            ToolOutput::Json(value) => return serializer.collect_str(value),
            ToolOutput::Content(parts) => parts,
            other => return serializer.serialize_str(&other.to_text()),
        };
        let mut blocks = serializer.serialize_seq(None)?;
        for part in parts {
            match part {
                Part::Text(part) if !part.text.trim().is_empty() => {
                    blocks.serialize_element(&Block::text(&*part.text))?
                }
                Part::File(file) => blocks.serialize_element(&Block::file(file))?,
                _ => {}
            }
        }
        blocks.end()
    }
}
