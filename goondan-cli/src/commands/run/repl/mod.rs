//! Owns the conversation on a terminal: prompt, turn, prompt, until somebody leaves.

mod command;
mod editor;
mod page;
mod progress;
mod recall;
pub(crate) mod terminal;
mod turn;

use std::io::{self, Write};

use goondan::store::state_root;
use goondan::{Error, ErrorCode, Result, TurnResult};
use nix::errno::Errno;

use super::opened::Opened;
use super::race::{First, first};
use super::signals::{Ended, Signal, Signals};
use super::watch::Watch;
use crate::args::RunArgs;
use crate::commands::order;
use crate::outcome::Outcome;
use crate::output;
use command::Wish;
use editor::{Editor, Typed};
use progress::Progress;
use recall::Recall;
use terminal::{Style, Terminal};
use turn::{Shown, print};

/// The file below the state root that keeps what was typed.
const RECALL: &str = "input-history.jsonl";

/// A conversation on a terminal.
pub(crate) struct Repl<'a> {
    opened: &'a mut Opened,
    args: &'a RunArgs,
    terminal: Terminal,
    signals: Signals,
    watch: Watch,
    editor: Editor,
    /// Whether Ctrl-C was the last thing that happened: another one leaves.
    interrupted: bool,
}

/// What the user does next.
enum Next {
    Wish(Wish),
    Leave(Outcome),
}

impl<'a> Repl<'a> {
    pub(crate) fn new(
        opened: &'a mut Opened,
        args: &'a RunArgs,
        terminal: Terminal,
        signals: Signals,
        watch: Watch,
    ) -> Result<Self> {
        let path = state_root(args.state_root.as_deref())?.join(RECALL);
        let recall = Recall::load(path.clone()).map_err(|error| {
            Error::new(ErrorCode::IO, format!("cannot read {}", path.display()))
                .suggest("it keeps what was typed; delete it if it is damaged")
                .caused_by(error)
        })?;
        let editor = Editor::start(&terminal, recall)?;
        Ok(Self { opened, args, terminal, signals, watch, editor, interrupted: false })
    }

    /// Talks until the user leaves. A terminal that goes away has read enough.
    pub(crate) async fn talk(mut self) -> Result<Outcome> {
        match self.until_left().await {
            Ok(outcome) => Ok(outcome),
            Err(error) if is_gone(&error) => Ok(Outcome::Done),
            Err(error) => Err(error),
        }
    }

    async fn until_left(&mut self) -> Result<Outcome> {
        self.greet()?;
        loop {
            let wish = match self.next().await? {
                Next::Wish(wish) => wish,
                Next::Leave(outcome) => return Ok(outcome),
            };
            // Not while the user types: the line would be torn.
            if self.watch.has_changed() {
                self.reload().await;
            }
            let leave = match wish {
                Wish::Say(text) => self.turn(&text).await?,
                Wish::Quit => Some(Outcome::Done),
                command => {
                    self.obey(command).await?;
                    None
                }
            };
            if let Some(outcome) = leave {
                return Ok(outcome);
            }
        }
    }

    fn greet(&self) -> Result<()> {
        let (id, directory) = (self.opened.id()?, self.opened.directory()?);
        self.tell(&format!("{id}, kept in {}", directory.display()));
        self.tell("/help lists the commands, Ctrl-D leaves");
        Ok(())
    }

    /// Waits for what the user does next.
    async fn next(&mut self) -> Result<Next> {
        self.editor.ask();
        loop {
            match first(self.editor.typed(), self.signals.next()).await {
                First::One(typed) => match typed? {
                    Typed::Input(input) => {
                        self.interrupted = false;
                        return Ok(Next::Wish(command::parse(&input)));
                    }
                    Typed::Interrupted { empty: true } if self.interrupted => break,
                    Typed::Interrupted { empty } => {
                        if empty {
                            self.tell("Ctrl-C again leaves");
                        }
                        self.editor.ask();
                    }
                    Typed::End => return Ok(Next::Leave(Outcome::Done)),
                },
                First::Other(Signal::Terminate) => return Ok(Next::Leave(Outcome::Done)),
                // From another process, or just before the editor took the terminal: the editor knows nothing of it.
                First::Other(Signal::Interrupt) if self.interrupted => break,
                First::Other(Signal::Interrupt) => self.signals.carried_out(),
            }
            self.interrupted = true;
        }
        Ok(Next::Leave(Outcome::Interrupted))
    }

    /// Runs a turn. Gives an outcome when the conversation ends with it.
    async fn turn(&mut self, input: &str) -> Result<Option<Outcome>> {
        let mut progress = Progress::new(self.terminal.clone());
        let mut shown = Shown::new(&mut progress);
        let turn = self.opened.instance().run_stream(input);
        let ended = self.signals.over(shown.watch(turn), self.args.grace()).await;
        match ended {
            Ended::ByItself(outcome) => {
                self.answered(outcome?);
                Ok(None)
            }
            Ended::Interrupted => {
                shown.end()?;
                self.tell("cancelled");
                self.interrupted = true;
                self.signals.carried_out();
                Ok(None)
            }
            Ended::Drained(outcome) => {
                match outcome {
                    Some(outcome) => self.answered(outcome?),
                    None => shown.end()?,
                }
                Ok(Some(Outcome::Done))
            }
        }
    }

    fn answered(&self, outcome: Result<TurnResult>) {
        if let Err(error) = outcome {
            output::report(&error);
        }
    }

    async fn reload(&mut self) {
        let terminal = &self.terminal;
        self.opened.reload_and_tell(|text| tell(terminal, text)).await;
        self.watch.watch(self.opened.files());
    }

    async fn obey(&mut self, command: Wish) -> Result<()> {
        let instance = self.opened.instance();
        match command {
            Wish::Help => print(&command::help())?,
            Wish::Tools => print(&page::tools(instance).await?)?,
            Wish::History => print(&page::history(instance).await?)?,
            Wish::State => print(&page::state(instance).await?)?,
            Wish::Order => print(&order::onion(instance).await?)?,
            Wish::Reload => self.reload().await,
            Wish::Unknown(word, nearest) => {
                let meant = nearest.map(|name| format!(" Did you mean {name}?")).unwrap_or_default();
                self.tell(&format!("There is no command {word}.{meant} /help lists them; `//` begins a message."));
            }
            Wish::Nothing | Wish::Say(_) | Wish::Quit => {}
        }
        Ok(())
    }

    /// Says something that is no answer. What cannot be said there is not worth to fail.
    fn tell(&self, text: &str) {
        tell(&self.terminal, text);
    }
}

fn tell(terminal: &Terminal, text: &str) {
    _ = writeln!(io::stderr(), "{}", terminal.paint(Style::Dim, text));
}

/// Whether this says that nobody reads any more.
fn is_gone(error: &Error) -> bool {
    let io = error.source().and_then(|source| source.downcast_ref::<io::Error>());
    io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe || io.raw_os_error() == Some(Errno::EIO as i32))
}
