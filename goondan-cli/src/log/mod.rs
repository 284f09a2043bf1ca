//! The log on standard error: its filter, and its two formats, for people and, in `json`, for programs.

mod fields;
mod json;
mod panics;
mod quiet;
mod text;

use std::env;
use std::io::{self, Write};

use goondan::{Error, ErrorCode, Result};
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::prelude::*;

pub(crate) use panics::install_hook as install_panic_hook;

use crate::args::{LogArgs, LogFormat};
use crate::output::Stream;

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
    let (filter, limit) = (quiet::without_foreign(filter), quiet::Limited::default());
    let registry = tracing_subscriber::registry();
    match args.format {
        LogFormat::Pretty => {
            let lines = text::TextLines { colors: Stream::Err.uses_color() };
            let layer = fmt::layer().with_ansi(false).with_timer(text::TimeOfDay).fmt_fields(text::TextFields);
            registry.with(layer.with_writer(lines)).with(limit).with(filter).init();
        }
        LogFormat::Json => {
            let layer = fmt::layer().with_writer(|| JsonLines);
            registry
                .with(layer.fmt_fields(json::JsonFields).event_format(json::JsonLine))
                .with(limit)
                .with(filter)
                .init();
        }
    }
    Ok(())
}

/// Writes a line for programs to standard error. The formatter has masked the values: masking the finished line could
/// replace digits or braces and break the JSON.
struct JsonLines;

impl Write for JsonLines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        _ = Stream::Err.data(line);
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
