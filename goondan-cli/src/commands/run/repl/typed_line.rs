//! The line that a person types while a turn runs.
// STEER-01

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use textwrap::core::display_width;

use super::command::COMMANDS;
use crate::output::clean;

/// A line under the cursor. A pasted text and lines that end in a backslash are one input of several lines.
#[derive(Debug, Default)]
pub(crate) struct TypedLine {
    text: String,
    /// The offset of the cursor in the text.
    cursor: usize,
    kind: LineKind,
}

/// The purpose of a line.
#[derive(Debug, Default, PartialEq)]
pub(crate) enum LineKind {
    /// An input.
    #[default]
    Input,
    /// The answer to a question, which may be blank. Tab completes one of these texts.
    Answer(Vec<String>),
    /// An answer that is not shown.
    Secret,
}

/// The effect of a key.
#[derive(Debug, PartialEq)]
pub(crate) enum Asked {
    /// The input joins the turn.
    Steer(String),
    /// The input has the next turn, or is a command that runs then.
    Queue(String),
    /// The question is answered.
    Answer(String),
    /// The turn is cancelled.
    Cancel,
}

impl TypedLine {
    /// A line with this text, and the cursor behind it.
    pub(crate) fn new(text: String) -> Self {
        Self { cursor: text.len(), text, kind: LineKind::Input }
    }

    /// A line for an answer, which begins with this text.
    pub(crate) fn of_kind(text: String, kind: LineKind) -> Self {
        Self { kind, ..Self::new(text) }
    }

    pub(crate) fn is_secret(&self) -> bool {
        self.kind == LineKind::Secret
    }

