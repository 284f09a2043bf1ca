//! Standard output and standard error. Everything that the command prints is written here.

use std::env;
use std::io::{self, IsTerminal, Write};

use super::clean::clean;
use super::styled::Styled;

/// One of the two streams of the process.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Stream {
    Out,
    Err,
}

#[expect(clippy::disallowed_methods, reason = "the only use of the streams")]
impl Stream {
    pub(crate) fn is_terminal(self) -> bool {
        match self {
            Self::Out => io::stdout().is_terminal(),
            Self::Err => io::stderr().is_terminal(),
        }
    }

    /// Whether to use colours: the stream is a terminal, and `NO_COLOR` is unset or empty (<https://no-color.org>).
    pub(crate) fn uses_color(self) -> bool {
        self.is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }

    /// Writes text for people, cleaned, whatever the stream is: a terminal may show the file later.
    pub(crate) fn text(self, text: &str) -> io::Result<()> {
        self.write(clean(text).as_bytes())
    }

    /// Writes text for people with the escape sequences of goondan.
    pub(crate) fn styled(self, text: &Styled) -> io::Result<()> {
        self.write(text.as_str().as_bytes())
    }

    /// Writes data for programs: unchanged to a pipe or a file, and cleaned to a terminal.
    pub(crate) fn data(self, data: &[u8]) -> io::Result<()> {
        if self.is_terminal() { self.text(&String::from_utf8_lossy(data)) } else { self.write(data) }
    }

    fn write(self, bytes: &[u8]) -> io::Result<()> {
        fn flushed(mut out: impl Write, bytes: &[u8]) -> io::Result<()> {
            out.write_all(bytes)?;
            out.flush()
        }
        match self {
            Self::Out => flushed(io::stdout().lock(), bytes),
            Self::Err => flushed(io::stderr().lock(), bytes),
        }
    }
}
