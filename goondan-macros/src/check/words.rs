//! Owns the grammar of words: names that are legal, the nearest legal word, lists of words and source text for messages.

use quote::ToTokens;

/// The tokens as somebody would write them: printed tokens have spaces around all of them.
pub(super) fn written(tokens: impl ToTokens) -> String {
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

/// `^[a-z][a-z0-9]*(-[a-z0-9]+)*$`
pub(super) fn is_kebab(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit());
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.split('-').all(word)
}

/// `MessageWindow`, `message_window` or `Message Window` as `message-window`.
pub(super) fn kebab(text: &str) -> String {
    let mut kebab = String::new();
    for letter in text.chars() {
        let joint = !letter.is_alphanumeric();
        if (joint || letter.is_uppercase()) && !kebab.is_empty() && !kebab.ends_with('-') {
            kebab.push('-');
        }
        if !joint {
            kebab.extend(letter.to_lowercase());
        }
    }
    kebab.trim_end_matches('-').to_owned()
}

/// `^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$`, without the limit of length.
pub(super) fn is_tool_name(text: &str) -> bool {
    let word = |word: &str| !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    let words = |side: &str| side.split('_').all(word);
    text.split_once("__").is_some_and(|(resource, tool)| words(resource) && words(tool))
}

/// The word that was probably meant.
pub(super) fn nearest<'w>(written: &str, words: &[&'w str]) -> Option<&'w str> {
    words.iter().copied().min_by_key(|word| distance(written, word)).filter(|word| distance(written, word) <= 2)
}

/// How many letters must be inserted, removed or replaced to get from one word to the other.
fn distance(from: &str, to: &str) -> usize {
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

/// `` `a`, `b` or `c` ``
pub(super) fn listed(words: &[&str], joint: &str) -> String {
    let quoted: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, first)) => format!("{} {joint} {last}", first.join(", ")),
        None => String::new(),
    }
}
