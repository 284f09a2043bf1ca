//! The interactive conversation: reads an input, runs a turn or a command, and repeats until the user leaves.

mod asking;
mod canvas;
mod children;
mod command;
mod editor;
mod input_history;
mod keys;
mod live;
mod pages;
mod progress;
mod shown;
mod terminal;
mod turn_view;
mod typed_line;
mod usage;

use std::collections::VecDeque;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;

use goondan::agent::{BackgroundUpdate, EventStream, LiveUpdate, ReloadRequest};
use goondan::conversation::FilePart;
use goondan::event::{AgentEvent, ExtensionShown};
use goondan::host::race::{Either, race};
use goondan::host::{HostReload, OpenError, Reloader};
use goondan::middleware::{FinishReason, TurnResult};
use goondan::store::state_root;
use goondan::tool::Effect;
use goondan::{Error, ErrorCode, Instance, Result};

pub(crate) use terminal::Terminal;

use super::background::heading;
use super::conversation::OpenConversation;
use super::files;
use super::reload::describe_to_person;
use super::signals::{Signal, Signals, TurnEnd};
use super::{Work, cancel};
use crate::args::RunArgs;
use crate::commands::order;
use crate::commands::tools::Tools;
use crate::outcome::Outcome;
use crate::output::rewound;
use crate::output::shown::ShownLines;
use crate::output::waits::{self, Extent};
use crate::output::{self, Above, Style, Styled, first_line};
use canvas::Canvas;
use command::Command;
use editor::{EditorEvent, EditorThread};
use input_history::InputHistory;
use keys::Keys;
use live::Live;
use progress::{Output, Progress};
use turn_view::{Inputs, Steered, TurnView, print};
use typed_line::{Asked, TypedLine};
use usage::Usage;

/// The name of the file with the input history, in the state root.
const INPUT_HISTORY: &str = "input-history.jsonl";

/// An interactive conversation on a terminal.
pub(crate) struct Repl<'a> {
    conversation: &'a mut OpenConversation,
    args: &'a RunArgs,
    terminal: Terminal,
    signals: Signals,
    reloader: Reloader,
    editor: EditorThread,
    /// Whether the last event was Ctrl-C, so that another one leaves.
    interrupted: bool,
    /// The files that go with the next message.
    files: Vec<FilePart>,
    /// Output of the newest tool call.
    last: Option<Output>,
    /// The text that was typed during a turn, and not entered.
    typed: String,
    /// The inputs that were entered during a turn, and are next.
    next: VecDeque<Next>,
    /// The updates that extensions show, also between turns.
    shown: EventStream,
    shown_lines: ShownLines,
    /// Whether calls may wait for a decision that the person is to be asked for.
    asks: bool,
    /// Whether the turn waits for a decision.
    waits: bool,
    /// The questions that tools wait for the answers to.
    live: Live,
}

/// The end of a prompt.
enum Prompted {
    Text(String),
    /// Ctrl-C; the line was discarded.
    Interrupted {
        empty: bool,
    },
    Left(Outcome),
}

/// An input that was entered during a turn.
enum Next {
    /// It was steered into the turn, which had no further step.
    Steered(String, Box<AgentEvent>),
    /// A message or a command.
    Queued(String),
}

impl<'a> Repl<'a> {
    pub(crate) fn new(
        conversation: &'a mut OpenConversation,
        args: &'a RunArgs,
        terminal: Terminal,
        signals: Signals,
        reloader: Reloader,
    ) -> Result<Self> {
        let path = state_root(args.state_root.as_deref())?.join(INPUT_HISTORY);
        let history = InputHistory::load(path.clone()).map_err(|error| {
            Error::new(ErrorCode::IO, format!("cannot read {}", path.display()))
                .suggest("it contains the input history; delete it if it is damaged")
                .caused_by(error)
        })?;
        let editor = EditorThread::start(&terminal, history)?;
        let shown = conversation.instance.events().subscribe(ExtensionShown::NAME)?;
        // Where nothing can be typed during a turn, no question can be answered then.
        let live = match Canvas::new(terminal.clone()).is_drawn() {
            true => Live::new(conversation.host.questions()),
            false => Live::default(),
        };
        Ok(Self {
            conversation,
            args,
            terminal,
            signals,
            reloader,
            editor,
            interrupted: false,
            files: Vec::new(),
            last: None,
            typed: String::new(),
            next: VecDeque::new(),
            shown,
            shown_lines: ShownLines::default(),
            asks: true,
            waits: false,
            live,
        })
    }

