//! Grammar of names, and text for messages: the nearest known word, lists of words, source code of tokens.

use quote::ToTokens;

/// The tokens formatted as source code. `TokenStream::to_string` puts spaces around nearly every token.
pub(super) fn source_text(tokens: impl ToTokens) -> String {
    const TIDY: [(&str, &str); 9] = [
        (" :: ", "::"),
        (" < ", "<"),
        ("< ", "<"),
        (" >", ">"),
        ("& ", "&"),
        (" ,", ","),
        (" :", ":"),
        (" ;", ";"),
        (":: ", "::"),
    ];
    TIDY.iter().fold(tokens.to_token_stream().to_string(), |text, (from, to)| text.replace(from, to))
}

/// Whether `text` matches `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`.
pub(super) fn is_kebab(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('-').all(word)
}

/// Converts `MessageWindow`, `message_window` or `Message Window` to `message-window`.
pub(super) fn to_kebab(text: &str) -> String {
    let mut kebab = String::new();
    for letter in text.chars() {
        let separator = !letter.is_alphanumeric();
        if (separator || letter.is_uppercase()) && !kebab.is_empty() && !kebab.ends_with('-') {
            kebab.push('-');
        }
        if !separator {
            kebab.extend(letter.to_lowercase());
        }
    }
    kebab.trim_end_matches('-').to_owned()
}

/// Whether `text` matches `^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`. The length is not
/// checked.
pub(super) fn is_tool_name(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let words = |side: &str| side.split('_').all(word);
    text.split_once("__").is_some_and(|(resource, tool)| words(resource) && words(tool))
}

/// Returns the closest of `words`, if at most two edits away.
pub(super) fn nearest<'w>(text: &str, words: &[&'w str]) -> Option<&'w str> {
    words.iter().copied().min_by_key(|word| edit_distance(text, word)).filter(|word| edit_distance(text, word) <= 2)
}

/// The Levenshtein distance.
fn edit_distance(from: &str, to: &str) -> usize {
    let to: Vec<_> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (above, letter) in from.chars().enumerate() {
        let mut last = vec![above + 1];
        for ((cell, wanted), diagonal) in row.iter().skip(1).zip(&to).zip(&row) {
            let replaced = diagonal + usize::from(letter != *wanted);
            let left = last.last().map_or(replaced, |left| left + 1);
            last.push(replaced.min(left).min(cell + 1));
        }
        row = last;
    }
    row.last().copied().unwrap_or_default()
}

/// Formats `` `a`, `b` or `c` ``, where `or` is the conjunction.
pub(super) fn list(words: &[&str], conjunction: &str) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {conjunction} {last}", first.join(", ")),
        None => String::new(),
    }
}
