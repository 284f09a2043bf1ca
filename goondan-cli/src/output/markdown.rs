//! The Markdown of an answer, styled while it is streamed.
//!
//! Each line stands for itself: its block is seen in its first characters, and its inline styles are those of
//! `pulldown-cmark`. Of a line that is not complete, only the words are returned that nothing behind them can change,
//! so no text is printed twice.

use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use textwrap::core::display_width;

#[cfg(feature = "highlight")]
use super::highlight::Highlighter;
use super::{Span, Style};

/// The longest line, in bytes, until it ends at its next space.
const LONGEST: usize = 4096;
/// The most rows of a table that are laid out together.
const MOST_ROWS: usize = 200;
/// Stands between the cells of a table, and before each line of a quotation.
const BAR: &str = "│ ";

/// An answer that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Markdown {
    /// Whether the text is styled, and not shown as it is.
    is_styled: bool,
    /// The style of a text that is shown as it is.
    style: Option<Style>,
    /// The part of the line that has arrived.
    line: String,
    /// The number of bytes of the shown line that were returned.
    returned: usize,
    /// The characters with which the block of code ends, if the line is in one.
    fence: Option<String>,
    /// Colours the block of code.
    #[cfg(feature = "highlight")]
    code: Option<Highlighter>,
    /// The rows of a table that has not ended.
    table: Vec<String>,
}

impl Markdown {
    pub(crate) fn new(is_styled: bool) -> Self {
        Self { is_styled, ..Self::default() }
    }

    /// A text in one style, which is shown as it is.
    pub(crate) fn plain(style: Style) -> Self {
        Self { style: Some(style), ..Self::default() }
    }

    /// Takes a piece. Returns the text of the lines that are complete with it, on a terminal of this
    /// width.
    pub(crate) fn push(&mut self, piece: &str, columns: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        for char in piece.chars() {
            if char == '\n' {
                self.end_line(columns, &mut spans);
                continue;
            }
            self.line.push(char);
            if self.line.len() >= LONGEST && char == ' ' && self.table.is_empty() {
                self.rest_of_line(&mut spans);
            }
        }
        spans
    }

    /// Returns the printable part of the line that is not complete. It takes longer than [`Markdown::push`].
    pub(crate) fn settle(&mut self) -> Vec<Span> {
        let mut spans = Vec::new();
        if self.fence.is_none() && self.table.is_empty() {
            let shown = match self.is_styled {
                true => shown(settled(&self.line)),
                false => self.as_it_is(&self.line[..whole_words(&self.line)]),
            };
            self.take(shown, &mut spans);
        }
        spans
    }

    /// Returns the rest of the answer, which has ended.
    pub(crate) fn end(&mut self, columns: usize) -> Vec<Span> {
        let mut spans = Vec::new();
        if !self.line.is_empty() && self.is_row() {
            self.end_line(columns, &mut spans);
        }
        self.end_table(columns, &mut spans);
        self.rest_of_line(&mut spans);
        self.fence = None;
        spans
    }

    fn is_row(&self) -> bool {
        self.is_styled && self.fence.is_none() && self.line.trim_start().starts_with('|')
    }

    fn end_line(&mut self, columns: usize, spans: &mut Vec<Span>) {
        if self.is_row() && self.returned == 0 {
            self.table.push(std::mem::take(&mut self.line));
            if self.table.len() == MOST_ROWS {
                self.end_table(columns, spans);
            }
            return;
        }
        self.end_table(columns, spans);
        let marks = fence_of(&self.line).filter(|_| self.is_styled);
        match (&self.fence, marks) {
            (None, Some(marks)) => {
                self.fence = Some(marks.to_owned());
                #[cfg(feature = "highlight")]
                (self.code = language_of(&self.line, marks).and_then(Highlighter::new));
                spans.push(Span::fixed(std::mem::take(&mut self.line), &[Style::Dim]));
            }
            (Some(fence), Some(marks)) if marks.starts_with(&**fence) && self.line.trim() == marks => {
                self.fence = None;
                spans.push(Span::fixed(std::mem::take(&mut self.line), &[Style::Dim]));
            }
            _ => self.rest_of_line(spans),
        }
        spans.push(Span::plain("\n"));
    }

