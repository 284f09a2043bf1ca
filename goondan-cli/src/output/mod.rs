//! The output of commands: answers, diagnostics, messages and costs, and the one way to the terminal.
//!
//! Nothing else in this crate uses standard output or standard error; clippy rejects it (`clippy.toml`). Text for
//! people is cleaned of control characters wherever it goes. Data for programs (`--json`, `export`, the answers of a
//! run without a terminal) is cleaned on a terminal, and written byte by byte elsewhere.

mod above;
pub(crate) mod answer;
mod clean;
pub(crate) mod cost;
pub(crate) mod diagnostics;
mod diff;
mod excerpt;
#[cfg(feature = "highlight")]
mod highlight;
mod markdown;
pub(crate) mod message;
pub(crate) mod rewound;
pub(crate) mod shown;
mod stream;
mod styled;
pub(crate) mod waits;

use std::io;

use goondan::{Error, Result};

pub(crate) use above::{Above, eprint_log};
pub(crate) use clean::{PieceCleaner, clean, first_line};
pub(crate) use markdown::{Markdown, words_of};
pub(crate) use stream::Stream;
pub(crate) use styled::{Span, Style, Styled};

/// Prints `text`, the result of a command for people, to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    unless_closed(Stream::Out.text(text))
}

/// Prints `page`, the result of a command for people, to standard output.
pub(crate) fn print_styled(page: &Styled) -> Result<()> {
    unless_closed(Stream::Out.styled(page))
}

/// Prints `data`, the result of a command for programs, to standard output.
pub(crate) fn print_data(data: impl AsRef<[u8]>) -> Result<()> {
    unless_closed(Stream::Out.data(data.as_ref()))
}

/// A closed pipe is not an error: its reader needs no more.
fn unless_closed(written: io::Result<()>) -> Result<()> {
    match written {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

/// Prints `text` to standard error. A failure to do so is ignored: there is no other place to report it.
pub(crate) fn eprint(text: &str) {
    _ = Stream::Err.text(text);
}

/// Prints `text` to standard error, as [`eprint`] does.
pub(crate) fn eprint_styled(text: &Styled) {
    _ = Stream::Err.styled(text);
}

/// Prints `error` with its code and remedy to standard error.
pub(crate) fn report(error: &Error) {
    eprint(&error_text(error));
}

/// Returns the text that [`report`] prints. Its help line names the command that shows the help page.
pub(crate) fn error_text(error: &Error) -> String {
    format!("error: {}\n", error.report().see(|code| format!("goondan explain {code}")))
}
