//! The process of a server.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use goondan::{Error, Result};
use goondan_lock::Lock;
use process::{Environment, Process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure;

/// The most lines of the standard error that are kept.
const LINES: usize = 20;
/// The longest line of the standard error; longer ones are kept as several.
const LINE: u64 = 4096;
/// The longest wait for the rest of the standard error when the process has ended.
const REST: Duration = Duration::from_millis(500);

/// A started server, with its pipes.
pub(crate) struct Child {
    pub(crate) process: Process,
    pub(crate) input: ChildStdin,
    pub(crate) output: ChildStdout,
    pub(crate) stderr: Stderr,
}

impl Child {
    /// Starts the program. A relative path of a program starts at `directory`. `heard` gets each line of its standard
    /// error.
    pub(crate) async fn start(
        program: &str,
        args: &[String],
        env: &[(String, String)],
        directory: &Path,
        heard: impl Fn(&str) + Send + 'static,
    ) -> Result<Self> {
        let path = if program.contains('/') { directory.join(program) } else { PathBuf::from(program) };
        // D-44
        let mut command = Environment::basic().command(path);
        command.args(args).envs(env.iter().map(|(name, value)| (name, value))).current_dir(directory);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let cannot = |error: std::io::Error| {
            Error::new(failure::START, error.to_string()).suggest("check `transport.command`, `transport.cwd` and PATH")
        };
        let mut process = Process::spawn(command.into()).await.map_err(cannot)?;
        match (process.stdin(), process.stdout(), process.stderr()) {
            (Some(input), Some(output), Some(stderr)) => {
                Ok(Self { process, input, output, stderr: Stderr::read(stderr, heard) })
            }
            _ => Err(cannot(std::io::Error::other("the process has no pipes"))),
        }
    }
}

/// The last lines that a process wrote to its standard error.
pub(crate) struct Stderr {
    lines: Arc<Lock<VecDeque<String>>>,
    reader: JoinHandle<()>,
}

impl Stderr {
    fn read(stderr: ChildStderr, heard: impl Fn(&str) + Send + 'static) -> Self {
        let lines = Arc::<Lock<VecDeque<String>>>::default();
        let kept = Arc::clone(&lines);
        let reader = tokio::spawn(async move {
            let (mut stderr, mut line) = (BufReader::new(stderr), Vec::new());
            while matches!((&mut stderr).take(LINE).read_until(b'\n', &mut line).await, Ok(1..)) {
                let text = String::from_utf8_lossy(&line).trim_end().to_owned();
                heard(&text);
                let mut kept = kept.lock();
                if kept.len() == LINES {
                    kept.pop_front();
                }
                kept.push_back(text);
                line.clear();
            }
        });
        Self { lines, reader }
    }

    /// Returns the last output of the process, as part of a sentence. To be called when it has ended.
    pub(crate) async fn last_words(mut self) -> String {
        // A process that left the group of the server may hold the pipe open.
        let _ = timeout(REST, &mut self.reader).await;
        let lines = self.lines.lock();
        if lines.is_empty() {
            return "it wrote nothing to its standard error".to_owned();
        }
        let lines: Vec<_> = lines.iter().map(String::as_str).collect();
        format!("the end of its standard error is:\n{}", lines.join("\n"))
    }
}

impl Drop for Stderr {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