    /// Runs until the user leaves or the terminal is closed.
    pub(crate) async fn run(mut self) -> Result<Outcome> {
        match self.run_until_exit().await {
            Ok(outcome) => Ok(outcome),
            Err(error) if is_closed(&error) => Ok(Outcome::Done),
            Err(error) => Err(error),
        }
    }

    async fn run_until_exit(&mut self) -> Result<Outcome> {
        self.greet().await?;
        loop {
            if std::mem::take(&mut self.asks) {
                if let Some(outcome) = self.ask().await? {
                    return Ok(outcome);
                }
                continue;
            }
            // Earlier input stays until the turn does not wait any more.
            let next = if self.waits { None } else { self.next.pop_front() };
            let command = match next {
                Some(Next::Steered(text, event)) => {
                    self.print_entered(&text);
                    if let Some(outcome) = self.turn(Work::Event(event)).await? {
                        return Ok(outcome);
                    }
                    continue;
                }
                Some(Next::Queued(text)) => {
                    self.print_entered(&text);
                    command::parse(&text)
                }
                None => match self.next_command().await? {
                    ControlFlow::Continue(command) => command,
                    ControlFlow::Break(outcome) => return Ok(outcome),
                },
            };
            let exit = match command {
                Command::Say(text) => {
                    let event = files::event(&text, std::mem::take(&mut self.files));
                    self.turn(Work::Event(Box::new(event))).await?
                }
                Command::Continue => match self.conversation.instance.interrupted().await? {
                    Some(event) => self.turn(Work::Event(Box::new(event))).await?,
                    None => {
                        self.print_status("no turn was interrupted");
                        None
                    }
                },
                Command::Decide => {
                    self.asks = true;
                    None
                }
                Command::Quit => Some(Outcome::Done),
                command => {
                    self.execute(command).await?;
                    None
                }
            };
            if let Some(outcome) = exit {
                return Ok(outcome);
            }
        }
    }

    async fn greet(&self) -> Result<()> {
        let (id, directory) = (self.conversation.instance.id(), &self.conversation.directory);
        self.print_status(&format!("{id}, stored in {}", directory.display()));
        self.print_status("/help lists the commands, Ctrl-D leaves");
        if let Some(event) = self.conversation.instance.interrupted().await?
            && self.conversation.instance.waits().await?.is_empty()
        {
            let input = first_line(event.input.as_deref().unwrap_or_default(), 40);
            self.print_status(&format!("interrupted: {input:?}; /continue goes on, another message closes it"));
        }
        Ok(())
    }

    /// Waits for the next input; breaks when the user leaves.
    async fn next_command(&mut self) -> Result<ControlFlow<Outcome, Command>> {
        loop {
            let typed = std::mem::take(&mut self.typed);
            match self.prompt(typed).await? {
                Prompted::Text(text) => {
                    self.interrupted = false;
                    return Ok(ControlFlow::Continue(command::parse(&text)));
                }
                Prompted::Interrupted { empty: true } if self.interrupted => {
                    return Ok(ControlFlow::Break(Outcome::Interrupted));
                }
                Prompted::Interrupted { empty } => {
                    if empty {
                        self.print_status("Ctrl-C again leaves");
                    }
                    self.interrupted = true;
                }
                Prompted::Left(outcome) => return Ok(ControlFlow::Break(outcome)),
            }
        }
    }

