//! Prints one turn on the terminal while it runs: the answer as it is streamed, with progress in between. What is typed
//! meanwhile joins the turn, or waits for its end.

use std::io;
use std::time::{Duration, Instant};

use goondan::agent::{LiveQuestion, LiveUpdate, TurnStream, TurnUpdate};
use goondan::conversation::FilePart;
use goondan::event::{AgentEvent, RuntimeEvent};
use goondan::host::race::{Either, race};
use goondan::middleware::TurnResult;
use goondan::name::TurnId;
use goondan::{BoxFuture, Instance, Result};
use tokio::time::sleep;

use super::super::files;
use super::keys::Keys;
use super::live::{Answered, Live};
use super::progress::Progress;
use super::typed_line::{Asked, TypedLine};
use crate::output::{Above, Markdown, PieceCleaner, Stream, Style};

/// A turn that is being printed.
pub(crate) struct TurnView {
    progress: Progress,
    /// The text of the current step so far, as the model sent it.
    streamed: String,
    cleaner: PieceCleaner,
    markdown: Markdown,
    /// The part to which the last piece of text belongs.
    part: u32,
    /// Whether reasoning is printed.
    shows_reasoning: bool,
    /// Since when the model thinks, until it answers.
    thinking: Option<Instant>,
    inputs: Inputs,
    /// Known from the first event on.
    pub(crate) turn: Option<TurnId>,
}

/// The inputs that are typed while a turn runs.
pub(crate) struct Inputs {
    pub(crate) instance: Instance,
    /// The files that go with the next one.
    pub(crate) files: Vec<FilePart>,
    /// `None` where nothing can be typed.
    pub(crate) keys: Option<Keys>,
    /// The inputs that have not joined the turn.
    pub(crate) steered: Vec<Steered>,
    /// Those that wait for its end.
    pub(crate) queued: Vec<String>,
    /// All that were entered, oldest first.
    pub(crate) entered: Vec<String>,
    /// The questions that are answered meanwhile.
    pub(crate) live: Live,
    /// The line that was being typed when a question came.
    draft: Option<TypedLine>,
}

/// An input that waits for the next step of the turn.
pub(crate) struct Steered {
    pub(crate) text: String,
    pub(crate) event: AgentEvent,
    /// It waits until this is dropped.
    pub(crate) _waiting: BoxFuture<'static, Result<TurnResult>>,
}

impl Inputs {
    /// Those of a turn of `instance` that begins.
    pub(crate) fn new(instance: Instance, files: Vec<FilePart>, keys: Option<Keys>, live: Live) -> Self {
        let (steered, queued, entered) = Default::default();
        Self { instance, files, keys, steered, queued, entered, live, draft: None }
    }

    /// Steers an input into the turn.
    fn steer(&mut self, text: String) {
        let event = files::event(&text, std::mem::take(&mut self.files));
        self.steered.push(Steered { text, _waiting: self.instance.steer(event.clone()), event });
    }

    /// Returns the input for the turn, not for a question.
    pub(crate) fn take_draft(&mut self, typed: Option<TypedLine>) -> Option<TypedLine> {
        match typed {
            Some(typed) if typed.is_answer() => Some(self.draft.take().unwrap_or_default()),
            typed => typed,
        }
    }
}

async fn next_key(keys: &mut Option<Keys>) -> crossterm::event::Event {
    match keys {
        Some(keys) => keys.next().await,
        None => std::future::pending().await,
    }
}

impl TurnView {
    pub(crate) fn new(progress: Progress, inputs: Inputs, shows_reasoning: bool) -> Self {
        let (streamed, cleaner) = (String::new(), PieceCleaner::default());
        let markdown = Markdown::new(progress.has_colors());
        Self { progress, streamed, cleaner, markdown, part: 0, shows_reasoning, thinking: None, inputs, turn: None }
    }

    /// Returns the printed and the typed text.
    pub(crate) fn into_parts(self) -> (Progress, Inputs) {
        (self.progress, self.inputs)
    }

    /// Prints the turn to its end, and returns its outcome; `None` if the person cancels it. Then, and if the future is
    /// dropped, the caller calls [`TurnView::finish`].
    pub(crate) async fn watch(&mut self, mut turn: TurnStream) -> Result<Option<Result<TurnResult>>> {
        let mut log = Above::new();
        self.progress.redraw();
        // Those of turns in the background.
        self.ask()?;
        loop {
            let interval = self.progress.interval();
            let asked = self.inputs.live.first().map(|first| first.id().clone());
            let Inputs { keys, live, .. } = &mut self.inputs;
            let typed = race(next_key(keys), race(log.next(), tick(interval)));
            match race(turn.next(), race(live.next(), typed)).await {
                Either::Left(Some(update)) => self.update(update)?,
                Either::Left(None) => break,
                Either::Right(Either::Left(update)) => {
                    if let (LiveUpdate::Gone(gone), Some(asked)) = (&update, &asked)
                        && gone.id() == asked
                    {
                        self.progress.note("the question does not wait any more");
                    }
                    if self.inputs.live.first().map(LiveQuestion::id) != asked.as_ref() {
                        self.ask()?;
                    }
                }
                Either::Right(Either::Right(Either::Left(key))) => {
                    if self.key(&key)? {
                        turn.cancel().await?;
                        return Ok(None);
                    }
                }
                Either::Right(Either::Right(Either::Right(Either::Left(line)))) => self.progress.canvas.lines(&line)?,
                Either::Right(Either::Right(Either::Right(Either::Right(())))) => {
                    self.line_so_far();
                    self.progress.redraw();
                }
            }
        }
        let result = turn.finish().await;
        if let Ok(result) = &result {
            self.final_text(result)?;
        }
        self.finish()?;
        Ok(Some(result))
    }

