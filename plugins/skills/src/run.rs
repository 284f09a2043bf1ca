//! A command in the directory of a skill.

use std::future::pending;
use std::path::Path;
use std::pin::pin;
use std::process::Stdio;
use std::time::Duration;

use goondan::{Error, Result};
use process::Process;
use tokio::io::{AsyncRead, AsyncReadExt, copy, sink};
use tokio::process::Command;
use tokio::time::timeout;

/// The characters of each output that are kept.
const LONGEST: usize = 50_000;
/// How long the rest of the output is waited for when the shell has ended.
const REST: Duration = Duration::from_millis(500);

/// What a command has left.
pub(crate) struct Ended {
    /// Its exit code; 128 and the signal, if one has ended it.
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Runs `command` in a shell, with `args` as its last arguments, and ends everything that it has started.
///
/// # Errors
/// `E_SKILLS_RUN` when it cannot be started, and `E_SKILLS_TIMEOUT` when it takes longer than `limit`.
pub(crate) async fn run(dir: &Path, command: &str, args: &[String], limit: Duration) -> Result<Ended> {
    let cannot = |why: String| {
        Error::new("E_SKILLS_RUN", format!("`{command}` cannot be run: {why}"))
            .suggest("check the command, and that the program is there and can be executed")
    };
    let script = if args.is_empty() { command.to_owned() } else { format!("{command} \"$@\"") };
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(script).arg("sh").args(args).current_dir(dir);
    shell.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = Process::spawn(shell).await.map_err(|error| cannot(error.to_string()))?;

    let (mut stdout, mut stderr) = (Vec::new(), Vec::new());
    let pipes = (shell.stdout(), shell.stderr());
    let mut is_read = false;
    let ended = {
        let mut reading = pin!(async { tokio::join!(read(pipes.0, &mut stdout), read(pipes.1, &mut stderr)) });
        let ended = tokio::select! {
            ended = timeout(limit, shell.wait()) => ended,
            never = async { reading.as_mut().await; is_read = true; pending().await } => never,
        };
        if ended.is_err() {
            // Kills it, with what it has started.
            drop(shell);
        }
        if !is_read {
            // A process that has left the group of the shell may hold the pipes open.
            let _ = timeout(REST, reading).await;
        }
        ended
    };
    let (stdout, stderr) = (text(&stdout), text(&stderr));
    match ended {
        Ok(status) => match code(status?) {
            // The shell's way to say that a program is not there, or cannot be executed.
            code @ (126 | 127) => Err(cannot(format!("the shell says {code}: {stderr}"))),
            code => Ok(Ended { code, stdout, stderr }),
        },
        Err(_) => {
            let message = format!("`{command}` took longer than {limit:?}, and was ended");
            let output = format!("it has written: {stdout}\nand to its standard error: {stderr}");
            Err(Error::new("E_SKILLS_TIMEOUT", format!("{message}; {output}")).suggest("give it a longer `timeout`"))
        }
    }
}

fn code(status: std::process::ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default())
}

/// Reads to the end, and keeps the beginning.
async fn read(pipe: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut pipe) = pipe else { return };
    // No character has more than four bytes.
    while kept.len() <= 4 * LONGEST && matches!(pipe.read_buf(kept).await, Ok(1..)) {}
    // A command stops at a full pipe.
    let _ = copy(&mut pipe, &mut sink()).await;
}

fn text(output: &[u8]) -> String {
    let text = String::from_utf8_lossy(output);
    let text = text.trim();
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}\n[cut after {LONGEST} characters]", &text[..end]),
        None => text.to_owned(),
    }
}
