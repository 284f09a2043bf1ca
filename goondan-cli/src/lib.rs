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
//! `args`: what the user asks for · `run`: the conversation · `answer`: what a turn prints.

mod answer;
mod args;
mod run;

use std::process::ExitCode;

use clap::Parser;
use goondan::Error;

// The extensions that every `goondan` has. Nothing else names these crates, and the linker would leave them out.
use message_window as _;

use args::{Args, Command};

/// The work failed.
const FAILED: u8 = 1;
/// The command line or the configuration is wrong.
const USAGE: u8 = 2;

/// Runs the command that the program's arguments name. Exit codes: 0 done, 1 the work failed, 2 usage or configuration.
pub fn main() -> ExitCode {
    let Args { command } = Args::parse();
    log_to_stderr();
    let Command::Run(arguments) = command;
    match run::run(&arguments) {
        Ok(run::Outcome::Done) => ExitCode::SUCCESS,
        Ok(run::Outcome::SomeFailed) => ExitCode::from(FAILED),
        Err(error) => {
            report(&error);
            ExitCode::from(if error.code().is_configuration() { USAGE } else { FAILED })
        }
    }
}

/// Warnings of extensions and of the runtime; answers go to standard output.
fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .init();
}

fn report(error: &Error) {
    eprintln!("error: {}", error.report());
}
