//! Makes the control characters of a text visible.
//!
//! Models, tools, providers, libraries and file names bring arbitrary text. As control characters it could move the
//! cursor, change the settings of a terminal, set its title, or reorder text. One character replaces one
//! character, so columns and cuts stay where they are.

use std::borrow::Cow;

/// The replacement of a character for which Unicode has no picture.
const UNKNOWN: char = '\u{fffd}';

/// Returns `text` with a visible character for each control character, except line breaks and tabs. A carriage return
/// before a line break is dropped.
pub(crate) fn clean(text: &str) -> Cow<'_, str> {
    if !text.contains(|char| picture(char).is_some()) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\r\n", "\n").chars().map(|char| picture(char).unwrap_or(char)).collect())
}

/// Returns the picture of a character that a terminal would obey; `None` for all others.
fn picture(char: char) -> Option<char> {
    match char {
        '\n' | '\t' => None,
        // U+2400 to U+241F are pictures of the controls U+0000 to U+001F.
        '\0'..='\u{1f}' => char::from_u32(0x2400 + u32::from(char)).or(Some(UNKNOWN)),
        '\u{7f}' => Some('\u{2421}'),
        '\u{80}'..='\u{9f}' => Some(UNKNOWN),
        // Embeddings, overrides and isolates of the direction of text.
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => Some(UNKNOWN),
        _ => None,
    }
}

/// Returns the first line of `text`, cleaned and cut to `limit` characters.
pub(crate) fn first_line(text: &str, limit: usize) -> String {
    clean(text.lines().next().unwrap_or_default()).chars().take(limit).collect()
}

/// Cleans a text that arrives in pieces. Only a carriage return needs to be held back: whether it is shown depends on
/// the next piece. An escape sequence that is split is cleaned like a whole one, character by character.
#[derive(Debug, Default)]
pub(crate) struct PieceCleaner {
    holds_return: bool,
}

impl PieceCleaner {
    /// Returns the printable text after `piece` has arrived.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let mut text = if std::mem::take(&mut self.holds_return) { "\r".to_owned() } else { String::new() };
        text.push_str(piece);
        if text.ends_with('\r') {
            text.pop();
            self.holds_return = true;
        }
        clean(&text).into_owned()
    }

    /// Returns the rest of the text, which has ended.
    pub(crate) fn end(&mut self) -> String {
        let rest = if std::mem::take(&mut self.holds_return) { "\r" } else { "" };
        clean(rest).into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_visible() {
        for (text, shown) in [
            ("a\tb\nä 日本 🙂", "a\tb\nä 日本 🙂"),
            ("\x1b]0;title\x07\x1b[2J", "␛]0;title␇␛[2J"),
            ("\u{9b}31m\u{85}\u{9f}", "\u{fffd}31m\u{fffd}\u{fffd}"),
            ("\0\x08\x7f", "␀␈␡"),
            ("\u{202e}\u{2066}abc\u{2069}", "\u{fffd}\u{fffd}abc\u{fffd}"),
            ("one\r\ntwo\rthree\r", "one\ntwo␍three␍"),
        ] {
            assert_eq!(clean(text), shown);
        }
        for char in ('\0'..='\u{ffff}').filter(|char| char.is_control() && !"\n\t".contains(*char)) {
            assert!(!clean(&char.to_string()).contains(char::is_control), "{char:?}");
        }
    }

    #[test]
    fn texts_of_models_and_tools_stay_on_one_line() {
        assert_eq!(first_line("a\x1b[Ab\nc", 60), "a␛[Ab");
        assert_eq!(first_line(&"ä".repeat(100), 60), "ä".repeat(60));
    }

    #[test]
    fn pieces_are_cleaned_like_the_whole() {
        let text = "a\r\nb\rc\x1b[31m\r\n\r\rd\u{9b}2J\r";
        for at in (0..=text.len()).filter(|at| text.is_char_boundary(*at)) {
            let mut cleaner = PieceCleaner::default();
            let (first, second) = text.split_at(at);
            let shown = cleaner.push(first) + &cleaner.push(second) + &cleaner.end();
            assert_eq!(shown, clean(text), "split at {at}");
            let each: String = text.chars().map(|char| cleaner.push(&char.to_string())).collect();
            assert_eq!(each + &cleaner.end(), clean(text));
        }
    }
}