    /// Takes the rest of the line, and begins another one.
    fn rest_of_line(&mut self, spans: &mut Vec<Span>) {
        let line = std::mem::take(&mut self.line);
        match self.fence {
            Some(_) => spans.extend(self.code_line(line)),
            None if self.is_styled => self.take(shown(&line), spans),
            None => self.take(self.as_it_is(&line), spans),
        }
        self.returned = 0;
    }

    #[cfg(feature = "highlight")]
    fn code_line(&mut self, line: String) -> Vec<Span> {
        match &mut self.code {
            Some(code) => code.line(&line),
            None => vec![Span::fixed(line, &[Style::Cyan])],
        }
    }

    #[cfg(not(feature = "highlight"))]
    fn code_line(&mut self, line: String) -> Vec<Span> {
        vec![Span::fixed(line, &[Style::Cyan])]
    }

    fn as_it_is(&self, text: &str) -> Vec<Span> {
        vec![Span { styles: self.style.into_iter().collect(), ..Span::plain(text) }]
    }

    /// Takes the rest of the shown form of the line.
    fn take(&mut self, shown: Vec<Span>, spans: &mut Vec<Span>) {
        let mut skip = self.returned;
        for mut span in shown {
            let skipped = skip.min(span.text.len());
            skip -= skipped;
            // The returned part is the beginning of the shown form, so it ends between characters.
            match span.text.get(skipped..) {
                Some("") | None => {}
                Some(rest) => {
                    self.returned += rest.len();
                    span.text = rest.to_owned();
                    spans.push(span);
                }
            }
        }
    }

    fn end_table(&mut self, columns: usize, spans: &mut Vec<Span>) {
        let rows = std::mem::take(&mut self.table);
        if rows.is_empty() {
            return;
        }
        match laid_out(&rows, columns) {
            Some(table) => spans.extend(table),
            None => spans.extend(rows.iter().flat_map(|row| [Span::plain(row), Span::plain("\n")])),
        }
    }
}

/// Returns the characters that begin or end a block of code, if the line does that.
fn fence_of(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let first = line.chars().next().filter(|first| "`~".contains(*first))?;
    let marks = line.len() - line.trim_start_matches(first).len();
    let is_fence = marks >= 3 && !line.get(marks..).is_some_and(|rest| first == '`' && rest.contains('`'));
    is_fence.then(|| line.get(..marks)).flatten()
}

/// Returns the language that the first line of a block of code names.
#[cfg(feature = "highlight")]
fn language_of<'l>(line: &'l str, marks: &str) -> Option<&'l str> {
    line.trim_start().strip_prefix(marks)?.split([' ', ',', '{', '\t']).find(|word| !word.is_empty())
}

/// Returns the beginning of an incomplete line that is shown as it will be in the complete line.
fn settled(line: &str) -> &str {
    // Whether it is a table or a block of code shows at the end of the line.
    if line.trim_start().starts_with(['|', '`', '~']) {
        return "";
    }
    let whole = &line[..whole_words(line)];
    // Which block it is shows with its first letter.
    if whole.chars().all(|char| "-*_=+#>.) \t".contains(char) || char.is_numeric()) {
        return "";
    }
    let open = Parser::new_ext(whole.trim_start(), Options::ENABLE_STRIKETHROUGH).into_offset_iter().find_map(
        |(event, place)| {
            let Event::Text(_) = event else { return None };
            let start = whole.len() - whole.trim_start().len();
            first_open(whole, place.start + start..place.end + start)
        },
    );
    let Some(open) = open else { return whole };
    // As far as the word before it.
    let mut end = 0;
    for word in words_of(whole) {
        let next = end + word.word.len() + word.whitespace.len();
        if next > open {
            break;
        }
        end = next;
    }
    &whole[..end]
}

