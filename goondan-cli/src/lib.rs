//! The `goondan` command, as a library: a project with its own extensions links them into its own binary.
//!
//! ```no_run
//! // use weather as _;  — the crate with the extension
//! fn main() -> std::process::ExitCode {
//!     goondan_cli::main()
//! }
//! ```
//!
//! # Layout
//!
//! In the order of the data:
//!
//! - `args`: the command line and its help texts.
//! - `log`: the log on standard error, and what a panic prints.
//! - `commands`: one module for each subcommand.
//!   - `run`: holds a conversation, on a terminal or non-interactively.
//!   - `check`, `order`, `schema`: the mistakes in a bundle, the order of its layers, the JSON Schema of bundles.
//!   - `instance`: stored conversations.
//!   - `new`: a crate for a new extension.
//!   - `plugin`: the extensions of this program and of libraries.
//!   - `shell`: completions and manual pages.
//! - `output`: how answers, diagnostics, messages and costs are printed.
//! - `outcome`: how a command ended, and the exit code for it.

mod args;
mod commands;
mod log;
mod outcome;
mod output;

use std::process::ExitCode;

use clap::Parser;

// The extensions that every `goondan` has. Nothing else names these crates, and the linker would leave them out.
use logging as _;
use message_window as _;
use validate as _;

use args::Args;

/// Runs the command that the program's arguments name.
///
/// Exit codes: 0 done, 1 the work failed, 2 the command line or the configuration is wrong, 130 interrupted.
pub fn main() -> ExitCode {
    let Args { log, command } = Args::parse();
    log::mask_secrets_in_panics();
    match log::init(&log).and_then(|()| commands::execute(command)) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::report(&error);
            outcome::exit_code(&error)
        }
    }
}
