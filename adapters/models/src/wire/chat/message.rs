//! Messages of a request, which borrow the parts of the conversation.

use std::borrow::Cow;
use std::collections::BTreeSet;

use goondan_core::{FilePart, ReasoningPart};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::answer::NOTES;

/// A message.
pub(super) struct Message<'a> {
    pub(super) role: &'static str,
    /// The call that a result answers.
    pub(super) call_id: Option<Cow<'a, str>>,
    pub(super) content: Vec<Block<'a>>,
    pub(super) refusal: Option<&'a str>,
    pub(super) reasoning: Vec<Reasoning<'a>>,
    /// Whether calls need reasoning, if only an empty one.
    pub(super) needs_reasoning: bool,
    pub(super) calls: Vec<Call<'a>>,
    /// Whether a message without text needs an empty one.
    pub(super) needs_content: bool,
    /// The members of the provider's message that no part has a field for.
    pub(super) rest: Option<&'a Map<String, Value>>,
}

/// A block of the content.
pub(super) enum Block<'a> {
    Text(Cow<'a, str>),
    File(&'a FilePart),
    /// Reasoning that came as a block.
    Thinking(Reasoning<'a>),
    /// A block of the provider.
    Whole(&'a Map<String, Value>),
    /// An element of reasoning that is no text.
    Other(&'a Value),
}

/// Reasoning with the members of the provider's block. The type is one of them.
pub(super) struct Reasoning<'a> {
    pub(super) kind: &'a str,
    pub(super) text: &'a str,
    pub(super) rest: &'a Map<String, Value>,
}

/// A tool call.
pub(super) struct Call<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) input: &'a Value,
    pub(super) rest: Option<&'a Map<String, Value>>,
}

/// The member of messages that is a list of blocks of reasoning.
const DETAILS: &str = "reasoning_details";
/// The member of messages that is reasoning as a text, of the servers that must have one.
const REASONING: &str = "reasoning_content";
/// The members of messages that are written from parts.
const OWN: [&str; 8] = ["role", "tool_call_id", "content", "refusal", "tool_calls", DETAILS, REASONING, NOTES];

impl<'a> Message<'a> {
    pub(super) fn new(role: &'static str) -> Self {
        Self {
            role,
            call_id: None,
            content: Vec::new(),
            refusal: None,
            reasoning: Vec::new(),
            needs_reasoning: false,
            calls: Vec::new(),
            needs_content: false,
            rest: None,
        }
    }

    /// Whether nothing would be sent but reasoning.
    pub(super) fn is_empty(&self) -> bool {
        let says = |block: &Block<'_>| !matches!(block, Block::Thinking(_));
        !self.content.iter().any(says) && self.calls.is_empty() && self.refusal.is_none()
    }

    /// Adds the next words of the same author.
    pub(super) fn extend(&mut self, more: Self) {
        self.content.extend(more.content);
        self.refusal = more.refusal.or(self.refusal);
        self.reasoning.extend(more.reasoning);
        self.calls.extend(more.calls);
        self.rest = more.rest.or(self.rest);
    }

    /// Returns the texts, joined, if there is nothing else.
    fn text(&self) -> Option<Cow<'_, str>> {
        let text = |block: &'_ Block<'a>| match block {
            Block::Text(text) => Some(text.clone()),
            _ => None,
        };
        match &*self.content {
            [Block::Text(text)] => Some(Cow::Borrowed(text)),
            blocks => Some(blocks.iter().map(text).collect::<Option<Vec<_>>>()?.join("\n").into()),
        }
    }
}

impl<'a> Reasoning<'a> {
    /// Returns the reasoning, if it came with a type.
    pub(super) fn new(part: &'a ReasoningPart) -> Option<Self> {
        let rest = part.provider()?.rest();
        Some(Self { kind: rest.get("type")?.as_str()?, text: part.text(), rest })
    }

    /// Whether the reasoning is one of `reasoning_details`, which are signed.
    pub(super) fn is_detail(&self) -> bool {
        self.kind.starts_with("reasoning.")
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut message = serializer.serialize_map(None)?;
        message.serialize_entry("role", self.role)?;
        if let Some(id) = &self.call_id {
            message.serialize_entry("tool_call_id", id)?;
        }
        match self.text() {
            Some(_) if self.content.is_empty() && self.call_id.is_none() && !self.needs_content => {
                message.serialize_entry("content", &Value::Null)?;
            }
            Some(text) => message.serialize_entry("content", &text)?,
            None => message.serialize_entry("content", &self.content)?,
        }
        if let Some(refusal) = self.refusal {
            message.serialize_entry("refusal", refusal)?;
        }
        let members = self.reasoning.iter().filter(|reasoning| !reasoning.is_detail());
        let kinds: BTreeSet<_> = members.clone().map(|reasoning| reasoning.kind).collect();
        for kind in &kinds {
            let same = members.clone().filter(|reasoning| reasoning.kind == *kind);
            message.serialize_entry(kind, &same.map(|reasoning| reasoning.text).collect::<Vec<_>>().join("\n"))?;
        }
        if self.needs_reasoning && self.reasoning.is_empty() && !self.calls.is_empty() {
            message.serialize_entry(REASONING, "")?;
        }
        let details: Vec<_> = self.reasoning.iter().filter(|reasoning| reasoning.is_detail()).collect();
        if !details.is_empty() {
            message.serialize_entry(DETAILS, &details)?;
        }
        if !self.calls.is_empty() {
            message.serialize_entry("tool_calls", &self.calls)?;
        }
        for (name, value) in self.rest.into_iter().flatten() {
            if !OWN.contains(&name.as_str()) && !kinds.contains(name.as_str()) {
                message.serialize_entry(name, value)?;
            }
        }
        message.end()
    }
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let file = match self {
            Self::Thinking(reasoning) => return reasoning.serialize(serializer),
            Self::Other(element) => return element.serialize(serializer),
            Self::Whole(members) => {
                let mut block = serializer.serialize_map(None)?;
                add_rest(&mut block, Some(members), &[NOTES])?;
                return block.end();
            }
            Self::Text(text) => {
                let mut block = serializer.serialize_map(Some(2))?;
                block.serialize_entry("type", "text")?;
                block.serialize_entry("text", text)?;
                return block.end();
            }
            Self::File(file) => file,
        };
        let (kind, source) = Source::of(file);
        let mut block = serializer.serialize_map(Some(2))?;
        block.serialize_entry("type", kind)?;
        block.serialize_entry(kind, &source)?;
        block.end()
    }
}

