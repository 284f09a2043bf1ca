//! The shapes of keys, plain and encoded, that must be in no recording.
// ENV-01

use std::borrow::Cow;
use std::iter::once;
use std::sync::LazyLock;

use goondan_core::secret::mask;
use goondan_keys::{RULES, is_key};
use regex::Regex;

/// The rules, one group each, after a character that keys do not have.
static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| {
    let groups: Vec<_> = RULES.iter().map(|rule| format!("({})", rule.pattern)).collect();
    Regex::new(&format!("(?:^|[^A-Za-z0-9_-]|\\\\[nrt])(?:{})", groups.join("|"))).ok()
});

/// A text that may be encoded, and is long enough for a key.
static ENCODED: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new("[A-Za-z0-9+/_-]{16,}").ok());

/// The longest text that is decoded from each place where it could begin. A longer one, such as a file, begins where it
/// begins.
const SHORT: usize = 64 << 10;

/// The number of times that an encoded text is decoded.
const DEPTH: usize = 2;

/// Returns a likely key in a text, as part of a sentence with no more of it than is needed to find it.
pub(super) fn find(text: &str) -> Option<String> {
    rule(text).or_else(|| encoded(text, DEPTH))
}

/// Returns a likely key in the text as it is.
fn rule(text: &str) -> Option<String> {
    KEY.as_ref()?.captures_iter(text).find_map(|found| {
        let (rule, key) = (1..).zip(&RULES).find_map(|(group, rule)| Some((rule, found.get(group)?.as_str())))?;
        let start = key.get(..4).unwrap_or_default();
        is_key(key).then(|| format!("`{start}…` looks like a key {}", rule.service))
    })
}

/// Returns a likely key in encoded parts of the text: in base64, in hexadecimal digits, or as in a URL. The
/// secrets of this process are found too.
fn encoded(text: &str, depth: usize) -> Option<String> {
    let depth = depth.checked_sub(1)?;
    let runs = ENCODED.as_ref()?.find_iter(text).flat_map(|run| decoded(run.as_str()));
    let url = text.contains('%').then(|| percent_decoded(text));
    runs.chain(url).find_map(|text| {
        let is_own = matches!(mask(&text), Cow::Owned(_));
        let own = is_own.then(|| "an encoded text has what looks like a key of this program".to_owned());
        own.or_else(|| rule(&text).map(|found| format!("in an encoded text, {found}")))
            .or_else(|| encoded(&text, depth))
    })
}

/// Returns the texts that a run of characters may stand for.
fn decoded(run: &str) -> impl Iterator<Item = String> {
    let starts = if run.len() > SHORT { 0..1 } else { 0..4 };
    let base64 = starts.map(|start| base64_decoded(&run.as_bytes()[start..]));
    let is_hex = run.bytes().all(|byte| byte.is_ascii_hexdigit());
    let hex = (0..2).filter(move |_| is_hex).map(|start| hex_decoded(&run.as_bytes()[start..]));
    base64.chain(hex).map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Decodes base64 in both alphabets. A rest of less than a byte is left out.
fn base64_decoded(text: &[u8]) -> Vec<u8> {
    let value = |char: &u8| match char {
        b'A'..=b'Z' => char - b'A',
        b'a'..=b'z' => char - b'a' + 26,
        b'0'..=b'9' => char - b'0' + 52,
        b'+' | b'-' => 62,
        _ => 63,
    };
    let quads = text.chunks(4).flat_map(|quad| {
        let bits = (0..4).fold(0, |bits, at| bits << 6 | u32::from(quad.get(at).map_or(0, value)));
        let [_, bytes @ ..] = bits.to_be_bytes();
        bytes.into_iter().take(quad.len() * 6 / 8)
    });
    quads.collect()
}

fn hex_decoded(text: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default();
    text.chunks_exact(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

/// Decodes `%41` and the like.
fn percent_decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let first = parts.next().unwrap_or_default().as_bytes().to_vec();
    let rest = parts.flat_map(|part| match part.as_bytes() {
        [high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
            [&hex_decoded(&[*high, *low]), rest].concat()
        }
        part => [b"%", part].concat(),
    });
    let bytes: Vec<_> = once(first).flatten().chain(rest).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_texts_are_decoded_wherever_they_begin() {
        let texts = |run: &str| decoded(run).collect::<Vec<_>>();
        assert!(texts("QUJDREVGR0hJSktM").contains(&"ABCDEFGHIJKL".to_owned()));
        assert!(texts("xQUJDREVGR0hJSktM").contains(&"ABCDEFGHIJKL".to_owned()));
        assert!(texts("QUJDREVGR0hJSktMTQ").contains(&"ABCDEFGHIJKLM".to_owned()));
        assert!(texts("0414243444546474849").contains(&"ABCDEFGHI".to_owned()));
        assert_eq!(base64_decoded(b"-_+/"), base64_decoded(b"+/-_"));
        assert_eq!(percent_decoded("a%2Fb%zz%4"), "a/b%zz%4");
    }
}
