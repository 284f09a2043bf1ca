//! Texts of events, borrowed where they can be.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// A text in an event. It borrows the event unless the text has escapes. In an `Option`, a `Cow` would always be
/// copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_texts_are_borrowed() {
        let read = |json: &'static str| serde_json::from_str::<Option<Text<'static>>>(json).unwrap().unwrap();
        assert!(matches!(read(r#""a piece""#), Text(Cow::Borrowed("a piece"))));
        assert!(matches!(read(r#""a\npiece""#), Text(Cow::Owned(text)) if text == "a\npiece"));
    }
}
