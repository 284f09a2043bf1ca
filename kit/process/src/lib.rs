//! Child processes for the ready-made extensions of goondan and for those of users. They end with the value that owns
//! them, with everything that they have started.
//!
//! A child that is only killed leaves its own children behind, and a parent that is killed cannot end its children at
//! all. So every [`Process`] is in a process group of its own, which is signalled as a whole, and which a small shell,
//! the keeper, kills when the parent is gone, however it ended.
//!
//! [`run`] runs a command to its end, here for a tool:
//!
//! ```
//! use std::time::Duration;
//!
//! use goondan::prelude::*;
//! use goondan_text::NumberedFile;
//! use process::{Environment, Output};
//!
//! /// Checks the work of the model.
//! struct Checks {
//!     environment: Environment,
//! }
//!
//! #[goondan::extension(name = "checks")]
//! impl Checks {
//!     #[init]
//!     fn new(ctx: InitContext) -> Self {
//!         Self { environment: Environment::without_secrets(move || ctx.secret_variables().ok()) }
//!     }
//!
//!     /// Runs the tests.
//!     #[tool(timeout = "11m")]
//!     async fn test(&self, ctx: &ToolContext<'_>) -> Result<String> {
//!         let files = ctx.workdir()?;
//!         let outputs = ["stdout", "stderr"]
//!             .map(|name| Output::new(20_000, NumberedFile::new(files, ["checks", name], "txt")));
//!         let mut command = self.environment.command("make");
//!         command.arg("test");
//!         let ended = process::run(command.into(), Duration::from_secs(600), outputs, |_| {}).await?;
//!         Ok(format!("{}\n{}\n{}", ended.status, ended.stdout.text(), ended.stderr.text()))
//!     }
//! }
//! # fn main() {}
//! ```
//!
//! An [`Environment`] starts commands without the keys of the program.
//!
//! A [`Process`] is for programs that are talked to:
//!
//! ```
//! use std::process::Stdio;
//! use std::time::Duration;
//!
//! use process::{Environment, Process};
//! use tokio::io::AsyncReadExt;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> std::io::Result<()> {
//! let mut command = Environment::basic().command("cat");
//! command.stdin(Stdio::piped()).stdout(Stdio::piped());
//! let mut cat = Process::spawn(command.into()).await?;
//! let mut stdout = cat.stdout().expect("it is piped");
//!
//! let status = cat.end(Duration::from_secs(2)).await?;
//! assert!(status.success(), "cat ends when its input does");
//! assert_eq!(stdout.read(&mut [0; 8]).await?, 0);
//! # Ok(())
//! # }
//! ```
//!
//! A process that moves itself into another group, as daemons do, is out of reach.

// The example of the README compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

mod environment;
mod keeper;
mod output;
mod run;

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

pub use environment::Environment;
use keeper::Keeper;
use nix::sys::signal::Signal;
pub use output::Output;
pub use run::{Ended, run};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// A child process with everything that it has started. They are killed when the value is dropped, and when the
/// process that holds it ends, also by `SIGKILL`.
// PROC-01
#[derive(Debug)]
pub struct Process {
    child: Child,
    keeper: Keeper,
}

impl Process {
    /// Starts a process, in a process group that is made for it.
    ///
    /// # Errors
    /// When the program cannot be started, or `sh`, which keeps it, cannot.
    ///
    /// # Panics
    /// Outside of a tokio runtime with IO and time.
    pub async fn spawn(mut command: Command) -> io::Result<Self> {
        let keeper = Keeper::start().await?;
        // The keeper is there first, so that there is no moment in which the child has none.
        let group = keeper.group().ok_or_else(|| io::Error::other("the shell of the process group has ended"))?;
        let child = command.process_group(group.as_raw()).spawn().map_err(|error| {
            let program = command.as_std().get_program().to_string_lossy();
            io::Error::new(error.kind(), format!("`{program}` cannot be started: {error}"))
        })?;
        Ok(Self { child, keeper })
    }

    /// Returns the process id of the child, if it has not ended.
    pub fn id(&self) -> Option<u32> {
        self.child.id()
    }

    /// Takes the standard input, if it is piped.
    pub fn stdin(&mut self) -> Option<ChildStdin> {
        self.child.stdin.take()
    }

    /// Takes the standard output, if it is piped.
    pub fn stdout(&mut self) -> Option<ChildStdout> {
        self.child.stdout.take()
    }

    /// Takes the standard error, if it is piped.
    pub fn stderr(&mut self) -> Option<ChildStderr> {
        self.child.stderr.take()
    }

    /// Waits until the child has ended, and kills what it has left. The child is awaited and not its output, because a
    /// process that it started may hold that open. A standard input that was not taken is closed. Dropping the future
    /// loses nothing.
    ///
    /// # Errors
    /// When the system cannot tell.
    pub async fn wait(&mut self) -> io::Result<ExitStatus> {
        let status = self.child.wait().await?;
        self.keeper.kill();
        self.keeper.wait().await?;
        Ok(status)
    }

    /// Ends the process: its standard input is closed, unless it was taken; after half of `grace` it is sent `SIGTERM`,
    /// and after the other half it is killed. The signals go to the whole group.
    ///
    /// # Errors
    /// When the system cannot tell how it ended.
    pub async fn end(mut self, grace: Duration) -> io::Result<ExitStatus> {
        if let Ok(status) = timeout(grace / 2, self.wait()).await {
            return status;
        }
        self.terminate(grace / 2).await
    }

    /// Ends the process, which does not wait for its input: it is sent `SIGTERM`, and killed after `grace`. The signals
    /// go to the whole group.
    ///
    /// # Errors
    /// When the system cannot tell how it ended.
    pub async fn terminate(&mut self, grace: Duration) -> io::Result<ExitStatus> {
        self.keeper.signal(Signal::SIGTERM);
        if let Ok(status) = timeout(grace, self.wait()).await {
            return status;
        }
        self.keeper.kill();
        self.wait().await
    }
}
