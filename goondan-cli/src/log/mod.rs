//! The log on standard error: its filter, and its two formats, for people and, in `json`, for programs.

mod json;
mod panics;

use std::env;
use std::io::{self, Write};

use goondan::secret::mask;
use goondan::{Error, ErrorCode, Result};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

pub(crate) use panics::mask_secrets as mask_secrets_in_panics;

use crate::args::{LogArgs, LogFormat};
use crate::output;

/// The environment variable with the filter. `goondan::extension=debug,warn` logs extensions at `debug` and everything
/// else at `warn`.
const VARIABLE: &str = "RUST_LOG";

/// The filter without a variable or an option: extensions at `info`, everything else at `warn`.
const DEFAULT: &str = "goondan::extension=info,warn";

/// Installs the global subscriber.
///
/// # Errors
/// [`ErrorCode::USAGE`] if `RUST_LOG` is not a valid filter.
pub(crate) fn init(args: &LogArgs) -> Result<()> {
    let filter = match args.level {
        Some(level) => Targets::new().with_default(LevelFilter::from(level)),
        None => from_environment()?,
    };
    let registry = tracing_subscriber::registry();
    match args.format {
        LogFormat::Pretty => {
            let layer = fmt::layer().with_writer(|| LogWriter { mask: true });
            registry.with(layer.with_ansi(output::use_color(&io::stderr()))).with(filter).init();
        }
        LogFormat::Json => {
            // The formatter masks the values. Masking the finished line could replace digits or braces and break the
            // JSON.
            let layer = fmt::layer().with_writer(|| LogWriter { mask: false });
            registry.with(layer.fmt_fields(json::JsonFields).event_format(json::JsonLine)).with(filter).init();
        }
    }
    Ok(())
}

/// Writes each line of the log to standard error in one call. Write errors are ignored: there is no other place to
/// report them.
struct LogWriter {
    mask: bool,
}

impl Write for LogWriter {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let text = if self.mask { mask(&text) } else { text.as_ref().into() };
        _ = io::stderr().lock().write_all(text.as_bytes());
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn from_environment() -> Result<Targets> {
    let set = env::var_os(VARIABLE).filter(|filter| !filter.is_empty());
    let filter = set.map_or_else(|| DEFAULT.to_owned(), |filter| filter.to_string_lossy().into_owned());
    filter.parse().map_err(|error| {
        Error::new(ErrorCode::USAGE, format!("`{VARIABLE}` is not a filter of log lines"))
            .suggest(format!("write it like `{DEFAULT}`"))
            .caused_by(error)
    })
}
