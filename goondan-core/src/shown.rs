//! Updates of extensions for the person, apart from messages.
// SHOW-01

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::name::{ExtensionName, TurnId};
use crate::presentation::{in_lines, in_one_line};

/// The most characters of a note.
const MAX_NOTE: usize = 2_000;
/// The most characters of a title, a status, an item of a list, and an id.
const MAX_LINE: usize = 200;
/// The most items of a list.
const MAX_ITEMS: usize = 100;
/// The most characters of a difference.
const MAX_DIFFERENCE: usize = 64 * 1024;

/// Something that an extension shows to the person: [`EventsApi::show`](crate::EventsApi::show) shows it.
///
/// ```
/// use goondan::event::{ItemState, Shown, ShownItem};
///
/// let note = Shown::note("The index is 3 days old.");
/// let status = Shown::status("12 of 40 files");
/// let items = [ShownItem::new(ItemState::Done, "read"), ShownItem::new(ItemState::Active, "write")];
/// let list = Shown::list("Plan", items);
/// assert_eq!(list.to_string(), "Plan\n[x] read\n[>] write");
/// # _ = (note, status);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
#[non_exhaustive]
pub enum Shown {
    /// A text that stays.
    Note {
        /// The text; of more than 2,000 characters, the first ones are shown.
        text: String,
    },
    /// The current work of the extension, in one line of at most 200 characters.
    Status {
        /// The id, which may be empty: a status takes the place of the one with the same id.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// The text; an empty one takes the status away.
        text: String,
    },
    /// Items with their states.
    List {
        /// The id, which may be empty: a list takes the place of the one with the same id.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        id: String,
        /// The title, in one line.
        title: String,
        /// The items, 100 at most; without any, the list is taken away.
        items: Vec<ShownItem>,
    },
    /// A difference of texts.
    Difference {
        /// A unified diff, with the names of the files; of more than 65,536 characters, the first ones are shown.
        diff: String,
    },
    /// A type that this version does not know.
    #[serde(other)]
    Other,
}

/// An item of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ShownItem {
    /// The state of the item.
    #[serde(default)]
    pub state: ItemState,
    /// One line.
    pub text: String,
}

/// State of an item.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub enum ItemState {
    /// Nothing is done yet.
    #[default]
    Open,
    /// It is being done.
    Active,
    /// It is done.
    Done,
    /// It failed.
    Failed,
    /// A state that this version does not know.
    #[serde(other)]
    Other,
}

/// An update of an extension for the person: the payload of the event `extension.shown`.
///
/// ```
/// use goondan::event::ExtensionShown;
/// use goondan::prelude::*;
///
/// /// Logs what others show.
/// fn log(event: &Event, api: &ExtensionApi) -> Result<()> {
///     let ExtensionShown { extension, shown, .. } = event.payload()?;
///     api.logger().info(format!("{extension} shows {shown}"));
///     Ok(())
/// }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExtensionShown {
    /// The name of the extension.
    pub extension: ExtensionName,
    /// The turn in which it was shown; `None` between turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_id: Option<TurnId>,
    /// The update: masked, shortened, and without control characters.
    pub shown: Shown,
}

impl ExtensionShown {
    /// The name of the event with this payload.
    pub const NAME: &str = "extension.shown";

    /// An update of `extension` between turns.
    pub fn new(extension: ExtensionName, shown: Shown) -> Self {
        Self { extension, turn_id: None, shown }
    }
}

impl Shown {
    /// A text that stays.
    pub fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    /// The current work of the extension. Front ends show it until the end of the turn.
    pub fn status(text: impl Into<String>) -> Self {
        Self::Status { id: String::new(), text: text.into() }
    }

    /// Items with their states. The list stays in its place while it changes.
    pub fn list(title: impl Into<String>, items: impl IntoIterator<Item = ShownItem>) -> Self {
        Self::List { id: String::new(), title: title.into(), items: items.into_iter().collect() }
    }

    /// A difference: a unified diff, with the names of the files.
    pub fn difference(diff: impl Into<String>) -> Self {
        Self::Difference { diff: diff.into() }
    }

    /// Sets the id of a status or a list, for an extension that shows several.
    #[must_use]
    pub fn with_id(mut self, new: impl Into<String>) -> Self {
        if let Self::Status { id, .. } | Self::List { id, .. } = &mut self {
            *id = new.into();
        }
        self
    }

    /// Returns the id of a status or a list.
    pub fn id(&self) -> Option<&str> {
        match self {
            Self::Status { id, .. } | Self::List { id, .. } => Some(id),
            _ => None,
        }
    }

