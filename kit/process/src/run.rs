//! A command that is run to its end.

use std::io;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use tokio::process::Command;
use tokio::time::timeout;

use crate::{Output, Process};

/// The time that a command that ran for too long has to end by itself.
const GRACE: Duration = Duration::from_secs(2);
/// The longest wait for the rest of the output when a command has ended. Only a process that left its group, as daemons
/// do, can hold the output open for longer.
const REST: Duration = Duration::from_millis(500);

/// The output of a command, and its end.
#[derive(Debug)]
#[non_exhaustive]
pub struct Ended {
    /// The exit status.
    pub status: ExitStatus,
    /// Whether the command was ended because it ran for too long.
    pub timed_out: bool,
    /// Its duration.
    pub duration: Duration,
    /// Its standard output.
    pub stdout: Output,
    /// Its standard error.
    pub stderr: Output,
}

/// Runs a command to its end, without input, and reads its standard output and its standard error into `outputs`. Each
/// piece that it writes is passed to `heard`. After `limit` it is sent `SIGTERM`, and killed 2 seconds later. What it
/// started ends with it. Dropping the future kills both.
///
/// # Errors
/// When it cannot be started, or the system cannot tell how it ended.
///
/// # Panics
/// Outside of a tokio runtime with IO and time.
pub async fn run(
    mut command: Command,
    limit: Duration,
    outputs: [Output; 2],
    heard: impl Fn(&[u8]),
) -> io::Result<Ended> {
    let started = Instant::now();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = Process::spawn(command).await?;
    let pipes = process.stdout().zip(process.stderr());
    let (out, err) = pipes.ok_or_else(|| io::Error::other("the command has no pipes"))?;
    let [mut stdout, mut stderr] = outputs;
    let (status, timed_out) = {
        let mut reading = pin!(async { tokio::join!(stdout.read(out, &heard), stderr.read(err, &heard)) });
        let mut ending = pin!(async {
            match timeout(limit, process.wait()).await {
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
    Ok(Ended { status, timed_out, duration: started.elapsed(), stdout, stderr })
}
