//! Content of a message: its parts. Plain text is one text part.
// F-MSG

use std::borrow::Cow;
use std::fmt;
use std::slice;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::part::{Part, PartExt, TextPart, ToolOutput, ToolResultPart, text_of};
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

/// The form in JSON. Both have parts, so that readers need not tell them apart.
#[derive(Clone)]
enum Form {
    /// A text part that is nothing but its text, in JSON a string.
    Plain(Part),
    /// In JSON an array.
    Parts(Vec<Part>),
}

impl Content {
    /// Returns the parts. Plain text is one text part.
    #[inline]
    pub fn parts(&self) -> &[Part] {
        match &self.form {
            Form::Plain(part) => slice::from_ref(part),
            Form::Parts(parts) => parts,
        }
    }

    /// Returns the parts, without copying them.
    #[inline]
    pub fn into_parts(self) -> Vec<Part> {
        match self.form {
            Form::Plain(part) => vec![part],
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
    /// use goondan::conversation::{Content, FilePart, Part, TextPart};
    ///
    /// let chart = FilePart::new("image/png", "https://example.org/1").named("for ada@example.org.png");
    /// let content = Content::from(vec![Part::Text(TextPart::new("the chart")), Part::File(chart)]);
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
            // It has a text and nothing else, so it stays one.
            Form::Plain(part) => _ = rewrite.part(part),
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
            Form::Plain(Part::Text(part)) => Some(&part.text),
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
            Form::Plain(part) => part.mask(),
            Form::Parts(parts) => parts.iter_mut().for_each(Part::mask),
        }
        Cow::Owned(masked)
    }

    /// Checks that no value in the content has more than `levels` levels.
    ///
    /// # Errors
    /// The place of the first that is too deep.
    pub(crate) fn check_depth(&self, levels: usize) -> Result<(), TooDeep> {
        let Form::Parts(parts) = &self.form else { return Ok(()) };
        parts.iter().enumerate().try_for_each(|(index, part)| {
            part.check_depth(levels).map_err(|error| error.within(format_args!("/content/{index}")))
        })
    }

    /// Drops the content without recursion.
    pub(crate) fn discard(self) {
        if let Form::Parts(parts) = self.form {
            parts.into_iter().for_each(Part::discard);
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
        Self { form: Form::Plain(Part::Text(TextPart::new(text))) }
    }
}

impl From<Vec<Part>> for Content {
    #[inline]
    fn from(parts: Vec<Part>) -> Self {
        Self { form: Form::Parts(parts) }
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

/// Returns the parts that only a model can make, also those in the outputs of tools.
pub(super) fn parts_of_models(content: &Content) -> impl Iterator<Item = &Part> {
    fn inner(part: &Part) -> &[Part] {
        match part {
            Part::ToolResult(ToolResultPart { output: ToolOutput::Content(parts), .. }) => parts,
            _ => &[],
        }
    }
    let parts = content.parts().iter().flat_map(|part| std::iter::once(part).chain(inner(part)));
    parts.filter(|part| part.is_of_model())
}
