//! Owns one turn on a terminal: the answer as it comes, and the progress beside it.

use std::io::{self, Write};
use std::time::Duration;

use goondan::{Result, RuntimeEvent, TurnResult, TurnStream, TurnUpdate};
use tokio::time::sleep;

use super::super::race::{First, first};
use super::progress::Progress;
use super::terminal::harmless;

/// A turn while it is shown.
pub(crate) struct Shown<'a> {
    progress: &'a mut Progress,
    /// What the model said in this step, as it came.
    said: String,
    /// Whether the answer stands in the middle of a line.
    in_line: bool,
}

impl<'a> Shown<'a> {
    pub(crate) fn new(progress: &'a mut Progress) -> Self {
        Self { progress, said: String::new(), in_line: false }
    }

    /// Shows a turn to its end. Dropping this cancels the turn; then [`Shown::end`] tidies up.
    pub(crate) async fn watch(&mut self, mut turn: TurnStream) -> Result<Result<TurnResult>> {
        loop {
            let pace = self.progress.pace();
            match first(turn.next(), tick(pace)).await {
                First::One(Some(TurnUpdate::Text(piece))) => self.text(&piece)?,
                First::One(Some(TurnUpdate::Event(event))) => self.event(&event)?,
                First::One(Some(_)) => {}
                First::One(None) => break,
                First::Other(()) => self.progress.tick(),
            }
        }
        let outcome = turn.finish().await;
        if let Ok(result) = &outcome {
            self.rest(result)?;
        }
        self.end()?;
        Ok(outcome)
    }

    /// Leaves the cursor where the next line begins.
    pub(crate) fn end(&mut self) -> io::Result<()> {
        self.progress.answers();
        if std::mem::take(&mut self.in_line) {
            print("\n")?;
        }
        Ok(())
    }

    fn text(&mut self, piece: &str) -> io::Result<()> {
        self.said.push_str(piece);
        self.progress.answers();
        let piece = harmless(piece);
        if !piece.is_empty() {
            self.in_line = !piece.ends_with('\n');
            print(&piece)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &RuntimeEvent) -> io::Result<()> {
        if matches!(event, RuntimeEvent::StepStarted { .. }) {
            self.said.clear();
        }
        // Progress begins at the beginning of a line.
        if std::mem::take(&mut self.in_line) {
            print("\n")?;
        }
        self.progress.tell(event);
        Ok(())
    }

    /// What the answer says beyond what came: a middleware may have changed it.
    fn rest(&mut self, result: &TurnResult) -> io::Result<()> {
        let whole = result.text();
        if *whole != self.said { self.text(&whole) } else { Ok(()) }
    }
}

async fn tick(pace: Option<Duration>) {
    match pace {
        Some(pace) => sleep(pace).await,
        None => std::future::pending().await,
    }
}

/// Writes a part of an answer.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}
