//! Words that providers accept: ids and names of calls, and a text in place of a file that cannot be sent.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

use goondan_core::FilePart;

/// Returns the id of a call in the alphabet of all providers. Equal ids stay equal, so calls and results stay together.
pub(super) fn replaced_id(id: &str) -> String {
    format!("call_{}", digits(id))
}

/// Returns 16 hexadecimal digits that are the same for the same text.
pub(super) fn digits(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Whether a text has letters, digits, `_` and `-` only, and at most `longest` of them.
pub(super) fn is_word(text: &str, longest: usize) -> bool {
    !text.is_empty() && text.len() <= longest && text.chars().all(is_of_word)
}

/// Returns the name of a tool as a word. Models sometimes invent names with other characters.
pub(super) fn word(name: &str, longest: usize) -> Cow<'_, str> {
    if is_word(name, longest) {
        return name.into();
    }
    let name: String = name.chars().take(longest).map(|c| if is_of_word(c) { c } else { '_' }).collect();
    if name.is_empty() { "_".into() } else { name.into() }
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// Returns a text that stands for a file that cannot be sent.
pub(super) fn substitute(file: &FilePart) -> String {
    let name = file.name.as_deref().map(|name| format!(" `{name}`")).unwrap_or_default();
    format!("[A file{name} of the type {} is not shown: this model cannot read it.]", file.media_type)
}
