//! Texts that arrived in several parts with members of their own, such as a signature on the last one.
//!
//! In the conversation they are one text. Its rest has the members of the newest part, and the list `texts` has the
//! earlier ones: where each ends in the text, in bytes, and its members.

use serde_json::{Map, Value, json};

use super::{CANDIDATE, TEXTS, THOUGHT};
use crate::answer::{Answer, Key};

/// Whether the newest part of a text has no members of its own, so that it is one with a neighbour like that.
pub(super) fn is_plain(rest: &Map<String, Value>) -> bool {
    rest.keys().all(|name| [THOUGHT, CANDIDATE, TEXTS].contains(&name.as_str()))
}

/// Ends the newest part of the text in `key`, and begins one with the members `next`.
pub(super) fn begin_next(key: Key, mut next: Map<String, Value>, answer: &mut Answer<'_>) {
    let end = answer.text(key).unwrap_or_default().len();
    let Some(rest) = answer.rest(key) else { return };
    let mut members = std::mem::take(rest);
    next.extend(members.shift_remove_entry(CANDIDATE));
    let (name, mut texts) = members.shift_remove_entry(TEXTS).unwrap_or_else(|| (TEXTS.to_owned(), json!([])));
    if let Value::Array(texts) = &mut texts {
        texts.push(json!({ "end": end, "members": members }));
    }
    next.insert(name, texts);
    *rest = next;
}

/// Returns the parts of a text, with the members of each. A text that is shorter than its parts were is one part.
pub(super) fn parts<'a>(
    text: &'a str,
    rest: Option<&'a Map<String, Value>>,
) -> impl Iterator<Item = (&'a str, Option<&'a Map<String, Value>>)> {
    let earlier = rest.and_then(|rest| rest.get(TEXTS)).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let mut start = 0;
    let mut parts: Vec<_> = earlier
        .iter()
        .map_while(|part| {
            let end = usize::try_from(part.get("end")?.as_u64()?).ok()?;
            let piece = text.get(start..end)?;
            start = end;
            Some((piece, part.get("members").and_then(Value::as_object)))
        })
        .collect();
    parts.push((&text[start..], rest));
    parts.into_iter()
}
