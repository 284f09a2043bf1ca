//! Each text that a model or a person reads: one view for reading, and one for rewriting.
//!
//! Both name each member of each kind of part, so that a new kind, or a new member, does not compile until it is in
//! them. Ids and the types of parts are no texts; neither is the content of a file, in a `data:` URL.

use std::borrow::Cow;
use std::iter::Chain;
use std::option;
use std::vec;

use serde_json::{Map, Value};

use super::extra::Extra;
use super::part::{FilePart, Part, TextPart, ToolCallPart, ToolOutput, ToolResultPart};
use super::provider::ProviderData;
use super::unknown::UnknownMembers;

impl Part {
    /// Returns each text of the part that a model or a person reads: texts, reasoning, tool calls with all their
    /// arguments, tool results with the texts, errors and files in them, names, types and URLs of files, and blocks of
    /// providers. Of JSON these are the texts, the numbers, and the names of members.
    ///
    /// Ids are left out, and so is the content of a file: look at [`FilePart::url`]. [`Content::map_text`] rewrites
    /// them.
    ///
    /// [`Content::map_text`]: super::Content::map_text
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut texts = Texts::default();
        texts.part(self);
        texts.into_iter()
    }
}

impl ToolOutput {
    /// Returns each text of the output that a model or a person reads, as [`Part::texts`] does for parts.
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut texts = Texts::default();
        texts.output(self);
        texts.into_iter()
    }
}

/// Collects texts. One text, as of a plain message, needs no allocation.
#[derive(Default)]
pub(crate) struct Texts<'a> {
    first: Option<Cow<'a, str>>,
    others: Vec<Cow<'a, str>>,
}

impl<'a> IntoIterator for Texts<'a> {
    type Item = Cow<'a, str>;
    type IntoIter = Chain<option::IntoIter<Cow<'a, str>>, vec::IntoIter<Cow<'a, str>>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.others)
    }
}

impl<'a> Texts<'a> {
    /// Adds a text, unless it is empty.
    pub(crate) fn add(&mut self, text: impl Into<Cow<'a, str>>) {
        let text = text.into();
        match &self.first {
            _ if text.is_empty() => {}
            None => self.first = Some(text),
            Some(_) => self.others.push(text),
        }
    }

    pub(super) fn parts(&mut self, parts: &'a [Part]) {
        parts.iter().for_each(|part| self.part(part));
    }

    fn part(&mut self, part: &'a Part) {
        match part {
            Part::Text(TextPart { text, extra }) => {
                self.add(text);
                self.extra(extra);
            }
            Part::Reasoning(reasoning) => {
                self.add(reasoning.text());
                self.extra(reasoning.extra());
            }
            Part::File(file) => {
                let FilePart { media_type, url, name, extra } = &**file;
                self.add(media_type);
                if !is_inline(url) {
                    self.add(url);
                }
                name.iter().for_each(|name| self.add(name));
                self.extra(extra);
            }
            Part::ToolCall(call) => {
                let ToolCallPart { tool_call_id: _, tool_name, input, extra } = &**call;
                self.add(tool_name);
                self.json(input);
                self.extra(extra);
            }
            Part::ToolResult(result) => {
                let ToolResultPart { tool_call_id: _, tool_name, output, is_error: _, output_unknown, unknown } =
                    &**result;
                self.add(tool_name);
                self.output(output);
                self.unknown(output_unknown);
                self.unknown(unknown);
            }
            Part::Provider(block) => {
                self.provider(block.provider());
                self.unknown(block.unknown());
            }
            Part::Other(members) => self.values(members),
        }
    }

    pub(crate) fn output(&mut self, output: &'a ToolOutput) {
        match output {
            ToolOutput::Text(text) => self.add(text),
            ToolOutput::Json(value) => self.json(value),
            ToolOutput::Content(parts) => self.parts(parts),
            ToolOutput::Other(Value::Object(members)) => self.values(members),
            ToolOutput::Other(value) => self.json(value),
        }
    }

    pub(crate) fn json(&mut self, value: &'a Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(number) => self.add(number.to_string()),
            Value::String(text) => self.add(text),
            Value::Array(items) => items.iter().for_each(|item| self.json(item)),
            Value::Object(members) => {
                for (name, value) in members {
                    self.add(name);
                    self.json(value);
                }
            }
        }
    }

    /// Adds the texts in the members of a part. Their names belong to the format, and so does the type.
    fn values(&mut self, members: &'a Map<String, Value>) {
        members.iter().filter(|(name, _)| *name != "type").for_each(|(_, value)| self.json(value));
    }

    fn unknown(&mut self, members: &'a UnknownMembers) {
        members.iter().for_each(|(_, value)| self.json(value));
    }

    fn extra(&mut self, extra: &'a Extra) {
        extra.provider().into_iter().for_each(|data| self.provider(data));
        extra.unknown().for_each(|value| self.json(value));
    }

    fn provider(&mut self, data: &'a ProviderData) {
        self.values(data.rest());
    }
}

/// A file in its URL.
fn is_inline(url: &str) -> bool {
    url.starts_with("data:")
}

