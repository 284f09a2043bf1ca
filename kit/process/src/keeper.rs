//! The keeper of a process group.

use std::io;
use std::process::Stdio;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt;
use tokio::process::{Child, Command};

/// Says that it is ready, waits for the end of its input, and kills its own group. It ignores the signals that ask a
/// group to end, because other processes of the group may ignore them too.
const SCRIPT: &str = "trap '' HUP INT TERM; echo; read -r _; kill -s KILL 0";

/// A shell that leads a process group, and kills the group when the pipe to its input closes: with the process that
/// holds it, however that ends. It is also killed with this value.
///
/// The group has the process id of the shell, which the system gives to no other process or group before the shell has
/// been awaited.
#[derive(Debug)]
pub(crate) struct Keeper {
    shell: Child,
}

impl Keeper {
    pub(crate) async fn start() -> io::Result<Self> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", SCRIPT]).process_group(0);
        // It keeps nothing else open, and no directory busy.
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).current_dir("/").env_clear();
        let shell = command.spawn().map_err(|error| io::Error::new(error.kind(), format!("`/bin/sh`: {error}")))?;
        let mut keeper = Self { shell };
        if let Some(mut output) = keeper.shell.stdout.take() {
            output.read_u8().await.map_err(|error| io::Error::new(error.kind(), "`/bin/sh` ended at once"))?;
        }
        Ok(keeper)
    }

    /// Returns the group, if the shell has not been awaited.
    pub(crate) fn group(&self) -> Option<Pid> {
        let id = self.shell.id()?;
        i32::try_from(id).ok().map(Pid::from_raw)
    }

    /// Sends a signal to all processes of the group.
    pub(crate) fn signal(&self, signal: Signal) {
        if let Some(group) = self.group() {
            // It fails only if the group has ended: the processes in it are those of this user.
            let _ = killpg(group, signal);
        }
    }

    /// Kills all processes of the group, the shell among them.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    /// Waits until the shell has ended.
    pub(crate) async fn wait(&mut self) -> io::Result<()> {
        self.shell.wait().await.map(drop)
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.kill();
    }
}
