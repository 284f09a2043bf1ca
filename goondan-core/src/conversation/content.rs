//! Content of a message: its parts. Plain text is one text part.
// F-MSG

use std::borrow::Cow;
use std::fmt;
use std::slice;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::part::{FilePart, Part, TextPart, ToolOutput, text_of};
use super::part_ext::PartExt;
use super::texts::{Rewrite, Texts};
use crate::depth::TooDeep;
use crate::secret;

/// The content of a message: text, tool calls, tool results and parts of other types, in order.
///
/// Plain text is one text part:
///
/// ```
/// use goondan::conversation::{Content, Part};
///
/// let content = Content::from("hello");
/// assert!(matches!(content.parts(), [Part::Text(part)] if part.text == "hello"));
/// assert_eq!(content.text(), "hello");
/// ```
///
/// [`Content::texts`] is for guards and [`Content::map_text`] for masks: they pass over nothing that a model or a
/// person reads.
#[derive(Clone)]
pub struct Content {
    form: Form,
}

/// The parts: most messages have one, which needs no allocation.
#[derive(Clone)]
enum Form {
    /// A text part that is nothing but its text, in JSON a string. Or a part that is no text, in JSON an array.
    One(Part),
    /// In JSON an array, also if it has one text part.
    Parts(Vec<Part>),
}

// Every message has one, and messages are moved often.
const _: () = assert!(size_of::<Content>() == size_of::<String>() + size_of::<usize>());

impl Content {
    /// Returns the parts. Plain text is one text part.
    #[inline]
    pub fn parts(&self) -> &[Part] {
        match &self.form {
            Form::One(part) => slice::from_ref(part),
            Form::Parts(parts) => parts,
        }
    }

    /// Returns the parts, without copying them.
    #[inline]
    pub fn into_parts(self) -> Vec<Part> {
        match self.form {
            Form::One(part) => vec![part],
            Form::Parts(parts) => parts,
        }
    }

    /// Returns the text of the parts and of tool results, joined by newlines, without reasoning, calls and files. A
    /// guard needs [`Content::texts`], which leaves nothing out.
    pub fn text(&self) -> Cow<'_, str> {
        self.as_plain().map_or_else(|| text_of(self.parts()), Cow::Borrowed)
    }

    /// Returns each text that a model or a person reads: the [texts](Part::texts) of all parts.
    ///
    /// ```
    /// use goondan::conversation::{Content, FilePart, TextPart};
    ///
    /// let chart = FilePart::new("image/png", "https://example.org/1").named("for ada@example.org.png");
    /// let content = Content::from(vec![TextPart::new("the chart").into(), chart.into()]);
    /// assert!(content.texts().any(|text| text.contains('@')));
    /// ```
    pub fn texts(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let mut texts = Texts::default();
        texts.parts(self.parts());
        texts.into_iter()
    }

    /// Rewrites each text that a model or a person reads: those that [`Content::texts`] returns.
    ///
    /// Parts that only a model can make are never changed: reasoning, and blocks of a provider, are left out if a text
    /// in them would change. A text or a call that changes loses its data of the provider, such as a signature. A number
    /// in JSON becomes a text if it changes; of several members of an object that get the same name, the last is kept.
    ///
    /// ```
    /// use goondan::conversation::Content;
    ///
    /// let content = Content::from("the code is 4711").map_text(|text| text.replace("4711", "[code]").into());
    /// assert_eq!(content.text(), "the code is [code]");
    /// ```
    #[must_use]
    pub fn map_text(self, map: impl FnMut(&str) -> Cow<'_, str>) -> Self {
        self.rewritten(map).0
    }

    /// Returns the content with its texts rewritten, and whether one has changed.
    pub(super) fn rewritten(mut self, mut map: impl FnMut(&str) -> Cow<'_, str>) -> (Self, bool) {
        let mut rewrite = Rewrite::new(&mut map);
        match &mut self.form {
            Form::One(part) => {
                if !rewrite.part(part) {
                    self.form = Form::Parts(Vec::new());
                }
            }
            Form::Parts(parts) => rewrite.parts(parts),
        }
        let has_changed = rewrite.has_changed();
        (self, has_changed)
    }

    /// Returns the text if the content is plain text.
    #[doc(hidden)]
    #[inline]
    pub fn as_plain(&self) -> Option<&str> {
        match &self.form {
            Form::One(Part::Text(part)) => Some(&part.text),
            _ => None,
        }
    }

    /// Returns the content with secrets masked, for recorded requests and runtime events.
    #[doc(hidden)]
    pub fn masked(&self) -> Cow<'_, Self> {
        if !secret::any() {
            return Cow::Borrowed(self);
        }
        let mut masked = self.clone();
        match &mut masked.form {
            Form::One(part) => part.mask(),
            Form::Parts(parts) => parts.iter_mut().for_each(Part::mask),
        }
        Cow::Owned(masked)
    }

    /// Returns whether a part is a file, also in the outputs of tools.
    #[doc(hidden)]
    pub fn has_files(&self) -> bool {
        parts_within(self).any(|part| matches!(part, Part::File(_)))
    }

    /// Returns the content with a text in place of each file for which `text` returns one, also in the outputs of
    /// tools, or `None` if there is no such file.
    #[doc(hidden)]
    pub fn replace_files(&self, text: impl Fn(&FilePart) -> Option<TextPart>) -> Option<Self> {
        fn replace(part: &mut Part, text: &dyn Fn(&FilePart) -> Option<TextPart>) {
            match part {
                Part::File(file) => {
                    if let Some(text) = text(file) {
                        *part = Part::Text(text);
                    }
                }
                Part::ToolResult(result) => {
                    if let ToolOutput::Content(parts) = &mut result.output {
                        parts.iter_mut().for_each(|part| replace(part, text));
                    }
                }
                _ => {}
            }
        }
        let is_replaced = |part: &Part| matches!(part, Part::File(file) if text(file).is_some());
        parts_within(self).any(is_replaced).then(|| {
            let mut parts = self.parts().to_vec();
            parts.iter_mut().for_each(|part| replace(part, &text));
            parts.into()
        })
    }

    /// Checks that no value in the content has more than `levels` levels.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    #[inline]
    pub(crate) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        if self.as_plain().is_some() { Ok(()) } else { self.check_parts(levels) }
    }

    fn check_parts(&self, levels: usize) -> Result<(), TooDeep> {
        self.parts().iter().enumerate().try_for_each(|(index, part)| {
            part.check_depth(levels).map_err(|error| error.within(format_args!("/content/{index}")))
        })
    }

    /// Drops the content without recursion.
    pub(crate) fn discard(self) {
        match self.form {
            Form::One(part) => part.discard(),
            Form::Parts(parts) => parts.into_iter().for_each(Part::discard),
        }
    }
}

