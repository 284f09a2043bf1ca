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
//! - `log`: the log on standard error, and the text of panics.
//! - `memory`: keeps the keys in the memory of the process from other processes.
//! - `commands`: one module for each subcommand.
//!   - `run`: holds a conversation, on a terminal or non-interactively. `goondan-host` keeps its bundle running.
//!   - `check`, `order`, `schema`: the mistakes in a bundle, the order of its layers, the JSON Schema of bundles.
//!   - `capabilities`, `trust`: the abilities of a bundle, and the agreement to them.
//!   - `instance`: stored conversations.
//!   - `changeset`: the changes that agents make or propose.
//!   - `new`: a crate for a new extension.
//!   - `explain`: the help pages of error codes.
//!   - `plugin`: the extensions of this program and of libraries.
//!   - `shell`: completions and manual pages.
//! - `output`: how answers, diagnostics, messages and costs are printed, and the one way to the terminal.
//! - `outcome`: how a command ended, and the exit code for it.
#![cfg_attr(docsrs, feature(doc_cfg))]
// MASK-01: `output` is the one way to a terminal; see also clippy.toml.
#![deny(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods)]

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod args;
mod commands;
mod log;
mod memory;
mod outcome;
mod output;
mod private_file;

use std::borrow::Cow;
use std::process::ExitCode;

use clap::Parser;

// The extensions of this command, each a feature. Nothing else names these crates, and the linker would leave them out.
#[cfg(feature = "approval")]
use approval as _;
#[cfg(feature = "ask")]
use ask as _;
#[cfg(feature = "bash")]
use bash as _;
#[cfg(feature = "basics")]
use basics as _;
#[cfg(feature = "changesets")]
use changesets as _;
#[cfg(feature = "file-system")]
use file_system as _;
#[cfg(feature = "models")]
use goondan_models as _;
#[cfg(feature = "http-fetch")]
use http_fetch as _;
#[cfg(feature = "logging")]
use logging as _;
#[cfg(feature = "mcp")]
use mcp as _;
#[cfg(feature = "message-compaction")]
use message_compaction as _;
#[cfg(feature = "message-window")]
use message_window as _;
#[cfg(feature = "oauth")]
use oauth as _;
#[cfg(feature = "plan")]
use plan as _;
#[cfg(feature = "redact")]
use redact as _;
#[cfg(feature = "retry")]
use retry as _;
#[cfg(feature = "shared")]
use shared as _;
#[cfg(feature = "skills")]
use skills as _;
#[cfg(feature = "tool-output")]
use tool_output as _;
#[cfg(feature = "tool-search")]
use tool_search as _;
#[cfg(feature = "validate")]
use validate as _;

use args::Args;

/// Runs the command that the program's arguments name.
///
/// Exit codes: 0 done, 1 the work failed, 2 the command line or the configuration is wrong, 3 a turn waits for a
/// decision, 130 interrupted.
pub fn main() -> ExitCode {
    // Before any key is read, and before anything that can fail.
    let unprotected = memory::protect();
    let Args { log, command } = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => return refuse(&error),
    };
    log::install_panic_hook();
    let logged = log::init(&log);
    unprotected.iter().for_each(|why| tracing::warn!("{why}"));
    match logged.and_then(|()| commands::execute(command)) {
        Ok(outcome) => outcome.into(),
        Err(error) => {
            output::report(&error);
            outcome::exit_code(&error)
        }
    }
}

/// Prints a mistake in the command line, or the help or version that it asks for, and returns the exit code.
fn refuse(error: &clap::Error) -> ExitCode {
    // clap colours its pages, but does not clean the arguments that it quotes.
    if std::env::args_os().all(|arg| matches!(output::clean(&arg.to_string_lossy()), Cow::Borrowed(_))) {
        error.exit();
    }
    output::eprint(&error.render().to_string());
    outcome::Outcome::Misconfigured.into()
}
