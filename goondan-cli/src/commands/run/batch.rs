//! Non-interactive conversation: input events from `--input` or the lines of standard input, answers on standard
//! output.

use std::future::{pending, ready};
use std::io;

use goondan::agent::{BackgroundUpdate, EventStream, ReloadRequest};
use goondan::decision::{AskedQuestion, Decision, Unanswered, Wait};
use goondan::event::{AgentEvent, ExtensionShown};
use goondan::host::Reloader;
use goondan::host::race::{Either, race};
use goondan::middleware::{FinishReason, TurnResult};
use goondan::{Error, ErrorCode, Result};
use tokio::time::{Instant, timeout_at};

use super::background::heading;
use super::conversation::OpenConversation;
use super::input_lines::{InputLines, Line, decide_line};
use super::reload::describe;
use super::signals::{AFTER_INTERRUPT, Signal, Signals, TurnEnd};
use super::{Work, cancel, principal};
use crate::args::{RunArgs, UnansweredArg};
use crate::outcome::Outcome;
use crate::output::answer::{self, AnswerFormat};
use crate::output::shown::ShownLines;
use crate::output::{self, Styled};

/// A conversation without a terminal.
pub(crate) struct Batch<'a> {
    conversation: &'a mut OpenConversation,
    args: &'a RunArgs,
    signals: Signals,
    reloader: Reloader,
    /// Whether a turn failed or an input was not valid.
    failed: bool,
    /// Whether the last turn waits for a decision.
    waits: bool,
    /// The updates that extensions show.
    shown: EventStream,
    shown_lines: ShownLines,
    /// The lines of the input, if they are read.
    lines: Option<InputLines>,
}

/// The next step after a turn.
enum Flow {
    Continue,
    /// Standard output was closed.
    Stop,
    Exit(Outcome),
}

/// The end of a turn.
enum Ran {
    Done(Flow),
    /// It waits, and these decisions are taken.
    Decided(Vec<Decision>),
}

/// The reason of calls that are rejected without a person.
const NO_PERSON: &str = "there is no person to ask";

impl<'a> Batch<'a> {
    pub(crate) fn new(
        conversation: &'a mut OpenConversation,
        args: &'a RunArgs,
        signals: Signals,
        reloader: Reloader,
    ) -> Result<Self> {
        let shown = conversation.instance.events().subscribe(ExtensionShown::NAME)?;
        let shown_lines = ShownLines::default();
        let lines = None;
        Ok(Self { conversation, args, signals, reloader, failed: false, waits: false, shown, shown_lines, lines })
    }

    /// Runs one turn with `input`.
    pub(crate) async fn run_one(self, input: AgentEvent) -> Result<Outcome> {
        self.run_work(Work::Event(Box::new(input))).await
    }

    /// Takes decisions, and goes on with the turn that waits for them.
    // ASK-01
    pub(crate) async fn decide(self, decisions: Vec<Decision>) -> Result<Outcome> {
        self.run_work(Work::Decide(decisions)).await
    }

    async fn run_work(mut self, work: Work) -> Result<Outcome> {
        match self.turn(work).await? {
            Flow::Exit(outcome) => Ok(outcome),
            Flow::Continue => self.end().await,
            Flow::Stop => Ok(self.outcome()),
        }
    }

