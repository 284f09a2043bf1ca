//! The command that judges a changeset before it is committed.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use process::{Environment, Process};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::time::timeout;

/// The most bytes of each output that the model reads: its start.
const SHOWN: u64 = 10_000;
/// The longest wait for the rest of the output when the command has ended.
const REST: Duration = Duration::from_millis(500);

/// Runs `command` in `directory`, and returns its output if it failed. `name` is its purpose.
pub(crate) async fn run(
    name: &str,
    command: &[String],
    environment: &Environment,
    directory: &Path,
    seconds: u64,
) -> Result<(), String> {
    let Some((program, arguments)) = command.split_first() else { return Ok(()) };
    let mut check = environment.command(program);
    check.args(arguments).current_dir(directory);
    check.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut check =
        Process::spawn(check.into()).await.map_err(|error| format!("the {name} cannot be started: {error}"))?;
    let printed = tokio::spawn(read(check.stdout()));
    let complained = tokio::spawn(read(check.stderr()));
    let status = match timeout(Duration::from_secs(seconds), check.wait()).await {
        Ok(Ok(status)) if status.success() => return Ok(()),
        Ok(Ok(status)) => status.to_string(),
        Ok(Err(error)) => error.to_string(),
        Err(_) => format!("it took longer than {seconds} s"),
    };
    // Ends its children too, so that its output ends.
    drop(check);
    // A process that has left the group may hold the pipes open.
    let text = async { [printed.await, complained.await].map(Result::unwrap_or_default).concat() };
    let text = timeout(REST, text).await.unwrap_or_default();
    Err(format!("the {name} failed: {status}\n{}", text.trim()))
}

async fn read(output: Option<impl AsyncRead + Unpin>) -> String {
    let Some(mut output) = output else { return String::new() };
    let mut bytes = Vec::new();
    // Output from before an error is shown.
    let _ = (&mut output).take(SHOWN).read_to_end(&mut bytes).await;
    let _ = tokio::io::copy(&mut output, &mut tokio::io::sink()).await;
    String::from_utf8_lossy(&bytes).into_owned()
}
