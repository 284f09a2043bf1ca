//! Halves of surrogate pairs in JSON, which are no text.

/// Returns the JSON text with U+FFFD for each escape of half a surrogate pair; `None` if there is none. A provider that
/// cuts texts into pieces may cut a character.
#[cold]
pub(crate) fn mended(json: &str) -> Option<String> {
    let mut mended = String::with_capacity(json.len());
    let mut rest = json;
    let mut found = false;
    while let Some(at) = rest.find('\\') {
        let (before, escape) = rest.split_at(at);
        mended.push_str(before);
        let length = match (code(escape), escape.get(6..).and_then(code)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => 12,
            (Some(0xd800..=0xdfff), _) => {
                mended.push('\u{fffd}');
                found = true;
                rest = &escape[6..];
                continue;
            }
            // An escape of one character, which may be a backslash.
            _ => 1 + escape[1..].chars().next().map_or(0, char::len_utf8),
        };
        let (escape, after) = escape.split_at(length);
        mended.push_str(escape);
        rest = after;
    }
    mended.push_str(rest);
    found.then_some(mended)
}

/// Returns the code unit of the escape that the text begins with.
fn code(text: &str) -> Option<u16> {
    u16::from_str_radix(text.strip_prefix("\\u")?.get(..4)?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_halves_of_pairs_are_replaced() {
        for (json, expected) in [
            (r#""\ud800""#, Some("\"\u{fffd}\"")),
            (r#""\udc00\ud83d\ude00\uD83D\n""#, Some("\"\u{fffd}\\ud83d\\ude00\u{fffd}\\n\"")),
            (r#""\ud83d\ud83d\ude00""#, Some("\"\u{fffd}\\ud83d\\ude00\"")),
            (r#""\\ud800\u00e9 \ud83d\ude00""#, None),
            ("\"\\ud8", None),
            ("\\", None),
            ("\\é\\u00é", None),
        ] {
            assert_eq!(mended(json).as_deref(), expected, "{json}");
        }
    }
}
