//! Decides which texts of a reply are shortened.

use goondan::Value;
use goondan::conversation::{Part, ToolOutput};
use goondan::json;
use goondan::tool::{ReplyPart, ToolReply};
use goondan_text::{Excerpt, Place};

/// The smallest number of characters to which one of several texts is shortened: less would be little more than the
/// note.
const LEAST: usize = 1000;

/// Writes a text to a file with this extension.
pub(crate) trait Save: FnMut(&str, &'static str) -> Place {}
impl<F: FnMut(&str, &'static str) -> Place> Save for F {}

/// Returns the reply with at most `max` characters of text. `None` if it has no more than that. Files stay.
///
/// Where the reply has several texts, as JSON has, the longest are shortened, and the rest stays as it is: the exit
/// code beside a long output of a command. If it is long because it has many texts, all of it is shortened as one text.
pub(crate) fn shortened(reply: ToolReply, max: usize, save: impl Save) -> Option<ToolReply> {
    let failed = reply.is_error();
    let short = match reply.into_output() {
        ToolOutput::Text(text) => short_text(&text, max, save).map(ToolReply::text),
        ToolOutput::Json(value) => short_json(value, max, save),
        ToolOutput::Content(parts) => short_content(parts, max, save),
        _ => None,
    };
    short.map(|reply| if failed { reply.failed() } else { reply })
}

fn characters(text: &str) -> usize {
    text.chars().count()
}

fn short_text(text: &str, max: usize, mut save: impl Save) -> Option<String> {
    (characters(text) > max).then(|| Excerpt { text, place: &save(text, "txt") }.both_ends(max))
}

fn short_json(mut value: Value, max: usize, mut save: impl Save) -> Option<ToolReply> {
    let all = characters(&value.to_string());
    if all <= max {
        return None;
    }
    let mut lengths = Vec::new();
    each_text(&mut value, &mut |text| lengths.push(characters(text)));
    let others = all - lengths.iter().sum::<usize>();
    let share = share(lengths, max.saturating_sub(others));
    if share >= LEAST {
        each_text(&mut value, &mut |text| {
            if let Some(short) = short_text(text, share, &mut save) {
                *text = short;
            }
        });
        return Some(value.into());
    }
    // Indented, so that a part of the file can be read by its lines.
    let indented = json::to_string_pretty(&value).unwrap_or_else(|_| value.to_string());
    Some(ToolReply::text(Excerpt { text: &indented, place: &save(&indented, "json") }.both_ends(max)))
}

fn short_content(parts: Vec<Part>, max: usize, mut save: impl Save) -> Option<ToolReply> {
    let parts = parts.into_iter().filter_map(|part| match part {
        Part::Text(part) => Some(ReplyPart::Text(part)),
        Part::File(part) => Some(ReplyPart::File(*part)),
        // A reply has no other parts.
        _ => None,
    });
    let mut parts: Vec<_> = parts.collect();
    let texts =
        || parts.iter().filter_map(|part| if let ReplyPart::Text(part) = part { Some(&*part.text) } else { None });
    let lengths: Vec<_> = texts().map(characters).collect();
    if lengths.iter().sum::<usize>() <= max {
        return None;
    }
    let share = share(lengths, max);
    if share >= LEAST {
        for part in &mut parts {
            if let ReplyPart::Text(part) = part
                && let Some(short) = short_text(&part.text, share, &mut save)
            {
                part.text = short;
            }
        }
    } else {
        let joined = texts().collect::<Vec<_>>().join("\n");
        parts.retain(|part| matches!(part, ReplyPart::File(_)));
        parts.insert(0, Excerpt { text: &joined, place: &save(&joined, "txt") }.both_ends(max).into());
    }
    Some(ToolReply::content(parts))
}

/// Calls `visit` with each text in the value.
fn each_text(value: &mut Value, visit: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, visit)),
        Value::Object(members) => members.values_mut().for_each(|member| each_text(member, visit)),
        _ => {}
    }
}

/// Returns the largest length to which texts of these lengths can be limited so that they are no longer than `max`
/// together.
fn share(mut lengths: Vec<usize>, max: usize) -> usize {
    lengths.sort_unstable();
    let (mut left, mut others) = (max, lengths.len());
    for length in lengths {
        let share = left / others;
        if length > share {
            return share;
        }
        left -= length;
        others -= 1;
    }
    left
}
