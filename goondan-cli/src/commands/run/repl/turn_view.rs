//! Prints one turn on the terminal while it runs: the answer as it is streamed, with progress in between.

use std::io;
use std::time::{Duration, Instant};

use goondan::Result;
use goondan::agent::{TurnStream, TurnUpdate};
use goondan::event::{FilesChanged, RuntimeEvent};
use goondan::host::race::{Either, race};
use goondan::middleware::TurnResult;
use tokio::time::sleep;

use super::progress::Progress;
use crate::output::{PieceCleaner, Stream};

/// A turn that is being printed.
pub(crate) struct TurnView<'a> {
    progress: &'a mut Progress,
    /// The text of the current step so far, as the model sent it.
    streamed: String,
    cleaner: PieceCleaner,
    /// The part to which the last piece of text belongs.
    part: u32,
    /// Whether reasoning is printed.
    shows_reasoning: bool,
    /// Since when the model thinks, until it answers.
    thinking: Option<Instant>,
    /// Whether the cursor is behind the answer in a line that has not ended.
    in_line: bool,
}

impl<'a> TurnView<'a> {
    pub(crate) fn new(progress: &'a mut Progress, shows_reasoning: bool) -> Self {
        let (streamed, cleaner) = (String::new(), PieceCleaner::default());
        Self { progress, streamed, cleaner, part: 0, shows_reasoning, thinking: None, in_line: false }
    }

    /// Prints the turn to its end. Dropping the future cancels the turn; then [`TurnView::finish`] must be called.
    pub(crate) async fn watch(&mut self, mut turn: TurnStream) -> Result<Result<TurnResult>> {
        loop {
            let interval = self.progress.interval();
            match race(turn.next(), tick(interval)).await {
                Either::Left(Some(update)) => self.update(update)?,
                Either::Left(None) => break,
                Either::Right(()) => self.progress.redraw(),
            }
        }
        let result = turn.finish().await;
        if let Ok(result) = &result {
            self.final_text(result)?;
        }
        self.finish()?;
        Ok(result)
    }

    fn update(&mut self, update: TurnUpdate) -> io::Result<()> {
        match update {
            TurnUpdate::Reasoning { text, .. } => self.reasoning(&text),
            TurnUpdate::Text { part, text, .. } => {
                self.end_reasoning()?;
                if self.part != part && !self.streamed.is_empty() {
                    self.text("\n")?;
                }
                self.part = part;
                self.text(&text)
            }
            TurnUpdate::ToolCall { id, name, .. } => {
                self.end_reasoning()?;
                self.progress.called(&id, &name);
                Ok(())
            }
            TurnUpdate::Restart { reason, wait, .. } => {
                self.end_reasoning()?;
                self.end_line()?;
                self.streamed.clear();
                if wait.is_none() {
                    self.progress.note(&format!("the answer begins again: {reason}"));
                }
                Ok(())
            }
            TurnUpdate::Progress { call, done, total, text } => {
                self.progress.progressed(&call, done, total, &text);
                Ok(())
            }
            TurnUpdate::Output { call, text, by_presenter } => {
                self.progress.returned(call, text, by_presenter);
                Ok(())
            }
            TurnUpdate::Emitted(event) => {
                self.end_reasoning()?;
                self.end_line()?;
                if let Ok(FilesChanged { diff, .. }) = event.payload() {
                    self.progress.diff(&diff);
                }
                Ok(())
            }
            TurnUpdate::Event(event) => {
                self.end_reasoning()?;
                self.event(&event)
            }
            _ => Ok(()),
        }
    }

    fn reasoning(&mut self, piece: &str) -> io::Result<()> {
        if self.thinking.is_none() {
            self.thinking = Some(Instant::now());
            self.progress.thinks();
        }
        if !self.shows_reasoning {
            return Ok(());
        }
        self.progress.model_answers();
        let piece = self.cleaner.push(piece);
        if !piece.is_empty() {
            self.in_line = !piece.ends_with('\n');
            self.progress.dim(&piece);
        }
        Ok(())
    }

    /// Folds the reasoning, if there was any, into one line with its duration.
    fn end_reasoning(&mut self) -> io::Result<()> {
        if let Some(since) = self.thinking.take() {
            self.end_line()?;
            self.progress.thought(since.elapsed());
        }
        Ok(())
    }

    /// Clears the progress and moves the cursor to the start of a line.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.progress.model_answers();
        self.end_line()
    }

    /// Ends the line of the answer, if it is in one.
    fn end_line(&mut self) -> io::Result<()> {
        let rest = self.cleaner.end();
        if std::mem::take(&mut self.in_line) || !rest.is_empty() { print(&(rest + "\n")) } else { Ok(()) }
    }

    fn text(&mut self, piece: &str) -> io::Result<()> {
        self.streamed.push_str(piece);
        self.progress.model_answers();
        let piece = self.cleaner.push(piece);
        if !piece.is_empty() {
            self.in_line = !piece.ends_with('\n');
            print(&piece)?;
        }
        Ok(())
    }

    fn event(&mut self, event: &RuntimeEvent) -> io::Result<()> {
        if matches!(event, RuntimeEvent::StepStarted { .. }) {
            self.streamed.clear();
        }
        // Progress is drawn from the start of a line.
        self.end_line()?;
        self.progress.update(event);
        Ok(())
    }

    /// Prints the answer if it differs from the streamed text: a middleware may have changed it.
    fn final_text(&mut self, result: &TurnResult) -> io::Result<()> {
        let whole = result.text();
        if *whole != self.streamed { self.text(&whole) } else { Ok(()) }
    }
}

async fn tick(interval: Option<Duration>) {
    match interval {
        Some(interval) => sleep(interval).await,
        None => std::future::pending().await,
    }
}

/// Prints part of an answer, or a page, to standard output.
pub(crate) fn print(text: &str) -> io::Result<()> {
    Stream::Out.text(text)
}
