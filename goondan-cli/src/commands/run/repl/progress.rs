//! The progress of a turn on the terminal: the cause of its wait, the time, and how each tool call ended.

use std::time::{Duration, Instant};

use goondan::event::{ExtensionShown, RuntimeEvent, ToolCallRef};
use goondan::name::ToolCallId;
use goondan::tool::Presentation;
use textwrap::core::display_width;

use super::canvas::{Canvas, Footer};
use super::children::Children;
use super::shown::ShownInTurn;
use super::terminal::Terminal;
use super::typed_line::TypedLine;
use super::usage::{Usage, seconds};
use crate::output::shown::ShownLines;
use crate::output::{Style, Styled, first_line};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The number of characters of a tool name that are shown. Models may call tools by any name, and a line that wraps
/// cannot be redrawn.
const MAX_NAME: usize = 60;
/// The number of characters of a note that are shown.
const MAX_MESSAGE: usize = 200;
/// The number of lines that are shown of the result of a call, and of characters of each.
const MAX_LINES: usize = 3;
const MAX_LINE: usize = 120;
/// Stands between the items of the status.
const SEPARATOR: &str = " · ";

/// The prompt of the line that is typed while the turn runs, and of an answer; both are as long.
const PROMPT: &str = "> ";
const ANSWER: &str = "? ";

/// The progress of one turn. Nothing is shown unless standard error is a terminal.
pub(crate) struct Progress {
    terminal: Terminal,
    pub(crate) canvas: Canvas,
    /// The line that is typed; `None` where nothing can be typed.
    pub(crate) typed: Option<TypedLine>,
    /// The number of inputs that wait for the next step, and for the end of the turn.
    pub(crate) steered: usize,
    pub(crate) queued: usize,
    /// The answers that the question takes, in words.
    pub(crate) hint: Option<String>,
    usage: Usage,
    /// Since when the model is being waited for.
    waiting: Option<Instant>,
    /// Whether it thinks.
    thinking: bool,
    calls: Vec<Call>,
    /// Index into [`FRAMES`].
    frame: usize,
    /// Output of the newest call.
    last: Option<Output>,
    /// The turns of other agents that the turn waits for.
    pub(super) children: Children,
    shown: ShownInTurn,
    /// The lines that were shown where nothing stays in its place.
    shown_lines: ShownLines,
}

/// Output of a call.
pub(crate) struct Output {
    id: ToolCallId,
    pub(crate) text: String,
    /// Whether it was made for people.
    by_presenter: bool,
}

/// A tool call that the model asked for, until it has ended.
struct Call {
    id: ToolCallId,
    name: String,
    /// The line that presents it.
    line: String,
    /// The progress that its handler reported last.
    progress: Option<String>,
    /// Whether the handler runs. Before that, the extensions around the call may wait, for example for a person.
    started: bool,
    /// Since when it is in this state.
    since: Instant,
}

impl Call {
    fn label(&self) -> String {
        let what = self.progress.as_ref().unwrap_or(&self.line);
        if what.is_empty() { self.name.clone() } else { first_line(&format!("{} {what}", self.name), MAX_NAME) }
    }
}

impl Progress {
    pub(crate) fn new(terminal: Terminal, usage: Usage) -> Self {
        Self {
            canvas: Canvas::new(terminal.clone()),
            terminal,
            typed: None,
            steered: 0,
            queued: 0,
            hint: None,
            usage,
            waiting: None,
            thinking: false,
            calls: Vec::new(),
            frame: 0,
            last: None,
            children: Children::default(),
            shown: ShownInTurn::default(),
            shown_lines: ShownLines::default(),
        }
    }

    /// Returns an empty page for this terminal.
    pub(crate) fn page(&self) -> Styled {
        self.terminal.styled()
    }

    /// Whether the terminal shows styles.
    pub(crate) fn has_colors(&self) -> bool {
        self.terminal.colors
    }

