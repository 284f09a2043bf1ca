//! The terminal while a turn runs: the answer so far, and below it the status and the line that is typed.
//!
//! The lines below the answer are cleared before anything is written, and drawn again after it, in one write. At most
//! thirty times a second, so that an answer in many pieces costs little more than one that is written at once.

use std::io;
use std::time::Duration;

use textwrap::core::display_width;
use tokio::time::Instant;

use super::terminal::{self, Terminal};
use crate::output::{self, Span, Stream, Style, Styled, words_of};

/// The shortest time between two frames of an answer.
const FRAME: Duration = Duration::from_millis(34);

/// The lines below the answer.
#[derive(Debug, Default)]
pub(crate) struct Footer {
    /// The lists that stay in their place, and the rows of waiting. Each row has room in one line.
    pub(crate) rows: Vec<Styled>,
    /// The line that is typed, and the column of the cursor in it; `None` where nothing can be typed.
    pub(crate) typed: Option<(Styled, usize)>,
}

/// The terminal.
pub(crate) struct Canvas {
    terminal: Terminal,
    /// The width of the unfinished line of the answer.
    column: usize,
    /// Whether the last line was ended because it was full.
    was_full: bool,
    /// The space before the next word of the answer, and its styles.
    gap: (String, Vec<Style>),
    /// The column in which the lines begin that go on with this one.
    indent: usize,
    /// Content that is not written yet.
    pending: Styled,
    /// Whether more of the answer is there once a frame is due.
    has_more: bool,
    footer: Footer,
    /// The lines from the end of the answer to the cursor, and the column of that end; `None` if nothing is drawn
    /// there.
    drawn: Option<(usize, usize)>,
    last_frame: Option<Instant>,
    /// Gets the frames instead of the terminal.
    #[cfg(test)]
    frames: Option<Vec<String>>,
}

