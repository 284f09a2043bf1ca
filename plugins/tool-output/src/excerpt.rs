//! Shortens a text to its beginning and its end, with a note between them.

use std::path::PathBuf;

use goondan::Error;

/// Where the whole of a text is.
#[derive(Debug)]
pub(crate) enum Place {
    File(PathBuf),
    /// Nowhere, because of this error.
    Lost(Error),
}

/// Shortens a text that has more than `limit` characters to `limit`, unless the note alone is longer.
pub(crate) fn excerpt(text: &str, limit: usize, place: &Place) -> String {
    let all = text.chars().count();
    // No note is longer than the one of which all numbers are as large as they can be. JSON writes each of the two line
    // breaks with two characters.
    let room = limit.saturating_sub(note(all, all, [all, all + 1], place).chars().count() + 4);
    let head = beginning(text, room - room / 2);
    let tail = ending(&text[head.len()..], room / 2);
    let gap = &text[head.len()..text.len() - tail.len()];
    let first = head.matches('\n').count() + 1;
    let last = first + gap.strip_suffix('\n').unwrap_or(gap).matches('\n').count();
    let note = note(gap.chars().count(), all, [first, last], place);
    format!("{}\n{note}\n{tail}", head.strip_suffix('\n').unwrap_or(head))
}

fn note(left_out: usize, all: usize, [first, last]: [usize; 2], place: &Place) -> String {
    let lines = if first == last { format!("in line {first}") } else { format!("lines {first} to {last}") };
    let rest = match place {
        Place::File(path) => format!(
            "The whole text is in the file {}: read a part of it, or search in it. More than a part would be shortened \
             again.",
            path.display()
        ),
        Place::Lost(error) => format!("They could not be written to a file and are lost: {}", error.message()),
    };
    format!("[{left_out} of {all} characters are left out here, {lines}. {rest}]")
}

/// Returns the first characters. If there is a line break near their end, they end with it.
fn beginning(text: &str, characters: usize) -> &str {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(end, _)| end);
    let head = &text[..end];
    head.rfind('\n').filter(|at| *at >= end / 4 * 3).map_or(head, |at| &head[..=at])
}

/// Returns the last characters. If there is a line break near their beginning, they begin after it.
fn ending(text: &str, characters: usize) -> &str {
    let start = text.char_indices().rev().take(characters).last().map_or(text.len(), |(start, _)| start);
    let tail = &text[start..];
    tail.find('\n').filter(|at| *at < tail.len() / 4).map_or(tail, |at| &tail[at + 1..])
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::File(PathBuf::from("/some/output-a-b-1.txt"))
    }

    #[test]
    fn lines_stay_whole_if_that_costs_little() {
        let text: String = (1..=1000).map(|line| format!("this is line {line}\n")).collect();
        let short = excerpt(&text, 2000, &place());
        let (head, rest) = short.split_once("\n[").unwrap();
        let (note, tail) = rest.split_once("]\n").unwrap();
        let last = head.lines().count();
        assert_eq!(head.lines().next_back(), Some(&*format!("this is line {last}")));
        let first = 1001 - tail.lines().count();
        assert_eq!(tail.lines().next(), Some(&*format!("this is line {first}")));
        assert!(note.contains(&format!("lines {} to {}.", last + 1, first - 1)), "{note}");
    }

    #[test]
    fn a_long_line_is_cut() {
        let short = excerpt(&"x".repeat(9000), 1000, &place());
        assert!((980..=1000).contains(&short.len()), "{}", short.len());
        assert!(short.contains(" are left out here, in line 1. "), "{short}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_limit_holds(text in r"(\PC|\n|😀|ä̈){0,600}", limit in 0_usize..500) {
            let place = place();
            let all = text.chars().count();
            prop_assume!(all > limit);
            let short = excerpt(&text, limit, &place);
            let longest = note(all, all, [all, all + 1], &place).chars().count() + 4;
            prop_assert!(short.chars().count() <= limit.max(longest));
            let middle = short.find(&format!(" of {all} characters are left out here")).unwrap();
            let start = short[..middle].rfind('[').unwrap();
            let left_out: usize = short[start + 1..middle].parse().unwrap();
            let (head, tail) = (&short[..start - 1], short.split_once("again.]\n").unwrap().1);
            prop_assert!(text.starts_with(head) && text.ends_with(tail));
            let break_of_head = usize::from(text[head.len()..].starts_with('\n'));
            let shown = head.chars().count() + tail.chars().count();
            prop_assert!(shown + left_out == all || shown + left_out + break_of_head == all);
        }
    }
}
