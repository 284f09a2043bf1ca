//! The progress of a turn on standard error: what the turn is waiting for, how long, and how each tool call ended.

use std::time::{Duration, Instant};

use goondan::event::RuntimeEvent;
use goondan::middleware::ToolCallStatus;
use goondan::name::ToolCallId;

use super::diff;
use super::terminal::Terminal;
use crate::output::{self, Style, Styled, first_line};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The number of characters of a tool name that are shown. Models may call tools by any name, and a line that wraps
/// cannot be redrawn.
const MAX_NAME: usize = 60;
/// The number of characters of an error message that are shown.
const MAX_MESSAGE: usize = 200;

/// The progress of one turn. Nothing is shown unless standard error is a terminal.
pub(crate) struct Progress {
    terminal: Terminal,
    /// Since when the model is being waited for.
    waiting: Option<Instant>,
    /// Whether it thinks.
    thinking: bool,
    calls: Vec<Call>,
    /// Index into [`FRAMES`].
    frame: usize,
    /// Whether the line with the cursor shows progress.
    drawn: bool,
}

/// A tool call that the model asked for, until it has ended.
struct Call {
    id: ToolCallId,
    name: String,
    /// How far it is, as its handler said last.
    progress: Option<String>,
    /// Whether the handler runs. Before that, the extensions around the call may wait, for example for a person.
    started: bool,
    /// Since when it is in this state.
    since: Instant,
}

impl Call {
    fn label(&self) -> String {
        match &self.progress {
            Some(progress) => first_line(&format!("{} {progress}", self.name), MAX_NAME),
            None => self.name.clone(),
        }
    }
}

