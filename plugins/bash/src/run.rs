//! Runs a program, and answers with what it wrote and how it ended.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::Stdio;
use std::time::{Duration, Instant};

use goondan::tool::ToolContext;
use goondan::{Error, Result};
use goondan_text::NumberedFile;
use nix::sys::signal::Signal;
use process::{Output, Process};
use serde::Serialize;
use tokio::process::Command;
use tokio::time::timeout;

/// How long a program that ran for too long has to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// How long the rest of the output is waited for when a program has ended. Only a process that left its group, as
/// daemons do, can hold the output open for longer.
const REST: Duration = Duration::from_millis(500);
/// The most characters of a line that are told as progress.
const LINE: usize = 200;

/// How much a program may use.
pub(crate) struct Limits {
    pub(crate) timeout: Duration,
    /// Of its standard output and of its standard error, each.
    pub(crate) bytes: usize,
}

/// What a program wrote, and how it ended.
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

/// Runs a program to its end, or for as long as it may run. Dropping the future kills it with all that it has started.
///
/// # Errors
/// When it cannot be started, or the system cannot tell how it ended.
pub(crate) async fn run(
    ctx: &ToolContext<'_>,
    mut command: Command,
    directory: &Path,
    limits: &Limits,
) -> Result<Ended> {
    if !directory.is_dir() {
        let message = format!("the directory {} does not exist", directory.display());
        return Err(Error::msg(message).suggest("create it, or leave `cwd` out"));
    }
    let files = ctx.workdir()?;
    let [mut stdout, mut stderr] = ["stdout", "stderr"]
        .map(|name| Output::new(limits.bytes, NumberedFile::new(files, ["bash", ctx.call_id().as_str(), name], "txt")));
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::spawn(command).await?;
    let pipes = process.stdout().zip(process.stderr());
    let (out, err) = pipes.ok_or_else(|| Error::msg("the program has no pipes"))?;

    let tell = |piece: &[u8]| {
        if let Some(line) = last_line(piece) {
            ctx.progress(started.elapsed().as_secs_f64(), Some(limits.timeout.as_secs_f64()), &line);
        }
    };
    let (status, timed_out) = {
        let mut reading = pin!(async { tokio::join!(stdout.read(out, tell), stderr.read(err, tell)) });
        let mut ending = pin!(async {
            match timeout(limits.timeout, process.wait()).await {
                Ok(status) => status.map(|status| (status, false)),
                // What it writes while it ends is read as well.
                Err(_) => process.terminate(GRACE).await.map(|status| (status, true)),
            }
        });
        tokio::select! {
            ended = &mut ending => {
                let _ = timeout(REST, reading).await;
                ended?
            }
            _ = &mut reading => ending.await?,
        }
    };
    Ok(Ended {
        exit_code: status.code(),
        signal: status.signal().and_then(|number| Signal::try_from(number).ok()).map(Signal::as_str),
        timed_out,
        duration_ms: started.elapsed().as_millis().try_into()?,
        cwd: directory.to_owned(),
        stdout: stdout.text(),
        stderr: stderr.text(),
        stdout_file: stdout.file().map(Path::to_owned),
        stderr_file: stderr.file().map(Path::to_owned),
    })
}

/// Returns the last line of `piece` that is not blank, for a person who watches.
fn last_line(piece: &[u8]) -> Option<String> {
    let line = piece.rsplit(|byte| matches!(byte, b'\n' | b'\r')).find(|line| !line.trim_ascii().is_empty())?;
    Some(String::from_utf8_lossy(line).trim().chars().take(LINE).collect())
}
