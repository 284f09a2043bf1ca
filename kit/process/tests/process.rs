//! Real processes, which ignore what they are asked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use goondan_covers::covers;
use nix::sys::stat::Mode;
use process::Process;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::Command;

/// Long enough that a test fails by it only if something hangs.
const LONG: Duration = Duration::from_secs(60);

/// Tells when all processes that have it open are gone, however they end.
struct Alive {
    _dir: TempDir,
    path: PathBuf,
    reader: pipe::Receiver,
}

impl Alive {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("alive");
        nix::unistd::mkfifo(&path, Mode::S_IRWXU).unwrap();
        let reader = pipe::OpenOptions::new().open_receiver(&path).unwrap();
        Self { _dir: dir, path, reader }
    }

    /// Waits until as many processes as there are bytes in `said` have opened it.
    async fn hear(&mut self, said: &str) {
        let mut heard = vec![0; said.len()];
        self.reader.read_exact(&mut heard).await.unwrap();
        assert_eq!(heard, said.as_bytes());
    }

    async fn gone(mut self) {
        assert_eq!(self.reader.read(&mut [0; 8]).await.unwrap(), 0);
    }
}

/// A shell that runs `script`, with `$0` for the file that tells whether it is alive.
fn shell(script: &str, alive: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", script]).arg(alive).stdin(Stdio::piped()).stdout(Stdio::piped());
    command
}

/// Ignores the end of its input and `SIGTERM`, and so does its child.
const STUBBORN: &str = "trap '' TERM; exec 9>\"$0\"; \
    sh -c 'trap \"\" TERM; printf b >&9; while :; do sleep 1000; done' & printf a >&9; while :; do sleep 1000; done";

async fn stubborn(alive: &mut Alive) -> Process {
    let process = Process::spawn(shell(STUBBORN, &alive.path)).await.unwrap();
    let mut heard = [0; 2];
    alive.reader.read_exact(&mut heard).await.unwrap();
    heard.sort_unstable();
    assert_eq!(&heard, b"ab");
    process
}

#[tokio::test]
async fn a_process_that_listens_ends_by_itself() {
    let mut cat = Process::spawn(shell("exec cat", Path::new(""))).await.unwrap();
    assert!(cat.id().is_some());
    let mut stdout = BufReader::new(cat.stdout().unwrap());
    tokio::io::AsyncWriteExt::write_all(&mut cat.stdin().unwrap(), b"hello\n").await.unwrap();
    let mut line = String::new();
    stdout.read_line(&mut line).await.unwrap();
    assert_eq!(line, "hello\n");
    assert!(cat.end(LONG).await.unwrap().success());
}

#[tokio::test]
async fn one_that_ignores_its_input_is_asked_by_a_signal() {
    let mut alive = Alive::new();
    let script = "trap 'exit 7' TERM; exec 9>\"$0\"; printf a >&9; while :; do sleep 1000 & wait; done";
    let process = Process::spawn(shell(script, &alive.path)).await.unwrap();
    alive.hear("a").await;
    assert_eq!(process.end(Duration::from_millis(200)).await.unwrap().code(), Some(7));
    alive.gone().await;
}

#[tokio::test]
#[covers("PROC-01")]
async fn a_stubborn_one_is_killed_with_its_children() {
    let mut alive = Alive::new();
    let process = stubborn(&mut alive).await;
    let status = process.end(Duration::from_millis(20)).await.unwrap();
    assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(9));
    alive.gone().await;
}

#[tokio::test]
#[covers("PROC-01")]
async fn a_dropped_one_is_killed_with_its_children() {
    let mut alive = Alive::new();
    drop(stubborn(&mut alive).await);
    alive.gone().await;
}

#[tokio::test]
#[covers("PROC-01")]
async fn what_a_child_leaves_ends_with_it() {
    let mut alive = Alive::new();
    // The child of the child holds the output open, which therefore has no end.
    let script =
        "exec 9>\"$0\"; sh -c 'trap \"\" TERM; printf a >&9; while :; do sleep 1000; done' & read -r _; exit 3";
    let mut process = Process::spawn(shell(script, &alive.path)).await.unwrap();
    alive.hear("a").await;
    drop(process.stdin());
    assert_eq!(process.wait().await.unwrap().code(), Some(3));
    alive.gone().await;
    assert_eq!(process.wait().await.unwrap().code(), Some(3), "it can be asked again");
}

#[tokio::test]
async fn a_program_that_does_not_exist_is_named() {
    let error = Process::spawn(Command::new("there-is-no-such-program")).await.unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::NotFound);
    assert!(error.to_string().contains("`there-is-no-such-program` cannot be started"), "{error}");
}