/// Returns the words of a text, each with the space behind it: a line may break between any two.
pub(crate) fn words_of(text: &str) -> impl Iterator<Item = textwrap::core::Word<'_>> {
    textwrap::WordSeparator::UnicodeBreakProperties.find_words(text)
}

/// Returns where the last word of an incomplete line begins, which may go on.
fn whole_words(line: &str) -> usize {
    let last = words_of(line).last().filter(|word| word.whitespace.is_empty());
    line.len() - last.map_or(0, |word| word.word.len())
}

/// Returns the place of the first character of a text that may begin something once more has arrived.
fn first_open(line: &str, text: std::ops::Range<usize>) -> Option<usize> {
    let chars = line.get(text.clone())?.char_indices();
    chars.map(|(at, char)| (text.start + at, char)).find_map(|(at, char)| {
        let before = line[..at].chars().next_back();
        let after = line[at + char.len_utf8()..].chars().next();
        let begins_word = after.is_some_and(|after| !after.is_whitespace());
        let is_open = match char {
            '*' | '~' => begins_word,
            '_' => begins_word && !before.is_some_and(char::is_alphanumeric),
            '`' => true,
            '<' => after.is_some_and(|after| after.is_ascii_alphabetic() || "/!?".contains(after)),
            '[' => {
                let rest = &line[at..];
                let end = rest.find(']');
                !end.is_some_and(|end| rest[end + 1..].starts_with(|next: char| !"([:".contains(next)))
            }
            _ => false,
        };
        is_open.then_some(at)
    })
}

/// Returns the shown form of a line.
fn shown(line: &str) -> Vec<Span> {
    let text = line.trim_start();
    let mut inline = Inline::default();
    let indent = &line[..line.len() - text.len()];
    for event in Parser::new_ext(text, Options::ENABLE_STRIKETHROUGH) {
        inline.event(event);
    }
    // Definitions of links are not shown.
    if inline.spans.is_empty() {
        return if text.is_empty() { Vec::new() } else { vec![Span::plain(line)] };
    }
    let mut spans = inline.spans;
    if !indent.is_empty() {
        spans.insert(0, Span::fixed(indent.to_owned(), &[]));
    }
    spans
}

/// Collects the text of a line with its styles.
#[derive(Default)]
struct Inline {
    spans: Vec<Span>,
    styles: Vec<Style>,
    /// The number of the next item of each list.
    lists: Vec<Option<u64>>,
    /// The addresses of the links and images around the text, and where their texts begin.
    links: Vec<(String, usize)>,
}

impl Inline {
    fn add(&mut self, text: &str) {
        self.spans.push(Span { text: text.to_owned(), styles: self.styles.clone(), is_prose: true });
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(&tag),
            Event::End(end) => self.end(end),
            Event::Text(text) | Event::Html(text) | Event::InlineHtml(text) => self.add(&text),
            Event::Code(code) => {
                self.styles.push(Style::Cyan);
                self.add(&code);
                self.styles.pop();
            }
            Event::SoftBreak | Event::HardBreak => self.add(" "),
            Event::Rule => self.spans.push(Span::fixed("─".repeat(RULE), &[Style::Dim])),
            _ => {}
        }
    }

    fn start(&mut self, tag: &Tag<'_>) {
        match tag {
            Tag::Heading { level, .. } => {
                self.styles.push(Style::Bold);
                if *level == HeadingLevel::H1 {
                    self.styles.push(Style::Underline);
                }
            }
            Tag::Strong => self.styles.push(Style::Bold),
            Tag::Emphasis => self.styles.push(Style::Italic),
            Tag::Strikethrough => self.styles.push(Style::Strike),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push((dest_url.to_string(), self.spans.len()));
                self.styles.push(Style::Underline);
            }
            Tag::List(first) => self.lists.push(*first),
            Tag::Item => {
                let number = self.lists.last().copied().flatten();
                let mark = number.map_or("• ".to_owned(), |number| format!("{number}. "));
                self.spans.push(Span::fixed(mark, &[Style::Cyan]));
            }
            Tag::BlockQuote(_) => self.spans.push(Span::fixed(BAR.to_owned(), &[Style::Dim])),
            _ => {}
        }
    }

    fn end(&mut self, end: TagEnd) {
        match end {
            TagEnd::Heading(level) => {
                self.styles.pop();
                if level == HeadingLevel::H1 {
                    self.styles.pop();
                }
            }
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => _ = self.styles.pop(),
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                let Some((address, start)) = self.links.pop() else { return };
                let text: String = self.spans.iter().skip(start).map(|span| &*span.text).collect();
                if text != address && !address.is_empty() {
                    self.styles.push(Style::Dim);
                    self.add(&format!(" ({address})"));
                    self.styles.pop();
                }
            }
            TagEnd::List(_) => _ = self.lists.pop(),
            _ => {}
        }
    }
}