    /// Asks the first live question, or goes on with the earlier input if there is none.
    // ASK-04
    fn ask(&mut self) -> io::Result<()> {
        let Inputs { live, draft, .. } = &mut self.inputs;
        let Some(typed) = &mut self.progress.typed else { return Ok(()) };
        if live.first().is_some() {
            let line = std::mem::replace(typed, live.line());
            if !line.is_answer() {
                *draft = Some(line);
            }
            self.progress.hint = Some(live.hint());
            self.end_reasoning()?;
            self.end_line()?;
            let page = self.inputs.live.page(self.progress.page());
            self.progress.lines(&page);
        } else if typed.is_answer() {
            *typed = draft.take().unwrap_or_default();
            self.progress.hint = None;
        }
        self.progress.redraw();
        Ok(())
    }

    /// Takes an answer that was typed.
    // ASK-04
    fn answered(&mut self, text: String) -> io::Result<()> {
        let is_secret = self.progress.typed.as_ref().is_some_and(TypedLine::is_secret);
        match self.inputs.live.answer(&text) {
            Answered::Next => {
                self.progress.answered(if is_secret { "******" } else { &text });
                return self.ask();
            }
            Answered::Again(problem) => self.progress.note(&problem),
            Answered::Details => {
                let page = self.inputs.live.details(self.progress.page());
                self.progress.lines(&page);
            }
            Answered::Command => {
                self.inputs.entered.push(text.clone());
                self.inputs.queued.push(text);
                self.progress.note("the command runs when the turn has ended");
            }
        }
        Ok(())
    }

    /// Takes a key. Returns whether the turn is to be cancelled.
    fn key(&mut self, key: &crossterm::event::Event) -> io::Result<bool> {
        match self.progress.typed.as_mut().and_then(|typed| typed.take(key)) {
            Some(Asked::Steer(text)) => {
                self.inputs.entered.push(text.clone());
                self.inputs.steer(text);
            }
            Some(Asked::Queue(text)) => {
                self.inputs.entered.push(text.clone());
                self.inputs.queued.push(text);
            }
            Some(Asked::Answer(text)) => self.answered(text)?,
            Some(Asked::Cancel) => return Ok(true),
            None => {}
        }
        self.count_inputs();
        self.progress.redraw();
        Ok(false)
    }

    fn count_inputs(&mut self) {
        (self.progress.steered, self.progress.queued) = (self.inputs.steered.len(), self.inputs.queued.len());
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
            TurnUpdate::Shown(shown) => {
                if shown.shown.id().is_none() {
                    self.end_reasoning()?;
                    self.end_line()?;
                }
                self.progress.shows(shown);
                Ok(())
            }
            update @ TurnUpdate::Child { .. } => {
                self.progress.children.take(update);
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
            self.end_line()?;
            self.thinking = Some(Instant::now());
            self.progress.thinks();
            self.markdown = Markdown::plain(Style::Dim);
        }
        if !self.shows_reasoning {
            return Ok(());
        }
        self.progress.model_answers();
        let piece = self.cleaner.push(piece);
        self.print(Some(Style::Dim), &piece)
    }

    /// Folds the reasoning, if there was any, into one line with its duration.
    fn end_reasoning(&mut self) -> io::Result<()> {
        if let Some(since) = self.thinking.take() {
            self.end_line()?;
            self.markdown = Markdown::new(self.progress.has_colors());
            self.progress.thought(since.elapsed());
        }
        Ok(())
    }

    /// Clears the progress and the line that is typed, and moves the cursor to the start of a line.
    pub(crate) fn finish(&mut self) -> io::Result<()> {
        self.end_line()?;
        self.progress.end_shown();
        self.progress.canvas.finish()
    }

    /// Ends the line of the answer, if it is in one.
    fn end_line(&mut self) -> io::Result<()> {
        let rest = self.cleaner.end();
        self.print(None, &rest)?;
        let columns = self.progress.canvas.columns();
        let rest = self.markdown.end(columns);
        self.progress.canvas.spans(&rest);
        self.progress.canvas.end_line()
    }

    fn text(&mut self, piece: &str) -> io::Result<()> {
        self.streamed.push_str(piece);
        self.progress.model_answers();
        let piece = self.cleaner.push(piece);
        self.print(None, &piece)
    }

    /// Prints a piece of the answer, or of the model's thoughts: in this style where the cursor cannot be moved, and
    /// laid out elsewhere.
    fn print(&mut self, style: Option<Style>, piece: &str) -> io::Result<()> {
        let canvas = &mut self.progress.canvas;
        if piece.is_empty() {
            return Ok(());
        }
        if !canvas.is_drawn() {
            return canvas.piece(style, piece);
        }
        let spans = self.markdown.push(piece, canvas.columns());
        canvas.spans(&spans);
        self.line_so_far();
        self.progress.canvas.draw_if_due()
    }

    /// Gives the next frame the printable part of the line that is not complete, if it is due.
    fn line_so_far(&mut self) {
        let canvas = &mut self.progress.canvas;
        if canvas.takes_more() {
            canvas.spans(&self.markdown.settle());
        }
    }

    fn event(&mut self, event: &RuntimeEvent) -> io::Result<()> {
        self.turn.get_or_insert_with(|| event.scope().turn_id.clone());
        if matches!(event, RuntimeEvent::StepStarted { .. }) {
            self.streamed.clear();
        }
        self.end_line()?;
        if let RuntimeEvent::InputJoined { event_id, .. } = event
            && let Some(joined) = self.inputs.steered.iter().position(|steered| steered.event.id == *event_id)
        {
            let joined = self.inputs.steered.remove(joined);
            self.count_inputs();
            self.progress.said(&joined.text);
        }
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
