//! Runs a program, and answers with what it wrote and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use goondan::tool::ToolContext;
use goondan::{Error, Result};
use goondan_text::NumberedFile;
use nix::sys::signal::Signal;
use process::Output;
use serde::Serialize;
use tokio::process::Command;

/// The most characters of a line that are told as progress.
const LINE: usize = 200;

/// The limits of a program.
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    /// Of its standard output and of its standard error, each.
    pub(crate) bytes: usize,
}

/// The output of a program, and its end.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    exit_code: Option<i32>,
    signal: Option<&'static str>,
    timed_out: bool,
    duration_ms: u64,
    cwd: PathBuf,
    stdout: String,
    stderr: String,
    /// The file with all of the standard output, if `stdout` is cut.
    #[serde(skip_serializing_if = "Option::is_none")]
    stdout_file: Option<PathBuf>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stderr_file: Option<PathBuf>,
}

/// Runs a program to its end, or for as long as it may run, and reports the lines that it writes as progress.
///
/// # Errors
/// When it cannot be started, or the system cannot tell how it ended.
pub(crate) async fn run(ctx: &ToolContext<'_>, command: Command, directory: &Path, limits: &Limits) -> Result<Ended> {
    if !directory.is_dir() {
        let message = format!("the directory {} does not exist", directory.display());
        return Err(Error::msg(message).suggest("create it, or leave `cwd` out"));
    }
    let files = ctx.workdir()?;
    let quota = ctx.max_output_bytes();
    let file = |name| NumberedFile::new(files, ["bash", ctx.call_id().as_str(), name], "txt").within(quota);
    let outputs = ["stdout", "stderr"].map(|name| Output::new(limits.bytes, file(name)));
    let started = Instant::now();
    let report = |piece: &[u8]| {
        if let Some(line) = last_line(piece) {
            // How long it takes is not known: the timeout is no total.
            ctx.progress(started.elapsed().as_secs_f64(), None, &line);
        }
    };
    let ended = process::run(command, limits.timeout, outputs, report).await?;
    Ok(Ended {
        exit_code: ended.status.code(),
        signal: ended.status.signal().and_then(|number| Signal::try_from(number).ok()).map(Signal::as_str),
        timed_out: ended.timed_out,
        duration_ms: ended.duration.as_millis().try_into()?,
        cwd: directory.to_owned(),
        stdout: ended.stdout.text(),
        stderr: ended.stderr.text(),
        stdout_file: ended.stdout.file().map(Path::to_owned),
        stderr_file: ended.stderr.file().map(Path::to_owned),
    })
}

/// Returns the last line of `piece` that is not blank, for a person who watches.
fn last_line(piece: &[u8]) -> Option<String> {
    let line = piece.rsplit(|byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.trim_ascii().is_empty())?;
    Some(String::from_utf8_lossy(line).trim().chars().take(LINE).collect())
}
