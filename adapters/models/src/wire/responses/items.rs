//! Items of a request, which borrow the parts of messages.

use std::borrow::Cow;

use goondan_core::{FilePart, Part, ToolOutput};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use super::provided::{self, Provided};
use super::{IMAGE, Listed, MESSAGE, REASONING, text_member};

use crate::answer::CALLED;
use crate::wire::legal::substitute;

/// An item of the input.
pub(super) struct Item<'a> {
    pub(super) kind: Kind<'a>,
    /// The members of the provider's item that its parts have no field for.
    pub(super) rest: Option<&'a Map<String, Value>>,
    /// Whether the item goes back under its id.
    pub(super) with_id: bool,
}

pub(super) enum Kind<'a> {
    /// A message to the model.
    Input {
        role: &'static str,
        content: Vec<Input<'a>>,
    },
    /// A message of the model, or reasoning.
    Listed {
        listed: &'static Listed,
        entries: Vec<Entry<'a>>,
    },
    Call {
        id: Cow<'a, str>,
        name: Cow<'a, str>,
        input: &'a Value,
    },
    Output {
        id: Cow<'a, str>,
        output: &'a ToolOutput,
    },
    /// A call of a tool that OpenAI defines, and its output.
    ProvidedCall {
        id: Cow<'a, str>,
        provided: &'static Provided,
        input: &'a Value,
    },
    ProvidedOutput {
        id: Cow<'a, str>,
        output: provided::Output<'a>,
    },
    /// An image that the model made, as base64.
    Image {
        result: &'a str,
    },
    /// All of it is in the rest.
    Whole,
}

/// An entry of a list in an item.
pub(super) struct Entry<'a> {
    list: &'static str,
    text: Cow<'a, str>,
    rest: Option<&'a Map<String, Value>>,
}

/// A part of a message to the model, or of the output of a tool.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Input<'a> {
    #[serde(rename = "input_text")]
    Text { text: Cow<'a, str> },
    #[serde(rename = "input_image")]
    Image { image_url: &'a str, detail: &'static str },
    #[serde(rename = "input_file")]
    FileData { filename: &'a str, file_data: &'a str },
    #[serde(rename = "input_file")]
    FileUrl { file_url: &'a str },
}

impl<'a> Item<'a> {
    pub(super) fn new(kind: Kind<'a>, rest: Option<&'a Map<String, Value>>) -> Self {
        Self { kind, rest, with_id: true }
    }

    pub(super) fn is_reasoning(&self) -> bool {
        matches!(&self.kind, Kind::Listed { listed, .. } if listed.kind == REASONING.kind)
    }

    /// Returns a text member of the rest.
    pub(super) fn text(&self, member: &str) -> Option<&'a str> {
        self.rest?.get(member)?.as_str()
    }

    /// Whether reasoning can be sent without being stored at the provider: it is encrypted, or in plain words.
    pub(super) fn is_self_contained(&self) -> bool {
        let in_words = |entries: &[Entry<'_>]| entries.iter().any(|entry| entry.list == "content");
        match &self.kind {
            Kind::Listed { entries, .. } => self.text("encrypted_content").is_some() || in_words(entries),
            _ => true,
        }
    }
}

impl<'a> Entry<'a> {
    /// Returns the entry that a part is, if the rest has one.
    pub(super) fn of(listed: &Listed, text: &'a str, rest: Option<&'a Map<String, Value>>) -> Option<Self> {
        let list = listed.lists.iter().find(|list| rest.is_some_and(|rest| is_entry(rest, list)))?;
        Some(Self { list, text: text.into(), rest: rest?.get(*list)?.as_object() })
    }

    /// Returns the entry of a message for a text.
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self { list: "content", text: text.into(), rest: None }
    }
}

/// Whether a member of a rest is an entry, and not the list itself.
fn is_entry(rest: &Map<String, Value>, list: &str) -> bool {
    rest.get(list).is_some_and(Value::is_object)
}

impl<'a> Input<'a> {
    pub(super) fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self::Text { text: text.into() }
    }

    fn image(image_url: &'a str) -> Self {
        Self::Image { image_url, detail: "auto" }
    }

    /// Returns a file, or a text that names it if OpenAI cannot read such files.
    pub(super) fn file(file: &'a FilePart) -> Self {
        let data = file.url.starts_with("data:");
        if !data && !file.url.starts_with("https:") {
            return Self::text(substitute(file));
        }
        let unnamed = match &*file.media_type {
            "image/jpeg" | "image/png" | "image/gif" | "image/webp" => return Self::image(&file.url),
            "application/pdf" => Some("file.pdf"),
            "application/json" => Some("file.json"),
            kind if kind.starts_with("text/") => Some("file.txt"),
            // OpenAI tells their kind by the name.
            kind if kind == "application/msword" || kind.starts_with("application/vnd.openxmlformats-") => None,
            _ => return Self::text(substitute(file)),
        };
        match file.name.as_deref().or(unnamed) {
            _ if !data => Self::FileUrl { file_url: &file.url },
            Some(filename) => Self::FileData { filename, file_data: &file.url },
            None => Self::text(substitute(file)),
        }
    }
}

