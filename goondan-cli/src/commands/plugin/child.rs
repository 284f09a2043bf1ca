//! Runs `goondan plugin describe` as a child process with a deadline, and reads the schemas that it prints.

use std::io::{self, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use goondan::plugin::ExtensionSchemas;
use goondan::{Error, ErrorCode, Result};
use process::Environment;

use super::describe::DescribeReply;

/// The longest accepted reply, in bytes.
const MAX_REPLY: u64 = 16 << 20;
/// The most bytes of the child's standard error that are quoted if it fails.
const MAX_STDERR: u64 = 4 << 10;
/// The longest wait for the end of standard error after the child ended. Its pipes are closed then, unless a grandchild
/// inherited them.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Returns the schemas of the library at `path`, which is loaded in a child process.
///
/// # Errors
/// `E_EXT_LOAD` or `E_EXT_COMPAT`: the library cannot be loaded, its process ended early, or it took longer than
/// `timeout`.
pub(super) fn schemas(path: &Path, timeout: Duration) -> Result<Vec<ExtensionSchemas>> {
    // A library that is only described needs no key.
    let environment = Environment::without_secrets(|| Some(Arc::default()));
    let mut child = environment
        .command(std::env::current_exe()?)
        .args(["plugin", "describe"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let stderr = child.stderr.take().map(|pipe| read(pipe, MAX_STDERR));
    let reply = child.stdout.take().map(|pipe| read(pipe, MAX_REPLY));
    let reply = reply.and_then(|reply| reply.recv_timeout(timeout).ok());
    let status = kill(&mut child)?;
    match reply.as_deref().map(serde_json::from_slice) {
        Some(Ok(DescribeReply::Schemas(schemas))) => Ok(schemas),
        Some(Ok(DescribeReply::Failed { code, message, suggestion })) => {
            Err(Error::new(ErrorCode::from(code), message).suggest(suggestion.unwrap_or_default()))
        }
        Some(Err(_)) => Err(ended_early(path, status, stderr.as_ref())),
        None => Err(timed_out(path, timeout)),
    }
}

/// Kills the child and returns its exit status. It is called when the child has closed its standard output, or at the
/// deadline. If the child is already exiting, its status is the one it exits with.
fn kill(child: &mut Child) -> io::Result<ExitStatus> {
    child.kill()?;
    child.wait()
}

/// Reads `pipe` to its end in a thread, and sends the first `max` bytes. The rest is discarded, so that the child
/// does not block.
fn read(mut pipe: impl Read + Send + 'static, max: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // After a read error, the bytes so far count.
        _ = pipe.by_ref().take(max).read_to_end(&mut bytes);
        _ = io::copy(&mut pipe, &mut io::sink());
        _ = sender.send(bytes);
    });
    receiver
}

fn ended_early(path: &Path, status: ExitStatus, stderr: Option<&Receiver<Vec<u8>>>) -> Error {
    let message =
        format!("the process in which `{}` was loaded ended before it was described: {status}", path.display());
    let error = Error::new(ErrorCode::EXT_LOAD, message).suggest(
        "the library ends its process when it is loaded, or in its schemas: correct it; agents could not use it either",
    );
    let stderr = stderr.and_then(|stderr| stderr.recv_timeout(CLOSE_TIMEOUT).ok()).unwrap_or_default();
    let stderr = String::from_utf8_lossy(&stderr);
    if stderr.trim().is_empty() { error } else { error.caused_by(format!("its standard error: {}", stderr.trim())) }
}

fn timed_out(path: &Path, timeout: Duration) -> Error {
    let message = format!("`{}` was not described within {} s", path.display(), timeout.as_secs());
    Error::new(ErrorCode::EXT_LOAD, message)
        .suggest("the library blocks when it is loaded, or in its schemas; `--deadline` allows it more time")
}
