//! The log of a program: a layer of `tracing` that writes lines without secrets.
//!
//! What extensions, models and the runtime log are events of `tracing`. Their values are as they are: a subscriber that
//! prints them also prints a key that a provider has quoted in its refusal. The layer of this module masks each line
//! when it is written, as the command `goondan` does. It needs the feature `log`.
//!
//! ```
//! use tracing_subscriber::filter::LevelFilter;
//! use tracing_subscriber::prelude::*;
//!
//! let lines = goondan::log::layer().with_filter(LevelFilter::INFO);
//! tracing_subscriber::registry().with(lines).init();
//!
//! let key = goondan::Secret::new("sk-0123456789");
//! tracing::warn!("refused: {}", key.expose()); // … WARN …: refused: ***
//! ```
//!
//! A text is masked as long as its [`Secret`](crate::Secret) exists. Other layers of the same registry see the values
//! as they are; [`secret::mask`](crate::secret::mask) masks a text for them.

use std::io;

use tracing::Subscriber;
use tracing_subscriber::Layer;
use tracing_subscriber::fmt::{self, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

/// Returns a layer that writes lines to standard error, without secrets.
pub fn layer<S>() -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'span> LookupSpan<'span>,
{
    writing_to(io::stderr)
}

/// Returns a layer that writes lines by these writers, without secrets. Each line is one `write`.
pub fn writing_to<S, W>(writers: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'span> LookupSpan<'span>,
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    fmt::layer().with_ansi(false).with_writer(Masking(writers))
}

/// Makes writers of lines without secrets.
struct Masking<W>(W);

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Masking<W> {
    type Writer = MaskedLines<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        MaskedLines(self.0.make_writer())
    }

    fn make_writer_for(&'a self, metadata: &tracing::Metadata<'_>) -> Self::Writer {
        MaskedLines(self.0.make_writer_for(metadata))
    }
}

/// Writes whole lines. The layer makes one for each event.
struct MaskedLines<W>(W);

impl<W: io::Write> io::Write for MaskedLines<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.write_all(crate::secret::mask(&String::from_utf8_lossy(line)).as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
