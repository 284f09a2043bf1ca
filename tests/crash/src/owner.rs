//! A process that owns a child which ignores everything but `SIGKILL`.

use std::path::Path;

use goondan::Result;
use process::Process;
use tokio::process::Command;

/// The child and its own child open the file and write a byte to it each.
const STUBBORN: &str = "trap '' TERM HUP; exec 9>\"$0\"; \
    sh -c 'printf b >&9; while :; do sleep 1000; done' & printf a >&9; while :; do sleep 1000; done";

pub(crate) async fn run(alive: &Path) -> Result<()> {
    let mut command = Command::new("sh");
    command.args(["-c", STUBBORN]).arg(alive);
    let _process = Process::spawn(command).await?;
    std::future::pending().await
}