impl From<&str> for Content {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for Content {
    #[inline]
    fn from(text: String) -> Self {
        Self { form: Form::One(TextPart::new(text).into()) }
    }
}

/// A text part that is nothing but its text is plain text.
impl From<Part> for Content {
    #[inline]
    fn from(part: Part) -> Self {
        let form = match &part {
            Part::Text(text) if !text.is_plain() => Form::Parts(vec![part]),
            _ => Form::One(part),
        };
        Self { form }
    }
}

impl From<Vec<Part>> for Content {
    #[inline]
    fn from(mut parts: Vec<Part>) -> Self {
        let is_one = parts.len() == 1;
        let one = parts.pop_if(|part| is_one && !matches!(part, Part::Text(_)));
        Self { form: one.map_or(Form::Parts(parts), Form::One) }
    }
}

/// Plain text equals a text part with the same text.
impl PartialEq for Content {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_plain() {
            Some(text) => text.fmt(f),
            None => self.parts().fmt(f),
        }
    }
}

impl Serialize for Content {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.as_plain() {
            Some(text) => serializer.serialize_str(text),
            None => self.parts().serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Json {
            Text(String),
            Parts(Vec<Part>),
        }
        Ok(match Json::deserialize(deserializer)? {
            Json::Text(text) => text.into(),
            Json::Parts(parts) => parts.into(),
        })
    }
}

/// Returns the content of a message with the answer of a model: plain text if it is nothing else.
pub fn answer_content(mut parts: Vec<Part>) -> Content {
    parts.retain(|part| !matches!(part, Part::Text(part) if part.text.is_empty() && part.is_plain()));
    match parts.as_mut_slice() {
        [] => Content::from(String::new()),
        [Part::Text(part)] if part.is_plain() => std::mem::take(&mut part.text).into(),
        _ => parts.into(),
    }
}

/// Returns the parts, also those in the outputs of tools.
pub(super) fn parts_within(content: &Content) -> impl Iterator<Item = &Part> {
    fn inner(part: &Part) -> &[Part] {
        match part {
            Part::ToolResult(result) => match &result.output {
                ToolOutput::Content(parts) => parts,
                _ => &[],
            },
            _ => &[],
        }
    }
    content.parts().iter().flat_map(|part| std::iter::once(part).chain(inner(part)))
}