    /// Returns whether this takes the place of `other`, which the same extension has shown.
    pub fn replaces(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Status { id, .. }, Self::Status { id: other, .. })
            | (Self::List { id, .. }, Self::List { id: other, .. }) => id == other,
            _ => false,
        }
    }

    /// Returns it with secrets masked, shortened, and without control characters.
    #[doc(hidden)]
    #[must_use]
    pub fn cleaned(self) -> Self {
        let line = |text: &str| in_one_line(text, MAX_LINE);
        match self {
            Self::Note { text } => Self::Note { text: in_lines(&text, MAX_NOTE) },
            Self::Status { id, text } => Self::Status { id: line(&id), text: line(&text) },
            Self::List { id, title, items } => {
                let left_out = items.len().saturating_sub(MAX_ITEMS);
                let cleaned = items.iter().take(MAX_ITEMS).map(|item| ShownItem::new(item.state, line(&item.text)));
                let more = (left_out > 0).then(|| ShownItem::new(ItemState::Open, format!("… {left_out} more")));
                Self::List { id: line(&id), title: line(&title), items: cleaned.chain(more).collect() }
            }
            Self::Difference { diff } => Self::Difference { diff: in_lines(&diff, MAX_DIFFERENCE) },
            Self::Other => Self::Other,
        }
    }
}

impl ShownItem {
    /// An item in this state.
    pub fn new(state: ItemState, text: impl Into<String>) -> Self {
        Self { state, text: text.into() }
    }
}

impl ItemState {
    /// Returns the mark before an item in plain text, such as `[x]` for one that is done.
    pub fn mark(self) -> &'static str {
        match self {
            Self::Active => "[>]",
            Self::Done => "[x]",
            Self::Failed => "[!]",
            Self::Open | Self::Other => "[ ]",
        }
    }
}

/// As plain text: a list has a line for each item.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Note { text } | Self::Status { text, .. } | Self::Difference { diff: text } => f.write_str(text),
            Self::List { title, items, .. } => {
                f.write_str(title)?;
                items.iter().try_for_each(|item| write!(f, "\n{} {}", item.state.mark(), item.text))
            }
            Self::Other => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::secret::Secret;

    #[test]
    fn what_is_shown_is_short_and_has_no_control_characters() {
        let text = |shown: Shown| shown.cleaned().to_string();
        assert_eq!(text(Shown::note("a\r\n\tb\x1b[2J\u{202e}")), "a\n\tb\u{fffd}[2J\u{fffd}");
        assert_eq!(text(Shown::status("a\nb\x07")), "a b\u{fffd}");
        let long = "ä".repeat(1_000_000);
        assert_eq!(text(Shown::note(&*long)).chars().count(), MAX_NOTE);
        assert_eq!(text(Shown::status(&*long)).chars().count(), MAX_LINE);
        assert_eq!(text(Shown::difference(&*long)).chars().count(), MAX_DIFFERENCE);
        let items = std::iter::repeat_n(ShownItem::new(ItemState::Done, &*long), 123);
        let Shown::List { id, title, items } = Shown::list(&*long, items).with_id(&*long).cleaned() else { panic!() };
        let lengths = [&id, &title, &items[0].text].map(|text| text.chars().count());
        assert_eq!((lengths, items.len(), &*items[100].text), ([MAX_LINE; 3], 101, "… 23 more"));
    }

    #[test]
    fn secrets_are_masked() {
        let _secret = Secret::new("the-secret-4712");
        let text = "key the-secret-4712";
        let list = Shown::list(text, [ShownItem::new(ItemState::Open, text)]).with_id(text);
        for shown in [Shown::note(text), Shown::status(text), list, Shown::difference(text)] {
            let json = serde_json::to_string(&shown.cleaned()).unwrap();
            assert!(json.contains("key ***") && !json.contains("4712"), "{json}");
        }
    }

    #[test]
    fn only_a_status_or_list_of_the_same_id_is_replaced() {
        let list = |id: &str| Shown::list("a", []).with_id(id);
        assert!(list("x").replaces(&list("x")) && !list("x").replaces(&list("y")));
        assert!(Shown::status("a").replaces(&Shown::status("b")) && !Shown::status("a").replaces(&list("")));
        assert!(!Shown::note("a").replaces(&Shown::note("a")));
    }

    #[test]
    fn what_a_later_version_shows_is_read() {
        let list = json!({ "type": "list", "title": "t", "folded": true, "items": [{ "state": "new", "text": "a" }] });
        let item = ShownItem::new(ItemState::Other, "a");
        assert_eq!(serde_json::from_value::<Shown>(list).unwrap(), Shown::list("t", [item]));
        assert_eq!(serde_json::from_value::<Shown>(json!({ "type": "chart", "bars": [1] })).unwrap(), Shown::Other);
    }
}
