//! Owns events that come from `--input` or from lines of standard input, and the answers to them.

use std::io::{self, BufRead, Write};
use std::thread;

use goondan::{Error, ErrorCode, Result, TurnResult};
use tokio::sync::mpsc::{Receiver, channel};

use super::opened::Opened;
use super::race::{First, first};
use super::signals::{Ended, Signal, Signals};
use super::watch::Watch;
use crate::args::RunArgs;
use crate::outcome::Outcome;
use crate::output;
use crate::output::answer::{self, Format};

/// A conversation without a terminal.
pub(crate) struct Lines<'a> {
    opened: &'a mut Opened,
    args: &'a RunArgs,
    signals: Signals,
    watch: Watch,
    failed: bool,
}

/// What an answer is followed by.
enum Then {
    GoOn,
    /// Nobody reads the answers any more.
    Stop,
    Leave(Outcome),
}

impl<'a> Lines<'a> {
    pub(crate) fn new(opened: &'a mut Opened, args: &'a RunArgs, signals: Signals, watch: Watch) -> Self {
        Self { opened, args, signals, watch, failed: false }
    }

    /// One event.
    pub(crate) async fn one(mut self, input: &str) -> Result<Outcome> {
        match self.turn(input).await? {
            Then::Leave(outcome) => Ok(outcome),
            Then::GoOn | Then::Stop => Ok(self.outcome()),
        }
    }

    /// One event a line.
    pub(crate) async fn all(mut self) -> Result<Outcome> {
        let mut lines = read_lines()?;
        for number in 1.. {
            // The line that is waiting to be read is the next turn: a change comes before it.
            let line = loop {
                match first(self.signals.next(), first(self.watch.changed(), lines.recv())).await {
                    First::One(Signal::Interrupt) => return Ok(Outcome::Interrupted),
                    First::One(Signal::Terminate) => return Ok(Outcome::Done),
                    First::Other(First::One(())) => self.reload().await,
                    First::Other(First::Other(line)) => break line,
                }
            };
            let Some(line) = line.transpose()? else { break };
            match std::str::from_utf8(&line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => match self.turn(text.trim_end_matches(['\n', '\r'])).await? {
                    Then::GoOn => {}
                    Then::Stop => break,
                    Then::Leave(outcome) => return Ok(outcome),
                },
                Err(error) => {
                    self.failed = true;
                    let message = format!("line {number} of standard input is not UTF-8 text");
                    output::report(
                        &Error::new(ErrorCode::INPUT, message).suggest("convert the input to UTF-8").caused_by(error),
                    );
                }
            }
        }
        Ok(self.outcome())
    }

    async fn reload(&mut self) {
        // Where that cannot be said nobody wants to know.
        self.opened.reload_and_tell(|text| _ = writeln!(io::stderr(), "{text}")).await;
        self.watch.watch(self.opened.files());
    }

    async fn turn(&mut self, input: &str) -> Result<Then> {
        let turn = self.opened.instance().run(input);
        match self.signals.over(turn, self.args.grace()).await {
            Ended::ByItself(outcome) => self.answer(&outcome),
            Ended::Interrupted => Ok(Then::Leave(Outcome::Interrupted)),
            Ended::Drained(outcome) => {
                if let Some(outcome) = outcome {
                    self.answer(&outcome)?;
                }
                Ok(Then::Leave(Outcome::Done))
            }
        }
    }

    fn answer(&mut self, outcome: &Result<TurnResult>) -> Result<Then> {
        if let Err(error) = outcome {
            self.failed = true;
            output::report(error);
        }
        let format = if self.args.json { Format::Json } else { Format::Text };
        match answer::print(outcome, format) {
            Ok(()) => Ok(Then::GoOn),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Then::Stop),
            Err(error) => Err(error.into()),
        }
    }

    fn outcome(&self) -> Outcome {
        if self.failed { Outcome::SomeFailed } else { Outcome::Done }
    }
}

/// The lines of standard input, read by a thread of their own: timers and signals are served while it waits. It reads one
/// line ahead.
fn read_lines() -> Result<Receiver<io::Result<Vec<u8>>>> {
    let (sender, lines) = channel(1);
    thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        for line in io::stdin().lock().split(b'\n') {
            let failed = line.is_err();
            // When nobody waits for lines the process is about to end.
            if sender.blocking_send(line).is_err() || failed {
                break;
            }
        }
    })?;
    Ok(lines)
}
