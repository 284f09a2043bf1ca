//! A text without what a reader would not see.

use std::borrow::Cow;

/// Returns the text without characters that have no picture: control characters, marks that change the direction of
/// text, and characters of no width, which can hide instructions in a text that looks harmless. Line breaks and tabs
/// stay, and so do joiners and variation selectors, one after each character that is not ASCII, as in 👩‍🔧.
///
/// ```
/// assert_eq!(goondan_text::visible("in\u{200b}visible\u{e0041} \u{202e}text\u{1b}\r\n"), "invisible text\n");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    // Most texts are ASCII.
    let is_plain = |byte: &u8| (b' '..0x7f).contains(byte) || matches!(byte, b'\n' | b'\t');
    if text.as_bytes().iter().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut before = '\0';
    let kept: String = text
        .chars()
        .filter(|&char| {
            let keeps = if is_joiner(char) { !before.is_ascii() && !is_joiner(before) } else { has_picture(char) };
            if keeps {
                before = char;
            }
            keeps
        })
        .collect();
    if kept.len() == text.len() { Cow::Borrowed(text) } else { Cow::Owned(kept) }
}

/// Whether a character changes only the form of its neighbours.
fn is_joiner(char: char) -> bool {
    matches!(char, '\u{200c}' | '\u{200d}' | '\u{fe0e}' | '\u{fe0f}')
}

/// Whether a reader sees a character, or the space that it leaves.
fn has_picture(char: char) -> bool {
    match char {
        '\n' | '\t' => true,
        _ if char.is_control() => false,
        // The property `Default_Ignorable_Code_Point` of Unicode, and annotations of lines.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'..='\u{1160}'
        | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{3164}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => false,
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_reader_sees_stays() {
        for text in ["a\tb\nc", "日本 한글 العربية", "👩‍🔧 ❤️ 👍🏽", "می‌خواهم", "e\u{301}", ""]
        {
            assert_eq!(visible(text), text);
        }
    }

    #[test]
    fn what_a_reader_does_not_see_is_removed() {
        for (text, seen) in [
            ("one\r\ntwo\0\x1b[2J\x7f\u{9b}", "one\ntwo[2J"),
            ("ig\u{200b}nore \u{feff}all\u{ad}", "ignore all"),
            ("\u{202e}abc\u{2066}d\u{2069}\u{200f}", "abcd"),
            ("safe\u{e0049}\u{e0067}\u{e01ef}", "safe"),
            ("a\u{200d}b\u{fe0f}\u{fe01}", "ab"),
            ("é\u{200d}\u{200c}\u{200d}\u{fe0f}é", "é\u{200d}é"),
            ("\u{3164}\u{2800}\u{115f}", "\u{2800}"),
        ] {
            assert_eq!(visible(text), seen, "{text:?}");
        }
    }
}