/// Rewrites texts in place.
pub(crate) struct Rewrite<'f> {
    map: &'f mut dyn FnMut(&str) -> Cow<'_, str>,
    has_changed: bool,
}

impl<'f> Rewrite<'f> {
    pub(crate) fn new(map: &'f mut dyn FnMut(&str) -> Cow<'_, str>) -> Self {
        Self { map, has_changed: false }
    }

    /// Returns whether a text has changed so far.
    pub(crate) fn has_changed(&self) -> bool {
        self.has_changed
    }

    /// Returns the text that replaces this one, if it differs.
    fn mapped(&mut self, text: &str) -> Option<String> {
        let mapped = if text.is_empty() { Cow::Borrowed(text) } else { (self.map)(text) };
        let mapped = (*mapped != *text).then(|| mapped.into_owned());
        self.has_changed |= mapped.is_some();
        mapped
    }

    /// Rewrites a text, and returns whether it has changed.
    pub(crate) fn text(&mut self, text: &mut String) -> bool {
        self.mapped(text).map(|mapped| *text = mapped).is_some()
    }

    /// Rewrites parts, and removes those that cannot be as rewritten.
    pub(super) fn parts(&mut self, parts: &mut Vec<Part>) {
        parts.retain_mut(|part| self.part(part));
    }

    /// Rewrites a part. Returns false if it is one that only a model can make and a text in it would change.
    pub(super) fn part(&mut self, part: &mut Part) -> bool {
        match part {
            Part::Text(TextPart { text, extra }) => {
                let changed = self.text(text);
                self.extra(extra, changed);
            }
            Part::Reasoning(_) | Part::Provider(_) => return !self.changes(|texts| texts.part(part)),
            Part::File(file) => {
                let FilePart { media_type, url, name, extra } = &mut **file;
                let changed = self.text(media_type)
                    | (!is_inline(url) && self.text(url))
                    | name.as_mut().is_some_and(|name| self.text(name));
                self.extra(extra, changed);
            }
            Part::ToolCall(call) => {
                let ToolCallPart { tool_call_id: _, tool_name, input, extra } = &mut **call;
                let changed = self.text(tool_name) | self.json(input);
                self.extra(extra, changed);
            }
            Part::ToolResult(result) => {
                let ToolResultPart { tool_call_id: _, tool_name, output, is_error: _, output_unknown, unknown } =
                    &mut **result;
                self.text(tool_name);
                self.output(output);
                self.unknown(output_unknown);
                self.unknown(unknown);
            }
            Part::Other(members) => _ = self.values(members.iter_mut()),
        }
        true
    }

    pub(crate) fn output(&mut self, output: &mut ToolOutput) {
        match output {
            ToolOutput::Text(text) => _ = self.text(text),
            ToolOutput::Json(value) => _ = self.json(value),
            ToolOutput::Content(parts) => self.parts(parts),
            ToolOutput::Other(Value::Object(members)) => _ = self.values(members.iter_mut()),
            ToolOutput::Other(value) => _ = self.json(value),
        }
    }

    fn json(&mut self, value: &mut Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(number) => {
                self.mapped(&number.to_string()).map(|mapped| *value = Value::String(mapped)).is_some()
            }
            Value::String(text) => self.text(text),
            Value::Array(items) => items.iter_mut().fold(false, |changed, item| self.json(item) | changed),
            Value::Object(members) => {
                let renamed: Vec<_> = members.keys().map(|name| self.mapped(name)).collect();
                let is_renamed = renamed.iter().any(Option::is_some);
                if is_renamed {
                    let names = renamed.into_iter().chain(std::iter::repeat(None));
                    let old = std::mem::take(members).into_iter().zip(names);
                    *members = old.map(|((old, value), new)| (new.unwrap_or(old), value)).collect();
                }
                members.values_mut().fold(is_renamed, |changed, value| self.json(value) | changed)
            }
        }
    }

    /// Rewrites the texts in the members of a part; see [`Texts::values`].
    fn values<'v>(&mut self, members: impl Iterator<Item = (&'v String, &'v mut Value)>) -> bool {
        let values = members.filter(|(name, _)| *name != "type");
        values.fold(false, |changed, (_, value)| self.json(value) | changed)
    }

    fn unknown(&mut self, members: &mut UnknownMembers) {
        members.values_mut().for_each(|value| _ = self.json(value));
    }

    /// Rewrites the members of a part beside its fields. Removes the data of a provider if the part has `changed`, or a
    /// text in the data would: only a model can make it.
    fn extra(&mut self, extra: &mut Extra, changed: bool) {
        let changed = extra.unknown_mut().fold(changed, |changed, value| self.json(value) | changed);
        if let Some(data) = extra.provider()
            && (changed || self.changes(|texts| texts.provider(data)))
        {
            extra.set_provider(None);
        }
    }

    /// Returns whether a text of those that `read` adds would change.
    fn changes<'a>(&mut self, read: impl FnOnce(&mut Texts<'a>)) -> bool {
        let mut texts = Texts::default();
        read(&mut texts);
        texts.into_iter().any(|text| self.mapped(&text).is_some())
    }
}