    pub(crate) fn is_answer(&self) -> bool {
        self.kind != LineKind::Input
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Takes an event of the terminal.
    pub(crate) fn take(&mut self, event: &Event) -> Option<Asked> {
        match event {
            Event::Paste(text) => self.insert(&text.replace("\r\n", "\n").replace('\r', "\n")),
            Event::Key(KeyEvent { code, modifiers, kind: KeyEventKind::Press | KeyEventKind::Repeat, .. }) => {
                return self.key(*code, *modifiers);
            }
            _ => {}
        }
        None
    }

    fn key(&mut self, code: KeyCode, modifiers: KeyModifiers) -> Option<Asked> {
        let is_control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Esc => return Some(Asked::Cancel),
            KeyCode::Enter if modifiers.contains(KeyModifiers::ALT) => self.insert("\n"),
            KeyCode::Enter => return self.entered(),
            KeyCode::Tab => return self.tab(),
            KeyCode::Char('a') if is_control => self.cursor = 0,
            KeyCode::Char('e') if is_control => self.cursor = self.text.len(),
            KeyCode::Char('u') if is_control => self.remove(0, self.cursor),
            KeyCode::Char('k') if is_control => self.remove(self.cursor, self.text.len()),
            KeyCode::Char('w') if is_control => {
                let word = self.text[..self.cursor].trim_end().rfind(char::is_whitespace);
                self.remove(word.map_or(0, |space| space + 1), self.cursor);
            }
            KeyCode::Char('h') if is_control => self.remove(self.before(), self.cursor),
            KeyCode::Char(char) if !is_control => self.insert(char.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => self.remove(self.before(), self.cursor),
            KeyCode::Delete => self.remove(self.cursor, self.after()),
            KeyCode::Left => self.cursor = self.before(),
            KeyCode::Right => self.cursor = self.after(),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            _ => {}
        }
        None
    }

    fn entered(&mut self) -> Option<Asked> {
        if self.is_answer() {
            self.cursor = 0;
            return Some(Asked::Answer(std::mem::take(&mut self.text)));
        }
        if self.text.ends_with('\\') && self.cursor == self.text.len() {
            self.text.pop();
            self.cursor = self.text.len();
            self.insert("\n");
            return None;
        }
        let text = self.whole()?;
        // A command is none of the model's business, and runs when the turn has ended.
        let is_command = text.trim_start().starts_with('/') && !text.trim_start().starts_with("//");
        Some(if is_command { Asked::Queue(text) } else { Asked::Steer(text) })
    }

    fn tab(&mut self) -> Option<Asked> {
        if let LineKind::Answer(texts) = &self.kind {
            let typed = self.text.to_lowercase();
            let mut matching = texts.iter().filter(|text| text.to_lowercase().starts_with(&typed));
            if let (Some(text), None) = (matching.next(), matching.next()) {
                (self.text, self.cursor) = (text.clone(), text.len());
            }
        }
        if self.is_answer() {
            return None;
        }
        let mut matching = COMMANDS.iter().filter(|(name, _)| name.starts_with(&self.text));
        match (self.text.starts_with('/'), matching.next(), matching.next()) {
            (true, Some((name, _)), None) if *name != self.text => {
                *self = Self::new((*name).to_owned());
                None
            }
            _ => self.whole().map(Asked::Queue),
        }
    }

    /// Takes the text, unless it is blank.
    fn whole(&mut self) -> Option<String> {
        (!self.text.trim().is_empty()).then(|| std::mem::take(self).text)
    }

    fn insert(&mut self, text: &str) {
        self.text.insert_str(self.cursor, text);
        self.cursor += text.len();
    }

    fn remove(&mut self, start: usize, end: usize) {
        self.text.replace_range(start..end, "");
        self.cursor = start;
    }

    fn before(&self) -> usize {
        self.text[..self.cursor].char_indices().next_back().map_or(0, |(at, _)| at)
    }

    fn after(&self) -> usize {
        self.text[self.cursor..].chars().next().map_or(self.cursor, |char| self.cursor + char.len_utf8())
    }

    /// Returns the part of the line that is shown in so many columns, and the column of the cursor in it.
    pub(crate) fn shown(&self, columns: usize) -> (String, usize) {
        if self.kind == LineKind::Secret {
            let stars = |text: &str| text.chars().count().min(columns);
            return ("*".repeat(stars(&self.text)), stars(&self.text[..self.cursor]));
        }
        let visible = |text: &str| clean(text).replace('\n', "⏎").replace('\t', " ");
        let (mut left, right) = (visible(&self.text[..self.cursor]), visible(&self.text[self.cursor..]));
        while display_width(&left) >= columns && !left.is_empty() {
            left.remove(0);
        }
        let at = display_width(&left);
        let mut shown = left;
        for char in right.chars() {
            let width = display_width(char.encode_utf8(&mut [0; 4]));
            if display_width(&shown) + width >= columns {
                break;
            }
            shown.push(char);
        }
        (shown, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn press(line: &mut TypedLine, code: KeyCode) -> Option<Asked> {
        line.take(&Event::Key(KeyEvent::new(code, KeyModifiers::NONE)))
    }

    fn control(line: &mut TypedLine, char: char) {
        line.take(&Event::Key(KeyEvent::new(KeyCode::Char(char), KeyModifiers::CONTROL)));
    }

    fn type_in(line: &mut TypedLine, text: &str) {
        text.chars().for_each(|char| _ = press(line, KeyCode::Char(char)));
    }

    #[test]
    fn a_line_is_edited_and_entered() {
        let mut line = TypedLine::default();
        assert_eq!(press(&mut line, KeyCode::Enter), None, "an empty line is no input");
        type_in(&mut line, "héllo wrold");
        for _ in 0..4 {
            press(&mut line, KeyCode::Left);
        }
        press(&mut line, KeyCode::Delete);
        type_in(&mut line, "o");
        press(&mut line, KeyCode::Right);
        press(&mut line, KeyCode::Backspace);
        type_in(&mut line, "r");
        assert_eq!(line.shown(80), ("héllo world".to_owned(), 9));
        control(&mut line, 'w');
        assert_eq!(line.shown(80).0, "héllo ld");
        control(&mut line, 'k');
        control(&mut line, 'a');
        type_in(&mut line, "Oh, ");
        control(&mut line, 'e');
        type_in(&mut line, "there");
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Steer("Oh, héllo there".to_owned())));
        assert!(line.is_empty());
    }

    #[test]
    fn a_pasted_text_and_continued_lines_are_one_input() {
        let mut line = TypedLine::default();
        line.take(&Event::Paste("one\r\ntwo\rthree".to_owned()));
        type_in(&mut line, "\\");
        assert_eq!(press(&mut line, KeyCode::Enter), None);
        type_in(&mut line, "four");
        assert_eq!(line.shown(80).0, "one⏎two⏎three⏎four");
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Steer("one\ntwo\nthree\nfour".to_owned())));
    }

    #[test]
    fn tab_queues_a_line_and_completes_a_command() {
        let mut line = TypedLine::default();
        assert_eq!(press(&mut line, KeyCode::Tab), None);
        type_in(&mut line, "later");
        assert_eq!(press(&mut line, KeyCode::Tab), Some(Asked::Queue("later".to_owned())));
        type_in(&mut line, "/co");
        assert_eq!(press(&mut line, KeyCode::Tab), Some(Asked::Queue("/co".to_owned())), "/continue and /cost");
        type_in(&mut line, "/cos");
        assert_eq!(press(&mut line, KeyCode::Tab), None);
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Queue("/cost".to_owned())));
        type_in(&mut line, "//etc");
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Steer("//etc".to_owned())));
        assert_eq!(press(&mut line, KeyCode::Esc), Some(Asked::Cancel));
    }

    #[test]
    fn an_answer_may_be_blank_and_a_secret_is_not_shown() {
        let mut line =
            TypedLine::of_kind(String::new(), LineKind::Answer(vec!["Post".to_owned(), "Express".to_owned()]));
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Answer(String::new())));
        type_in(&mut line, "e");
        press(&mut line, KeyCode::Tab);
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Answer("Express".to_owned())));
        type_in(&mut line, "/no");
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Answer("/no".to_owned())));
        let mut line = TypedLine::of_kind(String::new(), LineKind::Secret);
        type_in(&mut line, " p\\ss ");
        press(&mut line, KeyCode::Tab);
        assert_eq!(line.shown(80), ("******".to_owned(), 6));
        assert_eq!(press(&mut line, KeyCode::Enter), Some(Asked::Answer(" p\\ss ".to_owned())));
    }

    #[test]
    fn the_part_around_the_cursor_is_shown() {
        let mut line = TypedLine::new("0123456789".to_owned());
        assert_eq!(line.shown(5), ("6789".to_owned(), 4));
        press(&mut line, KeyCode::Home);
        assert_eq!(line.shown(5), ("0123".to_owned(), 0));
        assert_eq!(TypedLine::new("漢字".repeat(3)).shown(6).1, 4, "wide characters take two columns");
        assert_eq!(TypedLine::new("\x1b[2J".to_owned()).shown(9).0, "␛[2J");
    }
}
