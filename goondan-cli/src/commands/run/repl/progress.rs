//! Owns what standard error shows while a turn runs: what is waited for, since when, and how each tool call ended.

use std::io::{self, Write};
use std::time::{Duration, Instant};

use goondan::{RuntimeEvent, ToolCallId, ToolCallStatus};

use super::terminal::{Style, Terminal, harmless};

const FRAMES: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// How much of a tool's name is shown: models call tools as they like, and a line that wraps cannot be drawn over.
const LONGEST_NAME: usize = 60;
/// How much of a message is shown beside a tool call.
const LONGEST_MESSAGE: usize = 200;

/// The progress of one turn. On anything but a terminal it shows nothing.
pub(crate) struct Progress {
    terminal: Terminal,
    waiting: Option<Instant>,
    calls: Vec<Call>,
    frame: usize,
    drawn: bool,
}

/// A tool call that runs.
struct Call {
    id: ToolCallId,
    name: String,
    since: Instant,
}

impl Progress {
    pub(crate) fn new(terminal: Terminal) -> Self {
        Self { terminal, waiting: None, calls: Vec::new(), frame: 0, drawn: false }
    }

    /// How long until the next [`Progress::tick`] shows something else; `None` when nothing moves.
    pub(crate) fn pace(&self) -> Option<Duration> {
        let moves = self.terminal.shows_progress && self.terminal.moves;
        (moves && (self.waiting.is_some() || !self.calls.is_empty())).then_some(Duration::from_millis(100))
    }

    /// Takes in what happened.
    pub(crate) fn tell(&mut self, event: &RuntimeEvent) {
        match event {
            RuntimeEvent::StepStarted { .. } => self.waiting = Some(Instant::now()),
            RuntimeEvent::ToolCalled { call, .. } => {
                self.waiting = None;
                let name = beginning(&call.tool_name, LONGEST_NAME);
                self.calls.push(Call { id: call.tool_call_id.clone(), name, since: Instant::now() });
            }
            RuntimeEvent::ToolCompleted { call, status, duration, error_message, .. } => match status {
                ToolCallStatus::Ok => self.done(&call.tool_call_id, &call.tool_name, *duration),
                ToolCallStatus::Error => {
                    self.failed(&call.tool_call_id, &call.tool_name, error_message.as_deref().unwrap_or("failed"));
                }
            },
            RuntimeEvent::ToolFailed { call, error_message, .. } => {
                self.failed(&call.tool_call_id, &call.tool_name, error_message);
            }
            _ => self.waiting = None,
        }
        self.tick();
    }

    /// The model began to answer.
    pub(crate) fn answers(&mut self) {
        self.waiting = None;
        self.clear();
    }

    fn done(&mut self, id: &ToolCallId, name: &str, took: Duration) {
        let mark = self.terminal.paint(Style::Green, "✓");
        let took = self.terminal.paint(Style::Dim, &seconds(took));
        self.ended(id, &format!("{mark} {} {took}", beginning(name, LONGEST_NAME)));
    }

    fn failed(&mut self, id: &ToolCallId, name: &str, message: &str) {
        let mark = self.terminal.paint(Style::Red, "✗");
        let (name, message) = (beginning(name, LONGEST_NAME), beginning(message, LONGEST_MESSAGE));
        self.ended(id, &format!("{mark} {name}: {message}"));
    }

    fn ended(&mut self, id: &ToolCallId, line: &str) {
        self.calls.retain(|call| call.id != *id);
        self.clear();
        if self.terminal.shows_progress {
            write(&format!("{line}\n"));
        }
    }

    /// Shows what is waited for now. The cursor is left at the beginning of the line, so that a line of the log takes its
    /// place.
    pub(crate) fn tick(&mut self) {
        if self.pace().is_none() {
            return self.clear();
        }
        let (what, since) = match (self.calls.as_slice(), self.waiting) {
            ([call], _) => (call.name.clone(), call.since),
            ([call, others @ ..], _) => (format!("{} and {} more", call.name, others.len()), call.since),
            ([], Some(since)) => ("waiting for the model".to_owned(), since),
            ([], None) => return,
        };
        self.frame = (self.frame + 1) % FRAMES.len();
        let text = self.terminal.paint(Style::Dim, &format!("{what} {}", seconds(since.elapsed())));
        write(&format!("\r\x1b[K{} {text}\r", FRAMES[self.frame]));
        self.drawn = true;
    }

    /// Takes away what [`Progress::tick`] shows.
    pub(crate) fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            write("\r\x1b[K");
        }
    }
}

/// The first line of `text`, cut to `limit` characters.
fn beginning(text: &str, limit: usize) -> String {
    harmless(text.lines().next().unwrap_or_default()).chars().take(limit).collect()
}

fn seconds(duration: Duration) -> String {
    format!("{:.1} s", duration.as_secs_f64())
}

/// Progress that cannot be shown is no reason to fail.
fn write(text: &str) {
    let mut out = io::stderr().lock();
    _ = out.write_all(text.as_bytes());
    _ = out.flush();
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
    fn what_models_and_tools_say_stays_on_its_line() {
        assert_eq!(beginning("a\x1b[Ab\nc", 60), "a[Ab");
        assert_eq!(beginning(&"ä".repeat(100), 60), "ä".repeat(60));
    }
}