impl Progress {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, waiting: None, thinking: false, calls: Vec::new(), frame: 0, drawn: false }
    }

    /// Returns the time until the next [`Progress::redraw`]; `None` if nothing is animated.
    pub(crate) fn interval(&self) -> Option<Duration> {
        let animated = self.terminal.shows_progress && self.terminal.moves_cursor;
        (animated && (self.waiting.is_some() || !self.calls.is_empty())).then_some(Duration::from_millis(100))
    }

    /// Updates the display for `event`.
    pub(crate) fn update(&mut self, event: &RuntimeEvent) {
        match event {
            RuntimeEvent::StepStarted { .. } => self.waiting = Some(Instant::now()),
            RuntimeEvent::ToolCalled { call, .. } => {
                self.calls.retain(|other| other.id != call.tool_call_id);
                self.add(&call.tool_call_id, &call.tool_name, true);
            }
            RuntimeEvent::ToolCompleted { call, status, duration, error_message, .. } => match status {
                ToolCallStatus::Ok => self.done(&call.tool_call_id, &call.tool_name, *duration),
                _ => {
                    self.failed(&call.tool_call_id, &call.tool_name, error_message.as_deref().unwrap_or("failed"));
                }
            },
            RuntimeEvent::ToolFailed { call, error_message, .. } => {
                self.failed(&call.tool_call_id, &call.tool_name, error_message);
            }
            RuntimeEvent::StepCompleted { .. } | RuntimeEvent::StepFailed { .. } => {
                self.waiting = None;
                // The calls of a held answer are told when they have ended.
                self.calls.clear();
            }
            RuntimeEvent::ModelRetried { reason, wait, .. } => {
                self.note(&format!("asking again in {} ({reason})", seconds(*wait)));
                self.waiting = Some(Instant::now());
            }
            // An extension has asked a model, and what was waited for is waited for still.
            RuntimeEvent::ModelAsked { .. } => {}
            _ => self.waiting = None,
        }
        self.redraw();
    }

    /// Takes note that the model asked for a tool call. Most calls start at once, so this is not drawn until the next
    /// [`Progress::redraw`].
    pub(crate) fn called(&mut self, id: &ToolCallId, name: &str) {
        self.waiting = None;
        self.add(id, name, false);
    }

    /// Takes note of how far a tool call is. It is drawn with the next [`Progress::redraw`].
    pub(crate) fn progressed(&mut self, id: &ToolCallId, done: f64, total: Option<f64>, text: &str) {
        if let Some(call) = self.calls.iter_mut().find(|call| call.id == *id) {
            call.progress = Some(how_far(done, total, text));
        }
    }

    fn add(&mut self, id: &ToolCallId, name: &str, started: bool) {
        let name = first_line(name, MAX_NAME);
        self.calls.push(Call { id: id.clone(), name, progress: None, started, since: Instant::now() });
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
        self.clear();
        if self.terminal.shows_progress {
            output::eprint_styled(&self.terminal.styled().paint(Style::Dim, &first_line(text, MAX_MESSAGE)).text("\n"));
        }
    }

    /// Prints what a tool has changed in files.
    pub(crate) fn diff(&mut self, diff: &str) {
        self.clear();
        if self.terminal.shows_progress {
            output::eprint_styled(&diff::page(diff, self.terminal.styled()));
        }
        self.redraw();
    }

    /// Prints part of what the model thinks.
    pub(crate) fn dim(&mut self, text: &str) {
        output::eprint_styled(&self.terminal.styled().paint(Style::Dim, text));
    }

    /// Clears the display because the model started to answer.
    pub(crate) fn model_answers(&mut self) {
        self.waiting = None;
        self.clear();
    }

    fn done(&mut self, id: &ToolCallId, name: &str, duration: Duration) {
        let line = self.terminal.styled().paint(Style::Green, "✓").text(&format!(" {} ", first_line(name, MAX_NAME)));
        self.ended(id, line.paint(Style::Dim, &seconds(duration)));
    }

    fn failed(&mut self, id: &ToolCallId, name: &str, message: &str) {
        let (name, message) = (first_line(name, MAX_NAME), first_line(message, MAX_MESSAGE));
        self.ended(id, self.terminal.styled().paint(Style::Red, "✗").text(&format!(" {name}: {message}")));
    }

    fn ended(&mut self, id: &ToolCallId, line: Styled) {
        self.calls.retain(|call| call.id != *id);
        self.clear();
        if self.terminal.shows_progress {
            output::eprint_styled(&line.text("\n"));
        }
    }

    /// Shows what the turn is waiting for. The cursor is left at the start of the line, so that a line of the log
    /// overwrites it.
    pub(crate) fn redraw(&mut self) {
        if self.interval().is_none() {
            return self.clear();
        }
        let started: Vec<_> = self.calls.iter().filter(|call| call.started).collect();
        let (what, since) = match (started.as_slice(), self.calls.first(), self.waiting) {
            ([call], _, _) => (call.label(), call.since),
            ([call, others @ ..], _, _) => (format!("{} and {} more", call.name, others.len()), call.since),
            ([], Some(call), _) => (format!("calling {}", call.name), call.since),
            ([], None, Some(since)) if self.thinking => ("the model thinks".to_owned(), since),
            ([], None, Some(since)) => ("waiting for the model".to_owned(), since),
            ([], None, None) => return,
        };
        self.frame = (self.frame + 1) % FRAMES.len();
        let text = format!("{what} {}", seconds(since.elapsed()));
        let line = self.terminal.styled().clear_line().text(FRAMES[self.frame]).text(" ").paint(Style::Dim, &text);
        output::eprint_styled(&line.line_start());
        self.drawn = true;
    }

    /// Removes the line that [`Progress::redraw`] drew.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            output::eprint_styled(&self.terminal.styled().clear_line());
        }
    }
}

/// Returns what is shown of how far a call is: the share of a known total, and the text. A number without a total is
/// shown in place of a text.
fn how_far(done: f64, total: Option<f64>, text: &str) -> String {
    match total {
        Some(total) if total > 0.0 => format!("{:.0}% {text}", (done / total * 100.0).clamp(0.0, 100.0)),
        _ if text.is_empty() => done.to_string(),
        _ => text.to_owned(),
    }
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_short() {
        assert_eq!(seconds(Duration::from_millis(1234)), "1.2 s");
        assert_eq!(seconds(Duration::from_secs(75)), "75.0 s");
    }

    #[test]
    fn a_number_is_shown_as_a_share_of_its_total_or_if_there_is_no_text() {
        assert_eq!(how_far(1.0, Some(3.0), "boxes"), "33% boxes");
        assert_eq!(how_far(5.0, Some(3.0), ""), "100% ");
        assert_eq!(how_far(5.0, None, "boxes"), "boxes");
        assert_eq!(how_far(5.0, None, ""), "5");
        assert_eq!(how_far(0.0, Some(0.0), ""), "0");
    }
}