/// The width of a rule.
const RULE: usize = 20;

/// Lays out a table, if the rows are one and the terminal is wide enough.
fn laid_out(rows: &[String], columns: usize) -> Option<Vec<Span>> {
    let source = rows.iter().map(|row| row.trim_start()).collect::<Vec<_>>().join("\n");
    let options = Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TABLES;
    let mut table: Vec<Vec<Vec<Span>>> = Vec::new();
    let mut inline = Inline::default();
    for event in Parser::new_ext(&source, options) {
        match event {
            Event::Start(Tag::TableHead | Tag::TableRow) => table.push(Vec::new()),
            Event::Start(Tag::TableCell) => inline = Inline::default(),
            Event::End(TagEnd::TableCell) => table.last_mut()?.push(std::mem::take(&mut inline.spans)),
            event => inline.event(event),
        }
    }
    let width = |cell: &[Span]| cell.iter().map(|span| display_width(&span.text)).sum::<usize>();
    let mut widths = vec![0; table.first()?.len()];
    for row in &table {
        widths.iter_mut().zip(row).for_each(|(most, cell)| *most = width(cell).max(*most));
    }
    // Each column with the bar behind it, and the space before that.
    if widths.iter().map(|width| width + 3).sum::<usize>() > columns + 3 {
        return None;
    }
    let mut spans = Vec::new();
    for (number, row) in table.into_iter().enumerate() {
        for (column, (cell, most)) in row.into_iter().zip(&widths).enumerate() {
            if column > 0 {
                spans.push(Span::fixed(format!(" {BAR}"), &[Style::Dim]));
            }
            let room = " ".repeat(most - width(&cell));
            let head = (number == 0).then_some(Style::Bold);
            spans.extend(cell.into_iter().map(|span| Span {
                styles: head.into_iter().chain(span.styles).collect(),
                is_prose: false,
                ..span
            }));
            if column + 1 < widths.len() {
                spans.push(Span::fixed(room, &[]));
            }
        }
        spans.push(Span::plain("\n"));
        if number == 0 {
            let lines: Vec<_> = widths.iter().map(|width| "─".repeat(*width)).collect();
            spans.push(Span::fixed(lines.join("─┼─"), &[Style::Dim]));
            spans.push(Span::plain("\n"));
        }
    }
    Some(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "# The *plan*\n\nUse **`cargo test`** and _then_ commit; see [the book](https://x.y/z \"t\") or \
        <https://a.b>, a_snake_case, 2 * 3 * 4, x[0], [1] and ~~no~~ *open.\n- **First**: one\n  - nested `a b`\n12. twelfth\n> a \
        quotation with **bold**\n\n```none\nfn main() { /* **x** */ }\n    // deeper\n```\n| a | b |\n|---|---|\n| 1 | `two` |\n\n---\n\
        漢字の**太字**です。続き\n[ref]: https://hidden.example\n**never closed and `neither\n| no table |\nend";

    /// Returns each text with the first letters of its styles.
    fn marked(spans: &[Span]) -> String {
        let mut marked = String::new();
        let mut before = "".to_owned();
        for span in spans {
            let styles: String =
                span.styles.iter().map(|style| format!("{style:?}").chars().take(1).collect::<String>()).collect();
            if styles != before {
                marked += &format!("‹{styles}›");
            }
            marked += &span.text;
            before = styles;
        }
        marked
    }

    fn whole(text: &str, columns: usize) -> String {
        let mut markdown = Markdown::new(true);
        let mut spans = markdown.push(text, columns);
        spans.extend(markdown.end(columns));
        marked(&spans)
    }

    #[test]
    fn an_answer_is_shown_in_styles() {
        let shown = "‹BU›The ‹BUI›plan‹›\n\nUse ‹BC›cargo test‹› and ‹I›then‹› commit; see ‹U›the book‹D› (https://x.y/z)‹› or \
            ‹U›https://a.b‹›, a_snake_case, 2 * 3 * 4, x[0], [1] and ‹S›no‹› *open.\n‹C›• ‹B›First‹›: one\n  ‹C›• ‹›nested ‹C›a b‹›\n\
            ‹C›12. ‹›twelfth\n‹D›│ ‹›a quotation with ‹B›bold‹›\n\n‹D›```none‹›\n‹C›fn main() { /* **x** */ }‹›\n‹C›    // deeper‹›\n\
            ‹D›```‹›\n‹B›a‹›‹D› │ ‹B›b‹›\n‹D›──┼────‹›\n1‹D› │ ‹C›two‹›\n\n";
        let whole = whole(ANSWER, 80);
        assert!(whole.starts_with(shown), "{whole}");
        assert!(
            whole.contains("‹D›────────────────────‹›\n漢字の‹B›太字‹›です。続き\n[ref]: https://hidden.example\n"),
            "{whole}"
        );
        assert!(whole.ends_with("**never closed and `neither\n| no table |\nend"), "{whole}");
    }

    #[test]
    fn pieces_are_shown_as_the_whole_is() {
        for columns in [10, 80] {
            let expected = whole(ANSWER, columns);
            for size in [1, 2, 3, 7, 40, 200] {
                let mut markdown = Markdown::new(true);
                let chars: Vec<_> = ANSWER.chars().collect();
                let mut spans = Vec::new();
                for piece in chars.chunks(size) {
                    spans.extend(markdown.push(&piece.iter().collect::<String>(), columns));
                    spans.extend(markdown.settle());
                }
                spans.extend(markdown.end(columns));
                assert_eq!(marked(&spans), expected, "pieces of {size}");
            }
        }
    }

    #[test]
    fn words_are_returned_before_their_line_ends() {
        let mut markdown = Markdown::new(true);
        let mut shows = |piece: &str| {
            assert!(markdown.push(piece, 80).is_empty());
            marked(&markdown.settle())
        };
        assert_eq!(shows("- one **two** thr"), "‹C›• ‹›one ‹B›two");
        assert_eq!(shows("ee *fo"), " three");
        assert_eq!(shows("ur* "), " ‹I›four");
    }

    #[test]
    fn a_line_without_an_end_is_returned_in_time() {
        let mut markdown = Markdown::new(true);
        let text = "`word ".repeat(4_000);
        let mut spans = Vec::new();
        for piece in text.as_bytes().chunks(5) {
            spans.extend(markdown.push(std::str::from_utf8(piece).unwrap(), 80));
            spans.extend(markdown.settle());
            assert!(markdown.line.len() <= LONGEST + 6);
        }
        spans.extend(markdown.end(80));
        let shown: String = spans.iter().map(|span| &*span.text).collect();
        assert_eq!(shown.matches("word").count(), 4_000);
    }
}
