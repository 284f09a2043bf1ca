//! What commands print: answers, diagnostics, messages and costs.

pub(crate) mod answer;
pub(crate) mod cost;
pub(crate) mod diagnostics;
mod excerpt;
pub(crate) mod message;

use std::env;
use std::io::{self, IsTerminal, Write};

use goondan::{Error, Result};

/// Prints `text`, the result of a command, to standard output. A closed pipe is not an error: its reader needs no
/// more.
pub(crate) fn print(text: &str) -> Result<()> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints `text` to standard error. A failure to do so is ignored: there is no other place to report it.
pub(crate) fn eprint(text: &str) {
    _ = io::stderr().lock().write_all(text.as_bytes());
}

/// Prints `error` with its code and remedy to standard error.
pub(crate) fn report(error: &Error) {
    eprint(&format!("error: {}\n", error.report()));
}

/// Whether to use colours on `stream`: it is a terminal, and `NO_COLOR` is unset or empty (<https://no-color.org>).
pub(crate) fn use_color(stream: &impl IsTerminal) -> bool {
    stream.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}
