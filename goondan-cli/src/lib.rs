//! The `goondan` command, as a library: a project that has extensions of its own links them into its own binary.
//!
//! ```no_run
//! // use weather as _;  — the crate with the extension
//! fn main() -> std::process::ExitCode {
//!     goondan_cli::main()
//! }
//! ```
//!
//! # Layout
//! `args`: what the user asks for · `log`: what is told beside the answers · `run`: the conversation · `answer`: what a
//! turn prints · `check`: what is wrong with a bundle, and `schema`: what a right one looks like · `faults`: how that is told, and `excerpt`: the same beside the lines that are meant ·
//! `panics`: what a panic prints · `order`: who wraps
//! whom · `instance` and `cost`: what is stored, and what turns cost · `new`: a crate for an extension · `plugin`: the
//! extensions of this program and of libraries · `shell`: completions and manual pages.

mod answer;
mod args;
mod check;
mod cost;
mod excerpt;
mod faults;
mod instance;
mod log;
mod new;
mod order;
mod panics;
mod plugin;
mod run;
mod schema;
mod shell;

use std::env;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::Parser;
use goondan::{Error, Result};

// The extensions that every `goondan` has. Nothing else names these crates, and the linker would leave them out.
use logging as _;
use message_window as _;
use validate as _;

use args::{Args, Command, Instance, New, Plugin};

/// The work failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;
/// Ctrl-C ended the work; as shells count it, 128 and the number of the signal.
const INTERRUPTED: u8 = 130;

/// Runs the command that the program's arguments name. Exit codes: 0 done, 1 the work failed, 2 usage or configuration,
/// 130 interrupted.
pub fn main() -> ExitCode {
    let Args { log, command } = Args::parse();
    panics::hide_secrets();
    match log::to_stderr(&log).and_then(|()| run(command)) {
        Ok(run::Outcome::Done) => ExitCode::SUCCESS,
        Ok(run::Outcome::SomeFailed) => ExitCode::from(FAILED),
        Ok(run::Outcome::Misconfigured) => ExitCode::from(USAGE),
        Ok(run::Outcome::Interrupted) => ExitCode::from(INTERRUPTED),
        Err(error) => {
            report(&error);
            ExitCode::from(if error.code().is_configuration() { USAGE } else { FAILED })
        }
    }
}

fn run(command: Command) -> Result<run::Outcome> {
    match command {
        Command::Run(args) => return run::run(&args),
        Command::Check(args) => return check::check(&args),
        Command::Order(args) => return order::order(&args),
        Command::Schema(args) => schema::schema(&args)?,
        Command::Instance(args) => match args.what {
            Instance::List(args) => instance::list(&args)?,
            Instance::Show(args) => instance::show(&args)?,
            Instance::Delete(args) => instance::delete(&args)?,
            Instance::Repair(args) => return instance::repair(&args),
            Instance::Export(args) => instance::export(&args)?,
            Instance::Import(args) => instance::import(&args)?,
        },
        Command::New(args) => match args.what {
            New::Extension(args) => new::extension(&args)?,
        },
        Command::Plugin(args) => match args.what {
            Plugin::List(args) => plugin::list(&args)?,
            Plugin::Inspect(args) => plugin::inspect(&args)?,
            Plugin::Pack(args) => plugin::pack(&args)?,
            Plugin::Describe(args) => plugin::describe(&args)?,
        },
        Command::Completions(args) => shell::completions(&args)?,
        Command::Man(args) => shell::manual(&args)?,
    }
    Ok(run::Outcome::Done)
}

fn report(error: &Error) {
    say(&format!("error: {}\n", error.report()));
}

/// Says something that was not asked for. Where that cannot be said nobody wants to know.
fn say(text: &str) {
    _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Whether people look at `stream` and did not refuse colours, as <https://no-color.org> says.
fn in_colour(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && env::var_os("NO_COLOR").is_none_or(|refused| refused.is_empty())
}

/// Prints what was asked for. A reader of standard output that goes away has read enough.
fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