    /// Shows the prompt, and waits for an input that begins with `text`.
    async fn prompt(&mut self, text: String) -> Result<Prompted> {
        self.editor.request(text);
        self.prompted().await
    }

    /// Shows the prompt, and waits for an input that is not shown.
    async fn prompt_secret(&mut self) -> Result<Prompted> {
        self.editor.request_secret();
        self.prompted().await
    }

    async fn prompted(&mut self) -> Result<Prompted> {
        let mut log = Above::new();
        loop {
            let background = self.conversation.background.next();
            let next = race(background, race(self.editor.next(), self.signals.next()));
            // A change of files is handled before an input that is ready.
            let next = race(self.reloader.changed(), next);
            let event = match race(race(self.live.next(), race(log.next(), self.shown.next())), next).await {
                Either::Left(Either::Left(update)) => {
                    let styled = self.terminal.styled();
                    let page = match &update {
                        LiveUpdate::Asked(question) => waits::live(styled, question.told(), Extent::Short)
                            .paint(Style::Dim, "  a turn in the background waits: /decide answers it\n"),
                        _ => styled
                            .paint(Style::Dim, "the question of a turn in the background does not wait any more\n"),
                    };
                    self.editor.print_above(&page.wrapped(self.terminal.columns()));
                    continue;
                }
                Either::Left(Either::Right(Either::Left(line))) => {
                    self.editor.print_above(&line);
                    continue;
                }
                Either::Left(Either::Right(Either::Right(event))) => {
                    if let Some(Ok(shown)) = event.map(|event| event.payload()) {
                        let page = self.shown_lines.page(&shown, self.terminal.styled());
                        if !page.as_str().is_empty() {
                            self.editor.print_above(&page);
                        }
                    }
                    continue;
                }
                Either::Right(Either::Left(request)) => {
                    let status = self.reload(request).await;
                    self.editor.print_above(&status);
                    continue;
                }
                Either::Right(Either::Right(Either::Left(notice))) => {
                    let page = self.page(&notice);
                    self.editor.print_above(&page);
                    continue;
                }
                Either::Right(Either::Right(Either::Right(event))) => event,
            };
            return Ok(match event {
                Either::Left(event) => match event? {
                    EditorEvent::Input(text) => Prompted::Text(text),
                    EditorEvent::Interrupted { empty } => Prompted::Interrupted { empty },
                    EditorEvent::End => Prompted::Left(Outcome::Done),
                },
                Either::Right(Signal::Terminate) => Prompted::Left(Outcome::Done),
                // SIGINT from another process, or before the editor put the terminal into raw mode: the editor does
                // not see it.
                Either::Right(Signal::Interrupt) if self.interrupted => Prompted::Left(Outcome::Interrupted),
                Either::Right(Signal::Interrupt) => {
                    self.signals.mark_handled();
                    self.interrupted = true;
                    continue;
                }
            });
        }
    }