impl Serialize for Item<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Kind::ProvidedOutput { id, output } = &self.kind {
            return output.serialize(id, serializer);
        }
        let mut item = serializer.serialize_map(None)?;
        let (own, lists): (&[&str], &[&str]) = match &self.kind {
            Kind::Input { role, content } => {
                item.serialize_entry("type", "message")?;
                item.serialize_entry("role", role)?;
                item.serialize_entry("content", content)?;
                (&[], &[])
            }
            Kind::Listed { listed, entries } => {
                item.serialize_entry("type", listed.kind)?;
                if listed.kind == MESSAGE.kind && self.text("role").is_none() {
                    item.serialize_entry("role", "assistant")?;
                }
                if listed.kind == MESSAGE.kind && self.rest.is_none() {
                    // OpenAI did not make it: lists of texts have members that only OpenAI can fill.
                    let text: String = entries.iter().map(|entry| &*entry.text).collect();
                    item.serialize_entry("content", &text)?;
                    return item.end();
                }
                self.serialize_lists(&mut item, listed.lists, entries)?;
                (&["type"], listed.lists)
            }
            Kind::Call { id, name, input } => {
                item.serialize_entry("type", "function_call")?;
                item.serialize_entry("call_id", id)?;
                item.serialize_entry("name", name)?;
                item.serialize_entry("arguments", &arguments(input, self.text("arguments")))?;
                (&["type", "call_id", "name", "arguments"], &[])
            }
            Kind::Output { id, output } => {
                item.serialize_entry("type", "function_call_output")?;
                item.serialize_entry("call_id", id)?;
                item.serialize_entry("output", &Output(output))?;
                (&[], &[])
            }
            Kind::ProvidedCall { id, provided, input } => {
                item.serialize_entry("type", provided.call)?;
                item.serialize_entry("call_id", id)?;
                item.serialize_entry(provided.arguments, input)?;
                (&["type", "call_id", "action", "operation"], &[])
            }
            Kind::Image { result } => {
                item.serialize_entry("type", IMAGE)?;
                // OpenAI refuses the other members that it sends.
                for member in ["id", "status"] {
                    if let Some(value) = self.text(member) {
                        item.serialize_entry(member, value)?;
                    }
                }
                item.serialize_entry("result", result)?;
                return item.end();
            }
            Kind::Whole | Kind::ProvidedOutput { .. } => (&[], &[]),
        };
        self.serialize_rest(&mut item, own, lists)?;
        item.end()
    }
}

impl Item<'_> {
    fn serialize_lists<M: SerializeMap>(
        &self,
        item: &mut M,
        lists: &[&str],
        entries: &[Entry<'_>],
    ) -> Result<(), M::Error> {
        for list in lists {
            let entries: Vec<_> = entries.iter().filter(|entry| entry.list == *list).collect();
            // OpenAI requires the first list of reasoning, even if it is empty.
            let is_missing = *list == "summary" && self.rest.is_none_or(|rest| !rest.contains_key(*list));
            if !entries.is_empty() || is_missing {
                item.serialize_entry(list, &entries)?;
            }
        }
        Ok(())
    }

    /// Writes the members that OpenAI has sent, without those that the item has written itself: its `own`, and its
    /// `lists`.
    fn serialize_rest<M: SerializeMap>(&self, item: &mut M, own: &[&str], lists: &[&str]) -> Result<(), M::Error> {
        for (name, value) in self.rest.into_iter().flatten() {
            let is_own = own.contains(&name.as_str()) || (lists.contains(&name.as_str()) && value.is_object());
            // OpenAI sends a status that is null, and takes none.
            let is_unsaid = name == "status" && value.is_null();
            if name != CALLED && !is_own && !is_unsaid && (self.with_id || name != "id") {
                item.serialize_entry(name, value)?;
            }
        }
        Ok(())
    }
}

impl Serialize for Entry<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_map(None)?;
        let kind = match self.rest {
            Some(rest) => rest.get("type").and_then(Value::as_str).unwrap_or_default(),
            None => {
                entry.serialize_entry("type", "output_text")?;
                "output_text"
            }
        };
        let member = text_member(kind);
        if let Some(member) = member {
            entry.serialize_entry(member, &self.text)?;
        }
        for (name, value) in self.rest.into_iter().flatten().filter(|(name, _)| Some(name.as_str()) != member) {
            entry.serialize_entry(name, value)?;
        }
        entry.end()
    }
}

/// Returns the arguments of a call as text: as the model wrote them, unless they have been changed since.
fn arguments<'a>(input: &'a Value, written: Option<&'a str>) -> Cow<'a, str> {
    match (written, input) {
        (Some(written), _) if serde_json::from_str(written).is_ok_and(|json: Value| json == *input) => written.into(),
        // Arguments that are no JSON were kept as text.
        (_, Value::String(text)) => text.into(),
        _ => input.to_string().into(),
    }
}

/// The output of a tool: a text, or a list.
struct Output<'a>(&'a ToolOutput);

impl Serialize for Output<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let parts = match self.0 {
            ToolOutput::Content(parts) if !parts.is_empty() => parts,
            ToolOutput::Json(value) => return serializer.collect_str(value),
            other => return serializer.serialize_str(&other.to_text()),
        };
        let mut content = serializer.serialize_seq(None)?;
        for part in parts {
            match part {
                Part::Text(part) => content.serialize_element(&Input::text(&*part.text))?,
                Part::File(file) => content.serialize_element(&Input::file(file))?,
                _ => {}
            }
        }
        content.end()
    }
}
