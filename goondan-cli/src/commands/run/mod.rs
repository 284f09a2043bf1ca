//! Owns `goondan run`: from the bundle to the instance, and from input events to printed answers.

mod lines;
mod opened;
mod race;
mod repl;
mod signals;
mod watch;

use std::io::{self, IsTerminal};

use goondan::Result;

use crate::args::RunArgs;
use crate::outcome::Outcome;
use lines::Lines;
use opened::Opened;
use repl::Repl;
use repl::terminal::Terminal;
use signals::Signals;
use watch::Watch;

pub(crate) fn run(args: &RunArgs) -> Result<Outcome> {
    // One conversation needs one thread: turns are driven where their events are read.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcome = runtime.block_on(converse(args));
    // Whoever was cancelled is not waited for.
    runtime.shutdown_background();
    outcome
}

async fn converse(args: &RunArgs) -> Result<Outcome> {
    let mut opened = match Opened::open(args).await {
        Ok(opened) => opened,
        Err(refusal) => return refusal.outcome(args.json),
    };
    let watch = if args.watch { Watch::start(opened.files())? } else { Watch::nothing() };
    let outcome = match &args.input {
        Some(input) => Lines::new(&mut opened, args, Signals::watch(|| ())?, watch).one(input).await,
        None if is_conversation(args) => {
            let terminal = Terminal::of_process();
            let kept = terminal.clone();
            let signals = Signals::watch(move || kept.restore())?;
            let outcome = Repl::new(&mut opened, args, terminal.clone(), signals, watch)?.talk().await;
            terminal.restore();
            outcome
        }
        None => Lines::new(&mut opened, args, Signals::watch(|| ())?, watch).all().await,
    };
    // Also when a turn failed, or was cancelled: closing stores it.
    let closed = opened.close().await;
    let outcome = outcome?;
    closed.map(|()| outcome)
}

/// Whether somebody sits at both ends. JSON is for programs.
fn is_conversation(args: &RunArgs) -> bool {
    !args.json && io::stdin().is_terminal() && io::stdout().is_terminal()
}
