//! Text with the colours and cursor movements of goondan. Content gets into it cleaned, and in no other way.

use textwrap::core::display_width;

use super::clean::clean;

/// A text style; the value is the parameter of the SGR escape sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Bold = 1,
    Dim = 2,
    Italic = 3,
    Underline = 4,
    Strike = 9,
    Red = 31,
    Green = 32,
    Yellow = 33,
    Blue = 34,
    Magenta = 35,
    Cyan = 36,
}

/// A piece of text in styles. Its control characters are not replaced.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Span {
    pub(crate) text: String,
    pub(crate) styles: Vec<Style>,
    /// Whether its words stay in one line only if they have room there. Otherwise they are not moved.
    pub(crate) is_prose: bool,
}

impl Span {
    /// A text whose lines are broken between words.
    pub(super) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), styles: Vec::new(), is_prose: true }
    }

    /// A text that is printed as it is.
    pub(super) fn fixed(text: String, styles: &[Style]) -> Self {
        Self { text, styles: styles.to_vec(), is_prose: false }
    }
}

/// A text under construction: pieces of content, which are cleaned, and escape sequences of goondan's own.
#[derive(Clone, Debug, Default)]
pub(crate) struct Styled {
    text: String,
    colors: bool,
}

impl Styled {
    /// Starts an empty text. Without `colors`, styles are ignored.
    pub(crate) fn new(colors: bool) -> Self {
        Self { text: String::new(), colors }
    }

    /// Takes a page that the renderer of diagnostics has coloured. The caller gave it cleaned content.
    pub(super) fn rendered(page: String) -> Self {
        Self { text: page, colors: false }
    }

    /// Appends content.
    pub(crate) fn text(mut self, content: &str) -> Self {
        self.text.push_str(&clean(content));
        self
    }

    /// Appends content in a style.
    pub(crate) fn paint(self, style: Style, content: &str) -> Self {
        self.sgr(style as u8).text(content).sgr(0)
    }

    /// Appends content in several styles.
    pub(crate) fn paint_all(self, styles: &[Style], content: &str) -> Self {
        if styles.is_empty() {
            return self.text(content);
        }
        styles.iter().fold(self, |text, style| text.sgr(*style as u8)).text(content).sgr(0)
    }

    /// Appends another text with its styles.
    pub(crate) fn append(mut self, other: &Self) -> Self {
        self.text.push_str(&other.text);
        self
    }

    /// Cuts the text, which is one line, to so many columns. Its styles end there too.
    pub(crate) fn cut(&mut self, columns: usize) {
        let (mut width, mut in_escape) = (0, false);
        self.text.retain(|char| {
            if in_escape || char == '\x1b' {
                in_escape = !char.is_ascii_alphabetic();
                return true;
            }
            width += display_width(char.encode_utf8(&mut [0; 4]));
            width <= columns
        });
    }

    /// Breaks lines that have more than so many columns between words. A continued line stands two columns further to
    /// the right than its line begins.
    #[must_use]
    pub(crate) fn wrapped(&self, columns: usize) -> Self {
        let mut wrapped = Self { text: String::with_capacity(self.text.len()), colors: self.colors };
        for line in self.text.split_inclusive('\n') {
            let indent = line.len() - line.trim_start_matches(' ').len() + 2;
            let mut column = 0;
            for word in line.split_inclusive(' ') {
                let (width, gap) = (seen_width(word.trim_end()), seen_width(word));
                if column > indent && column + width > columns {
                    wrapped.text.truncate(wrapped.text.trim_end_matches(' ').len());
                    wrapped.text.push('\n');
                    wrapped.text.extend(std::iter::repeat_n(' ', indent));
                    column = indent;
                }
                wrapped.text.push_str(word);
                column += gap;
            }
        }
        wrapped
    }

    /// Moves the cursor to the start of the line.
    pub(crate) fn line_start(mut self) -> Self {
        self.text.push('\r');
        self
    }

    /// Moves the cursor up by so many lines.
    pub(crate) fn up(self, lines: usize) -> Self {
        self.moved(lines, 'A')
    }

    /// Moves the cursor to the right by so many columns.
    pub(crate) fn forward(self, columns: usize) -> Self {
        self.moved(columns, 'C')
    }

    fn moved(mut self, by: usize, direction: char) -> Self {
        // A terminal takes 0 for 1.
        if by > 0 {
            self.text.push_str(&format!("\x1b[{by}{direction}"));
        }
        self
    }

    /// Clears the text behind the cursor, to the end of the screen.
    pub(crate) fn clear_below(mut self) -> Self {
        self.text.push_str("\x1b[J");
        self
    }

    /// Turns on bracketed paste: a pasted text is told from one that is typed.
    pub(crate) fn begin_bracketed_paste(mut self) -> Self {
        self.text.push_str("\x1b[?2004h");
        self
    }

    /// Turns off bracketed paste.
    pub(crate) fn end_bracketed_paste(mut self) -> Self {
        self.text.push_str("\x1b[?2004l");
        self
    }

    fn sgr(mut self, parameter: u8) -> Self {
        if self.colors {
            self.text.push_str(&format!("\x1b[{parameter}m"));
        }
        self
    }

    /// Returns the text with its escape sequences.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }
}

/// Returns how many columns a text has without its escape sequences.
fn seen_width(text: &str) -> usize {
    let (mut width, mut in_escape) = (0, false);
    for char in text.chars() {
        if in_escape || char == '\x1b' {
            in_escape = !char.is_ascii_alphabetic();
        } else {
            width += display_width(char.encode_utf8(&mut [0; 4]));
        }
    }
    width
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_brings_no_escape_sequence() {
        let styled =
            Styled::new(true).clear_below().paint(Style::Red, "\x1b[0mx").text("\x1b[2J").up(0).up(2).line_start();
        assert_eq!(styled.as_str(), "\x1b[J\x1b[31m␛[0mx\x1b[0m␛[2J\x1b[2A\r");
        assert_eq!(Styled::new(false).paint(Style::Dim, "\x1b").as_str(), "␛");
    }

    #[test]
    fn long_lines_are_broken_between_words() {
        let styled =
            Styled::new(true).paint(Style::Red, "✗").text(" one two").paint(Style::Dim, " three\n  漢字 five\n");
        let wrapped = styled.wrapped(9);
        assert_eq!(wrapped.as_str(), "\x1b[31m✗\x1b[0m one two\x1b[2m\n  three\n  漢字\n    five\n\x1b[0m");
        assert_eq!(styled.wrapped(80).as_str(), styled.as_str());
        assert_eq!(Styled::new(false).text("unbreakable words\n").wrapped(4).as_str(), "unbreakable\n  words\n");
    }
}
