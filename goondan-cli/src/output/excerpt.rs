//! Owns how faults are shown to people: the lines that are meant, with a mark at the place.

use std::fmt::{self, Write as _};
use std::fs;
use std::ops::Range;

use goondan::bundle::{Diagnostic, Diagnostics, Place};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

/// How many columns a line of the page has: what any terminal shows.
const WIDTH: usize = 80;

/// All faults, each with an excerpt of its file.
pub(crate) fn page(faults: &Diagnostics, in_colour: bool) -> String {
    let theme = if in_colour { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let mut page = String::new();
    for fault in faults.iter() {
        let shown = Shown::new(fault);
        if handler.render_report(&mut page, &shown).is_err() {
            // A file that changed meanwhile may not have the place any more.
            _ = writeln!(page, "{fault}");
        }
        page.push('\n');
    }
    page
}

/// A fault in the form that the renderer takes.
#[derive(Debug)]
struct Shown<'a> {
    fault: &'a Diagnostic,
    source: Option<(NamedSource<String>, Range<usize>)>,
}

impl<'a> Shown<'a> {
    fn new(fault: &'a Diagnostic) -> Self {
        let source = fault.place.and_then(|place| {
            // What is not text, or cannot be read, is what the fault is about: there is nothing to show of it.
            let text = legible(&fs::read_to_string(&fault.file).ok()?);
            let token = token(&text, place)?;
            Some((NamedSource::new(fault.file.to_string_lossy(), text), token))
        });
        Self { fault, source }
    }
}

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source.is_none() {
            write!(f, "{}", self.fault.file.display())?;
            self.fault.place.iter().try_for_each(|place| write!(f, ":{place}"))?;
            f.write_str(": ")?;
        }
        f.write_str(&legible(&self.fault.message))
    }
}

impl std::error::Error for Shown<'_> {}

impl Diagnostic for Shown<'_> {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.fault.code.as_ref().map(|code| Box::new(code) as _)
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(legible(&self.fault.suggestion)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, token) = self.source.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(token.clone()))))
    }
}

/// `text` without characters that would steer the terminal, and otherwise as it is, character by character.
fn legible(text: &str) -> String {
    let show = |letter: char| if letter.is_control() && letter != '\n' { ' ' } else { letter };
    text.strip_prefix('\u{feff}').unwrap_or(text).chars().map(show).collect()
}

/// The bytes of the word at `place`; at the end of a line, nothing.
fn token(text: &str, place: Place) -> Option<Range<usize>> {
    let line = text.split_inclusive('\n').nth(usize::try_from(place.line).ok()?.checked_sub(1)?)?;
    let start = line.as_ptr() as usize - text.as_ptr() as usize;
    let column = usize::try_from(place.column).ok()?.checked_sub(1)?;
    let rest = line.trim_end_matches('\n');
    let skipped = rest.char_indices().nth(column).map_or(rest.len(), |(at, _)| at);
    let rest = &rest[skipped..];
    let word = match rest.chars().next() {
        Some(quote @ ('"' | '\'')) => rest[1..].find(quote).map_or(rest.len(), |end| end + 2),
        Some(first) => {
            let ends = |letter: char| " \t,:{}[]#".contains(letter);
            rest[first.len_utf8()..].find(ends).map_or(rest.len(), |end| first.len_utf8() + end)
        }
        None => 0,
    };
    Some(start + skipped..start + skipped + word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_at_a_place_is_marked() {
        let text = "a: größe\n  \"b c\": { d: é }\n";
        let at = |line, column| token(text, Place { line, column }).map(|range| &text[range]);
        assert_eq!(at(1, 4), Some("größe"));
        assert_eq!(at(2, 3), Some("\"b c\""));
        assert_eq!(at(2, 10), Some("{"));
        assert_eq!(at(2, 15), Some("é"));
        assert_eq!(at(2, 99), Some(""));
        assert_eq!(at(9, 1), None);
    }

    #[test]
    fn what_would_steer_a_terminal_is_not_shown() {
        assert_eq!(legible("\u{feff}a\u{1b}[31m\tb\n"), "a [31m b\n");
    }
}