    /// Runs a turn. Returns an outcome if the conversation ends with it.
    async fn turn(&mut self, work: Work) -> Result<Option<Outcome>> {
        let instance = &self.conversation.instance;
        let mut progress = Progress::new(self.terminal.clone(), Usage::new(instance.model_info().await?));
        let keys = if progress.canvas.is_drawn() { Some(Keys::start(&self.terminal)?) } else { None };
        progress.typed = keys.is_some().then(|| TypedLine::new(std::mem::take(&mut self.typed)));
        let (files, live) = (std::mem::take(&mut self.files), std::mem::take(&mut self.live));
        let inputs = Inputs::new(Instance::clone(instance), files, keys, live);
        let mut view = TurnView::new(progress, inputs, self.args.reasoning);
        let event = work.event(instance).await?;
        let turn = work.stream(instance).with_children();
        // Printed after the turn, which has the terminal until then.
        let mut reloaded = Vec::new();
        let reload = |outcome| reloaded.push(describe_to_person(outcome, &instance.id().agent, self.terminal.styled()));
        let cancelled = cancel(instance, event.as_ref());
        let turn = self.signals.run_turn(view.watch(turn), self.args.grace(), cancelled);
        let end = self.reloader.while_running(turn, reload).await;
        let is_cancelled = end.is_cut_short() || matches!(end, TurnEnd::Completed(Ok(None)));
        if is_cancelled {
            view.finish()?;
            cancel(instance, event.as_ref()).await?;
        }
        reloaded.iter().for_each(output::eprint_styled);
        let outcome = match end {
            TurnEnd::Completed(result) => {
                match result? {
                    Some(result) => {
                        self.asks |= result.as_ref().is_ok_and(is_suspended);
                        report(result);
                    }
                    None => self.print_status("cancelled"),
                }
                None
            }
            TurnEnd::Interrupted => {
                self.print_status("cancelled");
                self.interrupted = true;
                self.signals.mark_handled();
                None
            }
            TurnEnd::Drained(result) => {
                if let Some(result) = result
                    && let Some(result) = result?
                {
                    report(result);
                }
                Some(Outcome::Done)
            }
        };
        // The view has shown the events of its turn.
        let turn = view.turn.take();
        self.shown_lines.print_rest(&mut self.shown, turn.as_ref(), &self.terminal.styled()).await;
        let (mut progress, mut inputs) = view.into_parts();
        progress.summarize();
        let typed = inputs.take_draft(progress.typed.take());
        self.live = std::mem::take(&mut inputs.live);
        self.live.turn_has_ended();
        self.last = progress.into_last().or(self.last.take());
        self.keep_inputs(typed, inputs, is_cancelled);
        Ok(outcome)
    }

    /// Keeps the input of a turn, entered or only typed: for the next turns, or after one that was cancelled for the
    /// prompt.
    fn keep_inputs(&mut self, typed: Option<TypedLine>, inputs: Inputs, is_cancelled: bool) {
        let Inputs { files, keys, steered, queued, entered, .. } = inputs;
        self.files = files;
        entered.into_iter().for_each(|text| self.editor.remember(text));
        let (Some(mut typed), Some(keys)) = (typed, keys) else { return };
        let steered = steered.into_iter().map(|Steered { text, event, .. }| Next::Steered(text, Box::new(event)));
        let mut next: Vec<_> = steered.chain(queued.into_iter().map(Next::Queued)).collect();
        for key in keys.end() {
            if let Some(Asked::Steer(text) | Asked::Queue(text)) = typed.take(&key) {
                next.push(Next::Queued(text));
            }
        }
        self.typed = typed.into_text();
        if is_cancelled {
            let entered = next.into_iter().map(|(Next::Steered(text, _) | Next::Queued(text))| text);
            let all: Vec<_> =
                entered.chain([std::mem::take(&mut self.typed)]).filter(|text| !text.is_empty()).collect();
            self.typed = all.join("\n");
        } else {
            self.next.extend(next);
        }
    }

    /// Returns the printed form of a background turn.
    fn page(&self, notice: &BackgroundUpdate) -> Styled {
        let heading = heading(notice, self.conversation.instance.id());
        let page = self.terminal.styled().paint(Style::Dim, &heading).text("\n");
        match notice {
            BackgroundUpdate::Ended(turn) => match &turn.outcome {
                Ok(result) => page.text(&result.text()).text("\n"),
                Err(_) => page,
            },
            _ => page,
        }
    }

    /// Reloads, and describes the outcome.
    async fn reload(&mut self, request: Option<ReloadRequest>) -> Styled {
        let outcome = self.reloader.reload(request).await;
        self.describe(outcome)
    }

