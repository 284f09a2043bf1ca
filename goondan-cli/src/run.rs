//! Owns `goondan run`: from the bundle to the instance, and from input events to printed answers.

use std::io::{self, BufRead, IsTerminal, Write};

use goondan::bundle::AgentResource;
use goondan::store::{Fsync, state_root};
use goondan::{Bundle, Error, ErrorCode, FileStore, Instance, Result};

use crate::answer::{self, Format};
use crate::args::{RunArgs, Sync};

/// How a command ended that did what it was asked for.
pub(crate) enum Outcome {
    /// All is well.
    Done,
    /// At least one turn failed; the others went on.
    SomeFailed,
    /// The bundle that was to be checked has faults.
    Misconfigured,
}

pub(crate) fn run(args: &RunArgs) -> Result<Outcome> {
    let bundle = Bundle::load(&args.bundle)?;
    let entry = agent_of(&bundle, args.agent.as_deref())?;
    let store = FileStore::in_workspace(&state_root(args.state_root.as_deref())?, bundle.workspace_name()?)?;
    let store = store.fsync(args.fsync.map_or_else(|| bundle.fsync(), Fsync::from));
    // One conversation needs one thread: turns are driven where their events are read.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let agents = bundle.build(store).await?;
        let agent = agents.get(entry.name.as_str()).ok_or_else(|| Error::msg("a built bundle has its entry agent"))?;
        let instance = agent.instance(&args.instance).await?;
        let format = if args.json { Format::Json } else { Format::Text };
        let conversation = Conversation { instance: instance.clone(), format, failed: false };
        let outcome = match &args.input {
            Some(input) => conversation.one(input).await,
            None => conversation.lines(io::stdin().lock()).await,
        };
        // LOAD-11: extensions let go of what they hold, also when a turn failed.
        let closed = instance.close().await.and(agents.close().await);
        let outcome = outcome?;
        closed.map(|()| outcome)
    })
}

impl From<Sync> for Fsync {
    fn from(when: Sync) -> Self {
        match when {
            Sync::Turn => Self::Turn,
            Sync::Always => Self::Always,
            Sync::Never => Self::Never,
        }
    }
}

/// The agent that the user means.
pub(crate) fn agent_of<'a>(bundle: &'a Bundle, name: Option<&str>) -> Result<&'a AgentResource> {
    match name {
        Some(name) => bundle.agent(name),
        None => bundle.entry_agent(),
    }
}

struct Conversation {
    instance: Instance,
    format: Format,
    failed: bool,
}

impl Conversation {
    async fn one(mut self, input: &str) -> Result<Outcome> {
        self.turn(input).await?;
        Ok(self.outcome())
    }

    async fn lines(mut self, mut input: impl BufRead) -> Result<Outcome> {
        let prompt = io::stdin().is_terminal() && io::stdout().is_terminal();
        let mut line = Vec::new();
        for number in 1.. {
            if prompt {
                print!("> ");
                io::stdout().flush()?;
            }
            line.clear();
            if input.read_until(b'\n', &mut line)? == 0 {
                break;
            }
            match std::str::from_utf8(&line) {
                Ok(text) if text.trim().is_empty() => {}
                Ok(text) => match self.turn(text.trim_end_matches(['\n', '\r'])).await? {
                    Printed::Yes => {}
                    Printed::NobodyReads => break,
                },
                Err(error) => {
                    self.failed = true;
                    let message = format!("line {number} of standard input is not UTF-8 text");
                    crate::report(
                        &Error::new(ErrorCode::INPUT, message).suggest("convert the input to UTF-8").caused_by(error),
                    );
                }
            }
        }
        Ok(self.outcome())
    }

    async fn turn(&mut self, input: &str) -> Result<Printed> {
        let outcome = self.instance.run(input).await;
        if let Err(error) = &outcome {
            self.failed = true;
            crate::report(error);
        }
        match answer::print(&outcome, self.format) {
            Ok(()) => Ok(Printed::Yes),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(Printed::NobodyReads),
            Err(error) => Err(error.into()),
        }
    }

    fn outcome(&self) -> Outcome {
        if self.failed { Outcome::SomeFailed } else { Outcome::Done }
    }
}

/// Whether an answer reached its reader.
enum Printed {
    Yes,
    NobodyReads,
}