/// Where the content of a file is.
#[derive(Serialize)]
#[serde(untagged)]
enum Source<'a> {
    Image { url: &'a str },
    Audio { data: &'a str, format: &'static str },
    File { filename: &'a str, file_data: &'a str },
}

impl<'a> Source<'a> {
    /// Returns the source of a file, and the type of its block.
    fn of(file: &'a FilePart) -> (&'static str, Self) {
        if file.media_type.starts_with("image/") {
            return ("image_url", Self::Image { url: &file.url });
        }
        match (audio(&file.media_type), file.url.split_once(";base64,")) {
            (Some(format), Some((_, data))) => ("input_audio", Self::Audio { data, format }),
            _ => ("file", Self::File { filename: file.name.as_deref().unwrap_or("file"), file_data: &file.url }),
        }
    }
}

/// Returns the name of a format of sound, if it is one that can be sent.
fn audio(media_type: &str) -> Option<&'static str> {
    match media_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}

impl Serialize for Reasoning<'_> {
    /// Writes the block that the reasoning came in.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut block = serializer.serialize_map(None)?;
        block.serialize_entry("type", self.kind)?;
        let own = match self.kind {
            "thinking" => {
                let others = self.rest.get("thinking").and_then(Value::as_array).into_iter().flatten();
                let elements = std::iter::once(Block::Text(self.text.into())).chain(others.map(Block::Other));
                block.serialize_entry("thinking", &elements.collect::<Vec<_>>())?;
                "thinking"
            }
            "reasoning.text" => {
                block.serialize_entry("text", self.text)?;
                "text"
            }
            "reasoning.summary" => {
                block.serialize_entry("summary", self.text)?;
                "summary"
            }
            _ => "",
        };
        add_rest(&mut block, Some(self.rest), &["type", own, NOTES])?;
        block.end()
    }
}

impl Serialize for Call<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut call = serializer.serialize_map(None)?;
        call.serialize_entry("id", &self.id)?;
        call.serialize_entry("type", "function")?;
        call.serialize_entry("function", &Function(self))?;
        add_rest(&mut call, self.rest, &["id", "type", "function", "index", NOTES])?;
        call.end()
    }
}

struct Function<'a>(&'a Call<'a>);

impl Serialize for Function<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut function = serializer.serialize_map(Some(2))?;
        function.serialize_entry("name", &self.0.name)?;
        function.serialize_entry("arguments", &Arguments(self.0.input))?;
        function.end()
    }
}

/// The text of the arguments, which must be those of an object: servers parse it.
struct Arguments<'a>(&'a Value);

impl Serialize for Arguments<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_object() {
            return serializer.collect_str(self.0);
        }
        serializer.collect_str(&format_args!("{{\"arguments\":{}}}", self.0))
    }
}

/// Adds the members of the provider's object, without those that are written otherwise.
fn add_rest<M: SerializeMap>(object: &mut M, rest: Option<&Map<String, Value>>, own: &[&str]) -> Result<(), M::Error> {
    let rest = rest.into_iter().flatten().filter(|(name, _)| !own.contains(&name.as_str()));
    rest.into_iter().try_for_each(|(name, value)| object.serialize_entry(name, value))
}

/// A tool of the step, or one that runs at the provider.
pub(super) enum Tool<'a> {
    Step(&'a goondan_core::ToolItem),
    Provider(&'a Value),
}

impl Serialize for Tool<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = match self {
            Self::Step(item) => *item,
            Self::Provider(tool) => return tool.serialize(serializer),
        };
        let mut tool = serializer.serialize_map(Some(2))?;
        tool.serialize_entry("type", "function")?;
        tool.serialize_entry("function", &Described(item))?;
        tool.end()
    }
}

struct Described<'a>(&'a goondan_core::ToolItem);

impl Serialize for Described<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut described = serializer.serialize_map(None)?;
        described.serialize_entry("name", &self.0.name)?;
        if let Some(description) = &self.0.description {
            described.serialize_entry("description", description)?;
        }
        match &self.0.parameters {
            Some(schema) => described.serialize_entry("parameters", schema)?,
            None => described.serialize_entry("parameters", &AnyObject { kind: "object", properties: Map::new() })?,
        }
        described.end()
    }
}

/// The schema of all objects.
#[derive(Serialize)]
struct AnyObject {
    #[serde(rename = "type")]
    kind: &'static str,
    properties: Map<String, Value>,
}