    /// Reloads with the additions of the last reload.
    async fn accept(&mut self) -> Styled {
        if self.reloader.waiting().is_empty() {
            return self.terminal.styled().paint(Style::Dim, "no reload waits").text("\n");
        }
        let outcome = self.reloader.accept().await;
        self.describe(outcome)
    }

    fn describe(&self, outcome: Result<HostReload, OpenError>) -> Styled {
        describe_to_person(outcome, &self.conversation.instance.id().agent, self.terminal.styled())
    }

    async fn execute(&mut self, command: Command) -> Result<()> {
        let (instance, columns) = (&self.conversation.instance, self.terminal.columns());
        match command {
            Command::File(path) => self.attach(&path),
            Command::Help => print(&pages::wrapped(&command::help(), columns))?,
            Command::Tools => print(&pages::wrapped(&Tools::of(instance).await?.page(), columns))?,
            Command::History => print(&pages::history(instance, columns).await?)?,
            Command::Cost => print(&pages::wrapped(&pages::cost(&self.conversation.store, instance.id())?, columns))?,
            Command::Last => match &self.last {
                Some(Output { text, .. }) => print(&format!("{}\n", text.trim_end()))?,
                None => self.print_status("no tool was called yet"),
            },
            Command::State => print(&pages::state(instance).await?)?,
            Command::Order => print(&pages::wrapped(&order::page(instance).await?, columns))?,
            Command::Undo => self.undo().await?,
            Command::Rules(forget) => self.rules(forget).await?,
            Command::Reload => output::eprint_styled(&self.reload(None).await),
            Command::Accept => output::eprint_styled(&self.accept().await),
            Command::Unknown(word, nearest) => {
                let nearest = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
                self.print_status(&format!(
                    "There is no command {word}.{nearest} /help lists them; `//` begins a message."
                ));
            }
            Command::Nothing | Command::Say(_) | Command::Continue | Command::Decide | Command::Quit => {}
        }
        Ok(())
    }

    /// Takes the last turn back, and puts its input into the prompt.
    async fn undo(&mut self) -> Result<()> {
        let instance = &self.conversation.instance;
        let undone = match instance.undo().await {
            Ok(undone) => undone,
            Err(error) => {
                output::report(&error);
                return Ok(());
            }
        };
        let tools = instance.tools().await?;
        let is_read = |name: &str| tools.get(name).is_some_and(|tool| tool.effect == Effect::Read);
        let page = self.terminal.styled().paint(Style::Dim, &rewound::page(&undone, is_read));
        output::eprint_styled(&page.wrapped(self.terminal.columns()));
        self.typed = rewound::input(&undone).unwrap_or_default();
        Ok(())
    }

    fn attach(&mut self, path: &str) {
        match files::read(Path::new(path)) {
            Ok(file) => {
                let name = file.name.as_deref().unwrap_or(path);
                self.print_status(&format!("{name} ({}) goes with the next message", file.media_type));
                self.files.push(file);
            }
            Err(error) => output::report(&error),
        }
    }

    /// Prints an input that was entered during the turn before.
    fn print_entered(&self, text: &str) {
        let lines = self.terminal.styled().paint(Style::Cyan, "> ").text(&text.replace('\n', "\n  ")).text("\n");
        output::eprint_styled(&lines);
    }

    /// Prints a line that is not part of an answer to standard error.
    fn print_status(&self, status: &str) {
        output::eprint_styled(&self.terminal.styled().paint(Style::Dim, status).text("\n"));
    }
}

fn report(result: Result<TurnResult>) {
    match result {
        // Its questions are asked.
        Ok(turn) if is_suspended(&turn) => {}
        Ok(turn) => output::answer::report_incomplete(&turn),
        Err(error) => output::report(&error),
    }
}

fn is_suspended(turn: &TurnResult) -> bool {
    turn.finish_reason() == FinishReason::Suspended
}

/// Whether `error` means that the terminal was closed.
fn is_closed(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe || terminal::is_closed(io))
}
