//! `goondan run`: holds a conversation with an agent of a bundle.

mod background;
mod batch;
mod conversation;
mod files;
mod input_lines;
mod reload;
mod repl;
mod signals;

use std::io::{self, IsTerminal};

use goondan::agent::TurnStream;
use goondan::conversation::FilePart;
use goondan::decision::Decision;
use goondan::event::{AgentEvent, Principal};
use goondan::host::Drained;
use goondan::name::EventId;
use goondan::{Error, ErrorCode, Instance, Result};

use crate::args::RunArgs;
use crate::outcome::Outcome;
use crate::output::{self, Stream, diagnostics};
use batch::Batch;
use conversation::OpenConversation;
use repl::{Repl, Terminal};
use signals::AFTER_INTERRUPT;
pub(super) use signals::Signals;

pub(crate) fn run(args: &RunArgs) -> Result<Outcome> {
    if args.input.as_ref().is_some_and(|input| input.trim().is_empty()) {
        return Err(Error::new(ErrorCode::USAGE, "the text of `--input` is empty")
            .suggest("pass a text, or leave out `--input` to read standard input"));
    }
    let files = args.files.iter().map(|path| files::read(path)).collect::<Result<_>>()?;
    // One conversation needs one thread: its turns run in the task that reads its input.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(converse(args, files));
    // A blocking tool of a cancelled turn may still run. Do not wait for it.
    runtime.shutdown_background();
    outcome
}

async fn converse(args: &RunArgs, files: Vec<FilePart>) -> Result<Outcome> {
    // Each part is boxed: futures are as large as their largest part, and are moved.
    let mut conversation = match Box::pin(OpenConversation::open(args)).await {
        Ok(conversation) => conversation,
        Err(error) => return diagnostics::refused(error, args.json),
    };
    let host = conversation.host.clone();
    let reloader = if args.watch { host.watch()? } else { host.reloader() };
    let outcome = match &args.input {
        Some(input) => {
            let event = files::event(input, files);
            let batch = Batch::new(&mut conversation, args, Signals::listen(|| ())?, reloader)?;
            Box::pin(batch.run_one(event)).await
        }
        None if !args.decisions.is_empty() => {
            let batch = Batch::new(&mut conversation, args, Signals::listen(|| ())?, reloader)?;
            Box::pin(batch.decide(args.decisions.clone())).await
        }
        None if is_interactive(args) => {
            let terminal = Terminal::of_process();
            let shared = terminal.clone();
            let signals = Signals::listen(move || shared.restore())?;
            let _quiet = terminal.quiet();
            let repl = Repl::new(&mut conversation, args, terminal, signals, reloader)?;
            Box::pin(repl.run()).await
        }
        None => {
            let batch = Batch::new(&mut conversation, args, Signals::listen(|| ())?, reloader)?;
            Box::pin(batch.run_lines()).await
        }
    };
    // Also after an error or a cancelled turn: closing commits the events that the turn left. It waits for background
    // turns.
    let limit = if matches!(outcome, Ok(Outcome::Interrupted)) { AFTER_INTERRUPT } else { args.grace() };
    let drained = host.drain(limit).await;
    let outcome = outcome?;
    if drained? == Drained::TimedOut {
        output::eprint("turns in the background were cancelled\n");
    }
    Ok(outcome)
}

/// A turn that is to run.
enum Work {
    Event(Box<AgentEvent>),
    /// The turn that waits goes on.
    Decide(Vec<Decision>),
}

impl Work {
    /// Returns the event of the turn.
    async fn event(&self, instance: &Instance) -> Result<Option<EventId>> {
        match self {
            Self::Event(event) => Ok(Some(event.id.clone())),
            Self::Decide(_) => Ok(instance.interrupted().await?.map(|event| event.id)),
        }
    }

    fn stream(self, instance: &Instance) -> TurnStream {
        match self {
            Self::Event(event) => instance.run_stream(*event),
            Self::Decide(decisions) => instance.decide_stream(decisions),
        }
    }
}

/// Cancels the turn of an event, if it is known. Returns whether there was one.
async fn cancel(instance: &Instance, event: Option<&EventId>) -> Result<bool> {
    match event {
        Some(event) => instance.cancel(event).await,
        None => Ok(false),
    }
}

/// Returns who decides: the user of this process.
pub(super) fn principal() -> Principal {
    let name = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    Principal::new("user", name.unwrap_or_else(|| "unknown".to_owned()))
}

/// Whether standard input and output are both terminals. `--json` is never interactive.
fn is_interactive(args: &RunArgs) -> bool {
    !args.json && io::stdin().is_terminal() && Stream::Out.is_terminal()
}