    /// Returns the time until the next [`Progress::redraw`]; `None` if nothing is animated.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let is_animated = self.canvas.is_drawn() && (self.waiting.is_some() || !self.calls.is_empty());
        let animated = is_animated.then_some(Duration::from_millis(100));
        match (animated, self.canvas.due()) {
            (Some(animated), Some(due)) => Some(animated.min(due)),
            (animated, due) => animated.or(due),
        }
    }

    /// Updates the display for `event`.
    pub(crate) fn update(&mut self, event: &RuntimeEvent) {
        self.usage.update(event);
        match event {
            RuntimeEvent::StepStarted { .. } => self.waiting = Some(Instant::now()),
            RuntimeEvent::ToolCalled { call, presentation, .. } => {
                self.calls.retain(|other| other.id != call.tool_call_id);
                self.add(&call.tool_call_id, &call.tool_name, &presentation.line, true);
            }
            RuntimeEvent::ToolCompleted { call, duration, presentation, .. }
            | RuntimeEvent::ToolFailed { call, duration, presentation, .. } => {
                self.ended(call, *duration, presentation);
            }
            RuntimeEvent::StepCompleted { .. } | RuntimeEvent::StepFailed { .. } => {
                self.waiting = None;
                // The calls of a held answer are told when they have ended, and updates of others may be lost.
                self.calls.clear();
                self.children = Children::default();
            }
            RuntimeEvent::ModelRetried { reason, wait, .. } => {
                self.note(&format!("asking again in {} ({reason})", seconds(*wait)));
                self.waiting = Some(Instant::now());
            }
            // An extension has asked a model, and the wait from before goes on.
            RuntimeEvent::ModelAsked { .. } => {}
            _ => self.waiting = None,
        }
        self.redraw();
    }

    /// Takes note that the model asked for a tool call. Most calls start at once, so this is not drawn until the next
    /// [`Progress::redraw`].
    pub(crate) fn called(&mut self, id: &ToolCallId, name: &str) {
        self.waiting = None;
        self.add(id, name, "", false);
    }

    /// Takes the output of a call, whose end follows.
    pub(crate) fn returned(&mut self, id: ToolCallId, text: String, by_presenter: bool) {
        self.last = Some(Output { id, text, by_presenter });
    }

    /// Prints the usage of the turn, once it has ended.
    pub(crate) fn summarize(&mut self) {
        if let Some(summary) = self.usage.summary() {
            self.note(&summary);
        }
    }

    /// Returns the output of the newest call.
    pub(crate) fn into_last(self) -> Option<Output> {
        self.last
    }

    /// Takes note of how far a tool call is. It is drawn with the next [`Progress::redraw`].
    pub(crate) fn progressed(&mut self, id: &ToolCallId, done: f64, total: Option<f64>, text: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            call.progress = Some(how_far(done, total, text));
        }
    }

    fn add(&mut self, id: &ToolCallId, name: &str, line: &str, started: bool) {
        let (id, name, line) = (id.clone(), first_line(name, MAX_NAME), line.to_owned());
        self.calls.push(Call { id, name, line, progress: None, started, since: Instant::now() });
    }

    /// Takes note that the model thinks.
    pub(crate) fn thinks(&mut self) {
        self.thinking = true;
    }

    /// Prints how long the model thought before it answered.
    pub(crate) fn thought(&mut self, duration: Duration) {
        self.thinking = false;
        self.note(&format!("thought for {}", seconds(duration)));
    }

    /// Prints a line of its own.
    pub(crate) fn note(&mut self, text: &str) {
        self.lines(&self.terminal.styled().paint(Style::Dim, &first_line(text, MAX_MESSAGE)).text("\n"));
    }

    /// Prints whole lines. That the terminal is closed shows when the answer is written.
    pub(crate) fn lines(&mut self, lines: &Styled) {
        if self.terminal.shows_progress {
            let lines = if self.canvas.is_drawn() { lines.wrapped(self.terminal.columns()) } else { lines.clone() };
            _ = self.canvas.lines(&lines);
        }
    }

    /// Prints an input that has joined the turn.
    pub(crate) fn said(&mut self, input: &str) {
        self.typed_lines(PROMPT, input);
    }

    /// Prints the answer to a question.
    pub(crate) fn answered(&mut self, answer: &str) {
        self.typed_lines(ANSWER, answer);
    }

    fn typed_lines(&mut self, prompt: &str, text: &str) {
        let mut lines = self.terminal.styled();
        for (number, line) in text.lines().enumerate() {
            lines = if number == 0 { lines.paint(Style::Cyan, prompt) } else { lines.text("  ") }.text(line).text("\n");
        }
        self.lines(&lines);
    }

    /// Shows a note of an extension.
    pub(crate) fn shows(&mut self, shown: ExtensionShown) {
        let page = self.terminal.styled();
        if !self.canvas.is_drawn() {
            let lines = self.shown_lines.page(&shown, page);
            return self.lines(&lines);
        }
        match self.shown.take(shown, page) {
            Some(lines) => self.lines(&lines),
            None => self.redraw(),
        }
    }

    /// Prints the lists that extensions have shown, as they are at the end of the turn.
    pub(crate) fn end_shown(&mut self) {
        let lists = self.shown.end(self.terminal.styled());
        if !lists.as_str().is_empty() {
            self.lines(&lists);
        }
    }

    /// Takes note that the model has started to answer.
    pub(crate) fn model_answers(&mut self) {
        if self.waiting.take().is_some() {
            self.redraw();
        }
    }

    /// Prints the end of a call, and the first lines of its output.
    fn ended(&mut self, call: &ToolCallRef, duration: Duration, presentation: &Presentation) {
        self.calls.retain(|running| running.id != call.tool_call_id);
        let returned = self.last.as_ref().filter(|last| last.id == call.tool_call_id && last.by_presenter);
        let lines: Vec<_> = returned.map(|output| output.text.lines().collect()).unwrap_or_default();
        let failed = presentation.outcome.as_ref().is_some_and(|outcome| outcome.failed);
        let (style, mark) = if failed { (Style::Red, "✗") } else { (Style::Green, "✓") };
        // The name comes first: the text of the line may come from others.
        let mut text = self.terminal.styled().paint(style, mark).text(" ").text(&first_line(&call.tool_name, MAX_NAME));
        let said = presentation.to_string();
        if !said.is_empty() {
            text = text.text("  ").text(&said);
        }
        let count = if lines.len() > MAX_LINES { format!(" · {} lines", lines.len()) } else { String::new() };
        text = text.paint(Style::Dim, &format!("{count} · {}", seconds(duration))).text("\n");
        for line in lines.iter().take(MAX_LINES) {
            text = text.paint(Style::Dim, &format!("  {}", first_line(line, MAX_LINE))).text("\n");
        }
        if lines.len() > MAX_LINES {
            text = text.paint(Style::Dim, &format!("  … /last shows all {}", lines.len())).text("\n");
        }
        self.lines(&text);
    }

    /// Shows the cause of the wait of the turn, and the line that is typed.
    pub(crate) fn redraw(&mut self) {
        let mut rows = self.shown.rows(self.terminal.rows() / 2, &self.terminal.styled());
        let room = self.terminal.columns().saturating_sub(1);
        rows.extend(self.children.rows(self.terminal.rows() / 4, &self.terminal.styled()));
        rows.iter_mut().for_each(|row| row.cut(room));
        rows.extend(self.status());
        let footer = Footer { rows, typed: self.typed_row() };
        // That the terminal is closed shows when the answer is written.
        _ = self.canvas.set_footer(footer);
    }

    /// Returns the row of the line that is typed, and the column of the cursor in it.
    fn typed_row(&self) -> Option<(Styled, usize)> {
        let typed = self.typed.as_ref()?;
        let room = self.terminal.columns().saturating_sub(PROMPT.len() + 1);
        let row = self.terminal.styled().paint(Style::Cyan, if typed.is_answer() { ANSWER } else { PROMPT });
        if !typed.is_empty() {
            let (shown, column) = typed.shown(room);
            return Some((row.text(&shown), PROMPT.len() + column));
        }
        let mut hint: Vec<String> = self.hint.iter().cloned().collect();
        match self.steered {
            0 => {}
            1 => hint.push("1 input joins at the next step".to_owned()),
            more => hint.push(format!("{more} inputs join at the next step")),
        }
        if self.queued > 0 {
            hint.push(format!("{} for afterwards", self.queued));
        }
        if hint.is_empty() {
            hint.extend(["Enter steers", "Tab is for afterwards"].map(str::to_owned));
        }
        hint.push("Esc cancels".to_owned());
        let mut hint = hint.join(SEPARATOR);
        cut(&mut hint, room);
        Some((row.paint(Style::Dim, &hint), PROMPT.len()))
    }

    /// Returns the row about the wait of the turn.
    fn status(&mut self) -> Option<Styled> {
        let started: Vec<_> = self.calls.iter().filter(|call| call.started).collect();
        let (what, since) = match (started.as_slice(), self.calls.first(), self.waiting) {
            ([call], _, _) => (call.label(), call.since),
            ([call, others @ ..], _, _) => (format!("{} and {} more", call.name, others.len()), call.since),
            ([], Some(call), _) => (format!("calling {}", call.name), call.since),
            ([], None, Some(since)) if self.thinking => ("the model thinks".to_owned(), since),
            ([], None, Some(since)) => ("waiting for the model".to_owned(), since),
            ([], None, None) => return None,
        };
        self.frame = (self.frame + 1) % FRAMES.len();
        let text = self.fitting(what, &format!(" {}", seconds(since.elapsed())));
        Some(self.terminal.styled().text(FRAMES[self.frame]).text(" ").paint(Style::Dim, &text))
    }

    /// Returns the cause of the wait, its time, and as much of the status as the line has room for.
    fn fitting(&self, mut text: String, time: &str) -> String {
        // The sign of the progress and the space behind it; and a full line would move the cursor to the next one.
        let room = self.terminal.columns().saturating_sub(3);
        cut(&mut text, room.saturating_sub(display_width(time)));
        text.push_str(time);
        for item in self.usage.status() {
            if display_width(&text) + display_width(SEPARATOR) + display_width(&item) > room {
                break;
            }
            text = text + SEPARATOR + &item;
        }
        text
    }
}

/// Cuts a text to so many columns.
fn cut(text: &mut String, columns: usize) {
    let mut width = 0;
    text.retain(|char| {
        width += display_width(char.encode_utf8(&mut [0; 4]));
        width <= columns
    });
}

/// Returns the words for the progress of a call: the share of a known total, and the text. A number without a total is
/// shown in place of a text.
fn how_far(done: f64, total: Option<f64>, text: &str) -> String {
    match total {
        Some(total) if total > 0.0 => format!("{:.0}% {text}", (done / total * 100.0).clamp(0.0, 100.0)),
        _ if text.is_empty() => done.to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_as_a_share_of_its_total_or_if_there_is_no_text() {
        assert_eq!(how_far(1.0, Some(3.0), "boxes"), "33% boxes");
        assert_eq!(how_far(5.0, Some(3.0), ""), "100% ");
        assert_eq!(how_far(5.0, None, "boxes"), "boxes");
        assert_eq!(how_far(5.0, None, ""), "5");
        assert_eq!(how_far(0.0, Some(0.0), ""), "0");
    }
}
