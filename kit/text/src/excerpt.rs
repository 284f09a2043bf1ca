//! Cuts a text.

use crate::note::{LeftOut, Place};

/// A text that is too long for the model, and where all of it is.
#[derive(Clone, Copy, Debug)]
pub struct Excerpt<'a> {
    /// The text.
    pub text: &'a str,
    /// Where all of it is.
    pub place: &'a Place,
}

impl<'a> Excerpt<'a> {
    /// Returns the first `limit` characters of the text, with a note after them if that is not all of it.
    pub fn beginning(self, limit: usize) -> String {
        let Some((end, _)) = self.text.char_indices().nth(limit) else { return self.text.to_owned() };
        let head = &self.text[..end];
        format!("{}\n{}", head.strip_suffix('\n').unwrap_or(head), self.left_out(head, ""))
    }

    /// Returns the beginning and the end of the text, with a note between them if that is not all of it: not more than
    /// `limit` characters together, unless the note alone is longer.
    pub fn both_ends(self, limit: usize) -> String {
        let Self { text, place } = self;
        let all = text.chars().count();
        if all <= limit {
            return text.to_owned();
        }
        // No note is longer than the one with the largest numbers. JSON writes each of the two
        // line breaks with two characters.
        let longest = LeftOut { characters: all, all, lines: [all, all + 1], place };
        let room = limit.saturating_sub(longest.to_string().chars().count() + 4);
        let head = beginning(text, room - room / 2);
        let tail = ending(&text[head.len()..], room / 2);
        format!("{}\n{}\n{tail}", head.strip_suffix('\n').unwrap_or(head), self.left_out(head, tail))
    }

    /// Returns the note for what is between the two ends.
    fn left_out(self, head: &str, tail: &str) -> LeftOut<'a> {
        let Self { text, place } = self;
        let gap = &text[head.len()..text.len() - tail.len()];
        let first = head.matches('\n').count() + 1;
        let last = first + gap.strip_suffix('\n').unwrap_or(gap).matches('\n').count();
        LeftOut { characters: gap.chars().count(), all: text.chars().count(), lines: [first, last], place }
    }
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

    use std::path::PathBuf;

    use proptest::prelude::*;

    use super::*;

    fn place() -> Place {
        Place::File(PathBuf::from("/some/output-a-b-1.txt"))
    }

    fn excerpt(text: &str, limit: usize) -> String {
        Excerpt { text, place: &place() }.both_ends(limit)
    }

    #[test]
    fn a_text_within_the_limit_stays_as_it_is() {
        let excerpt = Excerpt { text: "äöü", place: &place() };
        assert_eq!([excerpt.beginning(3), excerpt.both_ends(3)], ["äöü", "äöü"]);
    }

    #[test]
    fn the_beginning_has_a_note_after_it() {
        let place = Place::Unreachable;
        let short = |limit| Excerpt { text: "äöü\nß\nx", place: &place }.beginning(limit);
        assert_eq!(short(2), "äö\n[5 of 7 characters are left out here, lines 1 to 3.]");
        assert_eq!(short(6), "äöü\nß\n[1 of 7 characters are left out here, in line 3.]");
    }

    #[test]
    fn lines_stay_whole_if_that_costs_little() {
        let text: String = (1..=1000).map(|line| format!("this is line {line}\n")).collect();
        let short = excerpt(&text, 2000);
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
        let short = excerpt(&"x".repeat(9000), 1000);
        assert!((980..=1000).contains(&short.len()), "{}", short.len());
        assert!(short.contains(" are left out here, in line 1. "), "{short}");
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_the_limit_holds(text in r"(\PC|\n|😀|ä̈){0,600}", limit in 0_usize..500) {
            let place = place();
            let all = text.chars().count();
            prop_assume!(all > limit);
            let short = excerpt(&text, limit);
            let longest = LeftOut { characters: all, all, lines: [all, all + 1], place: &place };
            let longest = longest.to_string().chars().count() + 4;
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
