//! Renders diagnostics for people: an excerpt of the file with the position underlined.

use std::fmt::{self, Write as _};
use std::fs;
use std::ops::Range;

use goondan::bundle::{self, Diagnostics, Place};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode};

use super::clean::clean;
use super::styled::Styled;

/// The width of the page in columns, which fits any terminal.
const WIDTH: usize = 80;

/// Renders all diagnostics, each with an excerpt of its file.
pub(super) fn page(diagnostics: &Diagnostics, color: bool) -> Styled {
    let theme = if color { GraphicalTheme::unicode() } else { GraphicalTheme::unicode_nocolor() };
    let handler = GraphicalReportHandler::new_themed(theme).with_width(WIDTH).with_links(false);
    let mut page = String::new();
    for diagnostic in diagnostics.iter() {
        let excerpt = Excerpt::new(diagnostic);
        if handler.render_report(&mut page, &excerpt).is_err() {
            // The file may have changed since it was read, and the position may be gone.
            _ = writeln!(page, "{}", printable(&diagnostic.to_string()));
        }
        page.push('\n');
    }
    Styled::rendered(page.trim_end().to_owned())
}

/// Adapts a diagnostic to miette, with the text of its file. The page mixes it with escape sequences of miette, so
/// every text is cleaned here.
#[derive(Debug)]
struct Excerpt<'a> {
    diagnostic: &'a bundle::Diagnostic,
    source: Option<(NamedSource<String>, Range<usize>)>,
}

impl<'a> Excerpt<'a> {
    fn new(diagnostic: &'a bundle::Diagnostic) -> Self {
        let source = diagnostic.place.and_then(|place| {
            // If the file is not text or cannot be read, the diagnostic is about that, and there is no excerpt.
            let text = printable(&fs::read_to_string(&diagnostic.file).ok()?);
            let token = token(&text, place)?;
            Some((NamedSource::new(printable(&diagnostic.file.to_string_lossy()), text), token))
        });
        Self { diagnostic, source }
    }
}

impl fmt::Display for Excerpt<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.source.is_none() {
            f.write_str(&printable(&self.diagnostic.file.to_string_lossy()))?;
            self.diagnostic.place.iter().try_for_each(|place| write!(f, ":{place}"))?;
            f.write_str(": ")?;
        }
        f.write_str(&printable(&self.diagnostic.message))
    }
}

impl std::error::Error for Excerpt<'_> {}

impl Diagnostic for Excerpt<'_> {
    fn code(&self) -> Option<Box<dyn fmt::Display + '_>> {
        self.diagnostic.code.as_ref().map(|code| Box::new(printable(code.as_str())) as _)
    }

    fn help(&self) -> Option<Box<dyn fmt::Display + '_>> {
        Some(Box::new(printable(&self.diagnostic.suggestion)))
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|(source, _)| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let (_, token) = self.source.as_ref()?;
        Some(Box::new(std::iter::once(LabeledSpan::underline(token.clone()))))
    }
}

/// Drops a leading byte order mark, cleans control characters, and replaces tabs with spaces, so that columns stay the
/// same.
fn printable(text: &str) -> String {
    clean(text.strip_prefix('\u{feff}').unwrap_or(text)).replace('\t', " ")
}

/// Returns the byte range of the word at `place`, which is empty at the end of a line.
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
    fn the_word_at_a_position_is_marked() {
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
    fn control_characters_are_not_printed() {
        assert_eq!(printable("\u{feff}a\u{1b}[31m\tb\n"), "a␛[31m b\n");
    }
}
