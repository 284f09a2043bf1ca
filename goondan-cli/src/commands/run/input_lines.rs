//! The lines of standard input, and the live questions that some of them answer.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::pending;
use std::io::{self, BufRead};
use std::thread;

use goondan::agent::{LiveQuestion, LiveUpdate};
use goondan::host::HostQuestions;
use goondan::host::race::{Either, race};
use goondan::wire::{DecideLine, Deciding, Update};
use goondan::{Error, ErrorCode, Map, Result, Value};
use tokio::sync::mpsc::{Receiver, channel};

use super::principal;
use crate::output::{self, answer};

/// A line of the input, with its number.
pub(crate) struct Line {
    pub(crate) number: usize,
    pub(crate) bytes: Vec<u8>,
}

/// The lines of standard input. If a program writes them, it is told live questions, and its lines answer them, also while
/// a turn runs.
// ASK-04
pub(crate) struct InputLines {
    lines: Receiver<io::Result<Vec<u8>>>,
    number: usize,
    /// Those that came while a turn ran, and are next.
    waiting: VecDeque<io::Result<Line>>,
    questions: Option<HostQuestions>,
    open: Vec<LiveQuestion>,
    /// True once an answer was not taken.
    pub(crate) failed: bool,
}

impl InputLines {
    /// Reads standard input. `questions` are those that the program answers.
    pub(crate) fn read(questions: Option<HostQuestions>) -> Result<Self> {
        let lines = read_lines()?;
        Ok(Self { lines, number: 0, waiting: VecDeque::new(), questions, open: Vec::new(), failed: false })
    }

    /// Waits for the next line that answers no live question; `None` at the end of the input.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Line>> {
        if let Some(line) = self.waiting.pop_front() {
            return Some(line);
        }
        loop {
            match race(changed(&mut self.questions), self.lines.recv()).await {
                Either::Left(update) => self.tell(update),
                Either::Right(Some(line)) => {
                    if let Some(line) = self.take(line) {
                        return Some(line);
                    }
                }
                Either::Right(None) => {
                    self.end();
                    return None;
                }
            }
        }
    }

    /// Tells live questions and takes their answers, while a turn runs. Lines are read only while a question is open.
    pub(crate) async fn serve(&mut self) -> Infallible {
        loop {
            let lines = async { if self.open.is_empty() { pending().await } else { self.lines.recv().await } };
            match race(changed(&mut self.questions), lines).await {
                Either::Left(update) => self.tell(update),
                Either::Right(Some(line)) => {
                    let line = self.take(line);
                    self.waiting.extend(line);
                }
                Either::Right(None) => self.end(),
            }
        }
    }

    /// Takes in that no line can answer any more.
    fn end(&mut self) {
        self.questions = None;
        self.open.clear();
    }

    fn tell(&mut self, update: LiveUpdate) {
        let update = match update {
            LiveUpdate::Asked(question) => {
                let asked = Update::Asked(Box::new(question.told().masked()));
                self.open.push(question);
                asked
            }
            LiveUpdate::Gone(question) => {
                self.open.retain(|open| open.id() != question.id());
                Update::Gone { id: question.id().clone() }
            }
            _ => return,
        };
        // That standard output is closed shows when the turn is printed.
        _ = answer::print_line(update.to_json());
    }

    /// Returns the line, unless it answers a live question.
    fn take(&mut self, line: io::Result<Vec<u8>>) -> Option<io::Result<Line>> {
        self.number += 1;
        let line = line.map(|bytes| Line { number: self.number, bytes });
        let (Ok(Line { bytes, number }), true) = (&line, self.questions.is_some()) else { return Some(line) };
        let decide = std::str::from_utf8(bytes).ok().and_then(|text| decide_line(text)?.ok());
        let Some(decide) = decide else { return Some(line) };
        let open = |question: &&LiveQuestion| match &decide.id {
            Some(id) => question.id() == id,
            None => question.wait().call == decide.call,
        };
        let answered = match self.open.iter().find(open) {
            Some(question) => question.decide(decide.into_decision().by(principal())),
            None if decide.id.is_some() => {
                Err(Error::new(ErrorCode::NOT_WAITING, "no such question waits for an answer")
                    .suggest("answer those that were told by `asked`, and not by `gone` since"))
            }
            None => return Some(line),
        };
        if let Err(error) = answered {
            self.failed = true;
            output::report(&error.with_detail("line", *number));
        }
        None
    }
}

/// Returns the decision of a line, if it has the form of one.
pub(crate) fn decide_line(line: &str) -> Option<serde_json::Result<Deciding>> {
    let members = line.trim_start().starts_with('{').then(|| serde_json::from_str::<Map<String, Value>>(line));
    let is_one = members.is_some_and(|members| members.is_ok_and(|members| members.contains_key("decide")));
    is_one.then(|| serde_json::from_str(line).map(|DecideLine { decide, .. }| decide))
}

async fn changed(questions: &mut Option<HostQuestions>) -> LiveUpdate {
    match questions {
        Some(questions) => questions.next().await,
        None => pending().await,
    }
}

/// Reads the lines of standard input in a thread, since a blocking read would keep the runtime from serving timers and
/// signals. The channel holds one line, so the thread is at most one line ahead.
fn read_lines() -> Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, lines) = channel(1);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let failed = line.is_err();
            // The receiver is dropped only when the process is about to exit.
            if sender.blocking_send(line).is_err() || failed {
                break;
            }
        }
    })?;
    Ok(lines)
}