impl Canvas {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self {
            pending: terminal.styled(),
            terminal,
            column: 0,
            was_full: false,
            gap: Default::default(),
            has_more: false,
            indent: 0,
            footer: Footer::default(),
            drawn: None,
            last_frame: None,
            #[cfg(test)]
            frames: None,
        }
    }

    /// Whether something can be drawn below the answer.
    pub(crate) fn is_drawn(&self) -> bool {
        self.terminal.shows_progress && self.terminal.moves_cursor
    }

    /// Returns the width of the terminal.
    pub(crate) fn columns(&self) -> usize {
        self.terminal.columns()
    }

    /// Returns the time until the pending text is to be written, if there is some.
    pub(crate) fn due(&self) -> Option<Duration> {
        (self.has_more || !self.pending.as_str().is_empty()).then(|| self.until_frame())
    }

    fn until_frame(&self) -> Duration {
        let since = self.last_frame.map_or(FRAME, |last| last.elapsed());
        FRAME.saturating_sub(since)
    }

    /// Whether a frame is due, for which more of the answer may be given. If none is, one will be.
    pub(crate) fn takes_more(&mut self) -> bool {
        self.has_more = self.until_frame() > Duration::ZERO;
        !self.has_more
    }

    /// Adds the next spans of an answer to the next frame, its lines broken between words.
    pub(crate) fn spans(&mut self, spans: &[Span]) {
        for line in spans.split_inclusive(|span| span.text == "\n") {
            for group in line.chunk_by(|a, b| a.is_prose && b.is_prose && b.text != "\n") {
                match group {
                    [span] if span.text == "\n" => {
                        (self.gap, self.indent) = Default::default();
                        self.add(&[], "\n");
                    }
                    [span] if !span.is_prose => {
                        let is_mark = self.column == self.indent;
                        self.add(&span.styles, &span.text);
                        if is_mark {
                            self.indent = self.column.min(self.terminal.columns() / 2);
                        }
                    }
                    prose => self.prose(prose),
                }
            }
        }
    }

    /// Writes the pending text, if a frame is due.
    pub(crate) fn draw_if_due(&mut self) -> io::Result<()> {
        if self.due() == Some(Duration::ZERO) { self.draw() } else { Ok(()) }
    }

    /// Adds spans of one text, whose words stay in one line if they have room there.
    fn prose(&mut self, spans: &[Span]) {
        let text: String = spans.iter().map(|span| &*span.text).collect();
        let ends = spans.iter().scan(0, |end, span| {
            *end += span.text.len();
            Some(*end)
        });
        let mut styles = ends.zip(spans.iter().map(|span| &*span.styles)).peekable();
        let mut at = 0;
        for word in words_of(&text) {
            let (gap, gap_styles) = std::mem::take(&mut self.gap);
            let continues = self.column == 0 && self.was_full;
            let width = display_width(&gap) + display_width(&word);
            if continues || self.column > self.indent && self.column + width > self.terminal.columns() {
                if !continues {
                    self.add(&[], "\n");
                }
                self.add(&[], &" ".repeat(self.indent));
            } else {
                self.add(&gap_styles, &gap);
            }
            let end = at + word.word.len();
            while at < end {
                while styles.next_if(|(ends, _)| *ends <= at).is_some() {}
                let Some((ends, styles)) = styles.peek() else { break };
                let until = end.min(*ends);
                self.add(styles, &text[at..until]);
                at = until;
            }
            while styles.next_if(|(ends, _)| *ends <= at).is_some() {}
            let gap_styles = styles.peek().map_or_else(Vec::new, |(_, styles)| styles.to_vec());
            self.gap = (word.whitespace.to_owned(), gap_styles);
            at += word.whitespace.len();
        }
    }

    /// Adds a text to the next frame.
    fn add(&mut self, styles: &[Style], text: &str) {
        let text = self.laid_out(text);
        self.pending = std::mem::take(&mut self.pending).paint_all(styles, &text);
    }

    /// Writes a piece of the answer as it is, or of the model's thoughts, in a style.
    pub(crate) fn piece(&mut self, style: Option<Style>, piece: &str) -> io::Result<()> {
        if !self.is_drawn() {
            self.column = if piece.ends_with('\n') { 0 } else { 1 };
            return match style {
                Some(style) => Stream::Err.styled(&self.terminal.styled().paint(style, piece)),
                None => Stream::Out.text(piece),
            };
        }
        self.add(style.as_slice(), piece);
        self.draw_if_due()
    }

    /// Returns the piece as it is written, and takes in where the cursor is behind it. Tabs become spaces, and lines
    /// that are longer than the terminal is wide end there.
    fn laid_out(&mut self, piece: &str) -> String {
        let columns = self.terminal.columns();
        let mut text = String::with_capacity(piece.len());
        for char in piece.chars() {
            let width = match char {
                '\n' => {
                    if !std::mem::take(&mut self.was_full) {
                        text.push('\n');
                    }
                    self.column = 0;
                    continue;
                }
                // The last column is the last stop.
                '\t' => (8 - self.column % 8).min(columns.saturating_sub(self.column + 1)),
                _ => display_width(char.encode_utf8(&mut [0; 4])),
            };
            if width > 0 && self.column + width > columns && self.column > 0 {
                text.push('\n');
                self.column = 0;
            }
            match char {
                '\t' => text.extend(std::iter::repeat_n(' ', width)),
                _ => text.push(char),
            }
            self.column += width;
            self.was_full = false;
        }
        text
    }

    /// Ends the line of the answer, if it is in one.
    pub(crate) fn end_line(&mut self) -> io::Result<()> {
        (self.gap, self.indent) = Default::default();
        if self.column > 0 { self.piece(None, "\n") } else { Ok(()) }
    }

    /// Writes whole lines of something else than the answer.
    pub(crate) fn lines(&mut self, lines: &Styled) -> io::Result<()> {
        if !self.is_drawn() {
            output::eprint_styled(lines);
            return Ok(());
        }
        self.end_line()?;
        self.was_full = false;
        self.pending = std::mem::take(&mut self.pending).append(lines);
        self.draw()
    }

    /// Sets the lines below the answer.
    pub(crate) fn set_footer(&mut self, footer: Footer) -> io::Result<()> {
        if !self.is_drawn() {
            return Ok(());
        }
        self.footer = footer;
        self.draw()
    }

    /// Writes the pending text, and draws the lines below it.
    pub(crate) fn draw(&mut self) -> io::Result<()> {
        let mut frame = self.cleared();
        frame = frame.append(&std::mem::replace(&mut self.pending, self.terminal.styled()));
        if self.column >= self.terminal.columns() {
            // Where the cursor is behind a full line differs between terminals.
            frame = frame.text("\n");
            (self.column, self.was_full) = (0, true);
        }
        let Footer { rows, typed } = &self.footer;
        let typed_line = typed.as_ref().map(|(line, _)| line);
        let rows: Vec<_> = rows.iter().chain(typed_line).collect();
        // Below an unfinished line, or in its place.
        let mut below = usize::from(self.column > 0);
        for (number, row) in rows.iter().enumerate() {
            if number + below > 0 {
                frame = frame.text("\n");
            }
            frame = frame.append(row);
        }
        below += rows.len().saturating_sub(1);
        self.drawn = (!rows.is_empty()).then_some((below, self.column));
        if !rows.is_empty() {
            frame = frame.line_start().forward(typed.as_ref().map_or(0, |(_, column)| *column));
        }
        self.last_frame = Some(Instant::now());
        self.write(&frame)
    }

    /// Clears the lines below the answer, and ends the line of the answer.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        if !self.is_drawn() {
            return if std::mem::take(&mut self.column) > 0 { Stream::Out.text("\n") } else { Ok(()) };
        }
        self.end_line()?;
        self.footer = Footer::default();
        self.draw()
    }

    /// Returns the codes that move the cursor behind the answer, and clear all that is below.
    fn cleared(&self) -> Styled {
        match self.drawn {
            None => self.terminal.styled(),
            Some((below, column)) => self.terminal.styled().line_start().up(below).forward(column).clear_below(),
        }
    }

    fn write(&mut self, frame: &Styled) -> io::Result<()> {
        #[cfg(test)]
        if let Some(frames) = &mut self.frames {
            frames.push(frame.as_str().to_owned());
            return Ok(());
        }
        match Stream::Out.styled(frame) {
            // The turn goes on until the end of the grace period, as after a signal.
            Err(error) if terminal::is_closed(&error) => Ok(()),
            written => written,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZero;

    use super::*;
    use crate::output::Markdown;

    fn canvas(columns: usize) -> Canvas {
        let mut canvas = Canvas::new(Terminal::of_test(columns));
        canvas.frames = Some(Vec::new());
        canvas
    }

    fn footer(canvas: &Canvas, number: usize) -> Footer {
        let status = canvas.terminal.styled().paint(Style::Dim, &format!("waiting {number}"));
        let typed = canvas.terminal.styled().text(&"x".repeat(number % 20));
        Footer {
            rows: vec![status; [0, 1, 3][number % 3]],
            typed: (!number.is_multiple_of(5)).then_some((typed, number % 20)),
        }
    }

    /// Returns the screen of a terminal that gets these bytes.
    fn screen<'f>(columns: usize, bytes: impl IntoIterator<Item = &'f str>) -> String {
        let size = |cells: usize| NonZero::new(u16::try_from(cells).unwrap()).unwrap();
        let mut parser = vt100::Parser::new(size(400), size(columns), 0);
        for bytes in bytes {
            // As the driver of a terminal does.
            parser.process(bytes.replace('\n', "\r\n").as_bytes());
        }
        let rows = parser.screen().rows(0, size(columns).get()).map(|row| row.trim_end().to_owned());
        rows.collect::<Vec<_>>().join("\n").trim_end().to_owned()
    }

    /// Returns the screen of a terminal after all frames.
    fn shown(canvas: &Canvas, columns: usize) -> String {
        screen(columns, canvas.frames.iter().flatten().map(String::as_str))
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_in_any_pieces_is_there_as_it_is_written_at_once() {
        let words =
            ["a", "word ", "漢字", "é\u{301}", "\n", "\n\n", "\tt", "a-long-word-that-fills-a-line-of-forty-col"];
        for columns in [40, 80, 200] {
            for seed in 0..60_usize {
                let mut canvas = canvas(columns);
                let mut written = String::new();
                let mut number = seed;
                for step in 0..40 {
                    number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let at = number >> 33;
                    match at % 7 {
                        0 => canvas.set_footer(footer(&canvas, step)).unwrap(),
                        1 => tokio::time::advance(FRAME / 2).await,
                        2 => canvas.draw().unwrap(),
                        _ => {
                            let word = words[at / 7 % words.len()];
                            canvas.piece((at % 2 == 0).then_some(Style::Dim), word).unwrap();
                            written.push_str(word);
                        }
                    }
                }
                canvas.finish().unwrap();
                assert_eq!(shown(&canvas, columns), screen(columns, [&*written]), "{columns} columns, seed {seed}");
            }
        }
    }

    /// Writes a text in pieces of this many characters.
    fn answered(columns: usize, text: &str, size: usize) -> String {
        let (mut canvas, mut markdown) = (canvas(columns), Markdown::new(true));
        for (number, piece) in text.chars().collect::<Vec<_>>().chunks(size).enumerate() {
            let spans = markdown.push(&piece.iter().collect::<String>(), columns);
            canvas.spans(&spans);
            let settled = markdown.settle();
            canvas.spans(&settled);
            canvas.draw_if_due().unwrap();
            if number % 3 == 0 {
                canvas.set_footer(footer(&canvas, number)).unwrap();
            }
        }
        let rest = markdown.end(columns);
        canvas.spans(&rest);
        canvas.finish().unwrap();
        shown(&canvas, columns)
    }

    #[tokio::test(start_paused = true)]
    async fn words_of_an_answer_stay_whole_at_any_width() {
        let words: Vec<_> = (0..60).map(|number| format!("{}{number}", "word".repeat(number % 4 + 1))).collect();
        let prose = words.join(" ");
        let text = format!("{prose}\n- **{}** and {prose}\n  1. {prose}\n漢字かな交じりの文章{prose}", words[3]);
        for columns in [40, 80, 200] {
            let whole = answered(columns, &text, text.len());
            for word in &words {
                assert_eq!(whole.matches(&**word).count(), text.matches(&**word).count(), "{columns}: {word}\n{whole}");
            }
            let hanging = whole.lines().filter(|line| line.starts_with("  word")).count();
            assert!(hanging > 0, "{whole}");
            for size in [1, 2, 3, 5, 8, 13, 100] {
                assert_eq!(answered(columns, &text, size), whole, "{columns} columns, pieces of {size}");
            }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn many_pieces_make_few_frames() {
        let (mut canvas, mut markdown) = (canvas(80), Markdown::new(true));
        let mut text = String::new();
        for number in 0..10_000 {
            if number % 100 == 0 {
                canvas.set_footer(footer(&canvas, number)).unwrap();
            }
            let word = format!("**word** {number}, ");
            canvas.spans(&markdown.push(&word, 80));
            if canvas.takes_more() {
                canvas.spans(&markdown.settle());
            }
            canvas.draw_if_due().unwrap();
            text.push_str(&word);
            tokio::time::advance(Duration::from_micros(100)).await;
        }
        canvas.spans(&markdown.end(80));
        canvas.finish().unwrap();
        let frames = canvas.frames.unwrap();
        let (frames, bytes) = (frames.len(), frames.iter().map(String::len).sum::<usize>());
        // A hundred changes of the status, thirty frames, and the end.
        assert!(frames <= 100 + 31 + 2, "{frames}");
        assert!(bytes <= 3 * text.len(), "{bytes} for {}", text.len());
    }

    #[test]
    fn whole_lines_stand_between_the_lines_of_the_answer() {
        let mut canvas = canvas(40);
        canvas.set_footer(footer(&canvas, 1)).unwrap();
        canvas.piece(None, "half a li").unwrap();
        canvas.lines(&Styled::new(true).paint(Style::Red, "a line of the log").text("\n")).unwrap();
        canvas.piece(None, "ne").unwrap();
        assert_eq!(shown(&canvas, 40), "half a li\na line of the log\nwaiting 1\nx", "the piece waits for its frame");
        canvas.draw().unwrap();
        assert_eq!(shown(&canvas, 40), "half a li\na line of the log\nne\nwaiting 1\nx");
        canvas.finish().unwrap();
        assert_eq!(shown(&canvas, 40), "half a li\na line of the log\nne");
    }
}