    /// Runs one turn for each line of standard input that is not blank.
    pub(crate) async fn run_lines(mut self) -> Result<Outcome> {
        // A program is asked, unless it has a decision for the case without an answer.
        let is_asked = self.args.json && self.args.unanswered.is_none();
        let questions = is_asked.then(|| self.conversation.host.questions());
        self.lines = Some(InputLines::read(questions)?);
        loop {
            // A change of files is handled before a line that is ready, which is the input of the next turn.
            let line = loop {
                let background = self.conversation.background.next();
                let shown = self.shown_lines.print(&mut self.shown);
                let next = race(self.reloader.changed(), race(race(background, shown), next_line(&mut self.lines)));
                match race(self.signals.next(), next).await {
                    Either::Left(Signal::Interrupt) => return Ok(Outcome::Interrupted),
                    Either::Left(Signal::Terminate) => return self.end().await.map(|_| Outcome::Done),
                    Either::Right(Either::Left(request)) => self.reload(request).await,
                    Either::Right(Either::Right(Either::Left(Either::Right(never)))) => match never {},
                    Either::Right(Either::Right(Either::Left(Either::Left(notice)))) => {
                        match self.print_background(&notice)? {
                            Flow::Stop => return Ok(self.outcome()),
                            Flow::Continue | Flow::Exit(_) => {}
                        }
                    }
                    Either::Right(Either::Right(Either::Right(line))) => break line,
                }
            };
            let Some(Line { number, bytes }) = line.transpose()? else { break };
            match std::str::from_utf8(&bytes) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => {
                    let work = match line_work(text, self.args.json) {
                        Ok(work) => work,
                        Err(error) => {
                            self.failed = true;
                            let message = format!("line {number} of standard input is no decision: {error}");
                            output::report(&Error::new(ErrorCode::USAGE, message).suggest(DECIDE_LINE));
                            continue;
                        }
                    };
                    match self.turn(work).await? {
                        Flow::Continue => {}
                        Flow::Stop => return Ok(self.outcome()),
                        Flow::Exit(outcome) => return Ok(outcome),
                    }
                }
                Err(error) => {
                    self.failed = true;
                    let message = format!("line {number} of standard input is not UTF-8 text");
                    output::report(
                        &Error::new(ErrorCode::INPUT, message).suggest("convert the input to UTF-8").caused_by(error),
                    );
                }
            }
        }
        self.end().await
    }

    /// Waits for the turns that run in the background after the last input, and prints them.
    async fn end(mut self) -> Result<Outcome> {
        // Nothing is reloaded any more.
        self.reloader = self.conversation.host.reloader();
        let deadline = Instant::now() + self.args.grace();
        loop {
            let next = timeout_at(deadline, self.conversation.background.next_pending());
            let next = self.signals.run_turn(next, self.args.grace(), ready(Ok(false)));
            let next = match race(next, self.shown_lines.print(&mut self.shown)).await {
                Either::Left(next) => next,
                Either::Right(never) => match never {},
            };
            self.shown_lines.print_rest(&mut self.shown, None, &Styled::new(false)).await;
            let notice = match next {
                TurnEnd::Completed(Ok(Some(notice))) => notice,
                TurnEnd::Completed(Ok(None)) => return Ok(self.outcome()),
                TurnEnd::Completed(Err(_)) => {
                    let seconds = self.args.grace().as_secs();
                    output::eprint(&format!("leaving: turns in the background took longer than {seconds} s\n"));
                    return Ok(Outcome::SomeFailed);
                }
                TurnEnd::Interrupted => {
                    let seconds = AFTER_INTERRUPT.as_secs();
                    output::eprint(&format!("turns in the background have {seconds} s to end; Ctrl-C again leaves\n"));
                    return Ok(Outcome::Interrupted);
                }
                TurnEnd::Drained(notice) => {
                    if let Some(Ok(Some(notice))) = notice {
                        self.print_background(&notice)?;
                    }
                    return Ok(Outcome::Done);
                }
            };
            if matches!(self.print_background(&notice)?, Flow::Stop) {
                return Ok(self.outcome());
            }
        }
    }

    async fn reload(&mut self, request: Option<ReloadRequest>) {
        let outcome = self.reloader.reload(request).await;
        output::eprint_styled(&describe(outcome, &self.conversation.instance.id().agent, Styled::new(false)));
    }

    /// Runs a turn, and goes on with it where it waits for a decision that can be taken without a person.
    async fn turn(&mut self, mut work: Work) -> Result<Flow> {
        loop {
            match self.run_turn(work).await? {
                Ran::Done(flow) => return Ok(flow),
                Ran::Decided(decisions) => work = Work::Decide(decisions),
            }
        }
    }

    /// Returns the decisions about a turn that waits, if they can be taken without a person.
    // ASK-04
    fn decisions(&self, result: &Result<TurnResult>) -> Option<Vec<Decision>> {
        let turn = result.as_ref().ok().filter(|turn| !turn.waits().is_empty())?;
        // A program decides itself, unless it says how.
        if self.args.json && self.args.unanswered.is_none() {
            return None;
        }
        let questions = turn.waits().iter().flat_map(|wait| wait.questions.iter().map(move |asked| (wait, asked)));
        let decision = |(wait, asked): (&Wait, &AskedQuestion)| {
            let call = wait.call.clone();
            let decision = match (&asked.question.unanswered, self.args.unanswered) {
                (Unanswered::Value(value), _) => Decision::new(call, value.clone()),
                (Unanswered::Reject, _) | (_, Some(UnansweredArg::Reject)) => Decision::reject(call, NO_PERSON),
                _ => return None,
            };
            Some(decision.of(asked.by.clone()))
        };
        questions.map(decision).collect::<Option<_>>().map(Decision::needed)
    }

    async fn run_turn(&mut self, work: Work) -> Result<Ran> {
        let Self { conversation, args, signals, reloader, shown, shown_lines, lines, .. } = self;
        let instance = &conversation.instance;
        let event = work.event(instance).await?;
        let cancelled = cancel(instance, event.as_ref());
        let turn = async {
            if args.stream {
                let turn = work.stream(instance);
                let turn = if args.children { turn.with_children() } else { turn };
                return signals.run_turn(answer::stream(turn), args.grace(), cancelled).await;
            }
            match work {
                Work::Event(event) => signals.run_turn(instance.run(*event), args.grace(), cancelled).await,
                Work::Decide(decisions) => signals.run_turn(instance.decide(decisions), args.grace(), cancelled).await,
            }
        };
        let own = &instance.id().agent;
        let report = |outcome| output::eprint_styled(&describe(outcome, own, Styled::new(false)));
        let turn = reloader.while_running(turn, report);
        let live = async {
            match lines {
                Some(lines) => lines.serve().await,
                None => pending().await,
            }
        };
        let end = match race(turn, race(shown_lines.print(shown), live)).await {
            Either::Left(end) => end,
            Either::Right(Either::Left(never) | Either::Right(never)) => match never {},
        };
        shown_lines.print_rest(shown, None, &Styled::new(false)).await;
        if end.is_cut_short() {
            cancel(instance, event.as_ref()).await?;
        }
        match end {
            TurnEnd::Completed(result) => match self.decisions(&result) {
                Some(decisions) => Ok(Ran::Decided(decisions)),
                None => self.print(&result).map(Ran::Done),
            },
            TurnEnd::Interrupted => Ok(Ran::Done(Flow::Exit(Outcome::Interrupted))),
            TurnEnd::Drained(result) => {
                if let Some(result) = result {
                    self.print(&result)?;
                }
                Ok(Ran::Done(Flow::Exit(Outcome::Done)))
            }
        }
    }

    fn print(&mut self, result: &Result<TurnResult>) -> Result<Flow> {
        if let Err(error) = result {
            self.failed = true;
            output::report(error);
        }
        self.waits = result.as_ref().is_ok_and(|turn| turn.finish_reason() == FinishReason::Suspended);
        flow(answer::print(result, self.format(), None))
    }

    /// Prints a background turn. Text that is not data for programs goes to standard error.
    fn print_background(&mut self, notice: &BackgroundUpdate) -> Result<Flow> {
        if !self.args.json || matches!(notice, BackgroundUpdate::Missed(_)) {
            output::eprint(&(heading(notice, self.conversation.instance.id()) + "\n"));
        }
        let BackgroundUpdate::Ended(turn) = notice else { return Ok(Flow::Continue) };
        self.failed |= turn.outcome.is_err();
        flow(answer::print(&turn.outcome, self.format(), Some(turn)))
    }

    fn format(&self) -> AnswerFormat {
        match (self.args.json, self.args.stream) {
            (_, true) => AnswerFormat::Stream,
            (true, false) => AnswerFormat::Json,
            (false, false) => AnswerFormat::Text,
        }
    }

    fn outcome(&self) -> Outcome {
        match (self.failed || self.lines.as_ref().is_some_and(|lines| lines.failed), self.waits) {
            (true, _) => Outcome::SomeFailed,
            (false, true) => Outcome::Suspended,
            (false, false) => Outcome::Done,
        }
    }
}

/// The form of a line that decides.
const DECIDE_LINE: &str = r#"write {"decide": {"call": "…"}}, with "value", "args" or "reject""#;

/// Returns the turn for a line of the input: of a program, which reads JSON, a line may be a decision.
// ASK-04
fn line_work(line: &str, is_program: bool) -> serde_json::Result<Work> {
    if let (true, Some(decide)) = (is_program, decide_line(line)) {
        return Ok(Work::Decide(vec![decide?.into_decision().by(principal())]));
    }
    Ok(Work::Event(Box::new(line.trim_end_matches(['\n', '\r']).into())))
}

async fn next_line(lines: &mut Option<InputLines>) -> Option<io::Result<Line>> {
    match lines {
        Some(lines) => lines.next().await,
        None => None,
    }
}

fn flow(printed: io::Result<()>) -> Result<Flow> {
    match printed {
        Ok(()) => Ok(Flow::Continue),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Flow::Stop),
        Err(error) => Err(error.into()),
    }
}
