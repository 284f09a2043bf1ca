//! The command `git`: how it is started, and its output.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use goondan::{Error, Result};
use process::Environment;
use tokio::io::AsyncWriteExt;
use tokio::time::timeout;

/// The command is missing, too old, took too long, or failed where it should not.
pub(crate) const GIT: &str = "E_CHANGESET_GIT";
/// The longest wait for a command.
const LIMIT: Duration = Duration::from_secs(120);
/// The first version with `merge-tree --write-tree`.
const OLDEST: (u32, u32) = (2, 38);

/// Returns the command for the repository whose git directory is `directory`.
pub(crate) fn git(environment: &Environment, directory: &Path) -> Command {
    let mut git = bare(environment);
    let mut option = OsString::from("--git-dir=");
    option.push(directory);
    git.arg("--no-pager").arg(option);
    git
}

/// Returns the command without a repository. It neither fetches missing objects nor asks a person.
pub(crate) fn bare(environment: &Environment) -> Command {
    let mut git = environment.command("git");
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("GIT_") {
            git.env_remove(name);
        }
    }
    git.env("GIT_TERMINAL_PROMPT", "0").env("LC_ALL", "C");
    // An object that is missing in a partial clone would be fetched, by programs that the config names.
    git.env("GIT_NO_LAZY_FETCH", "1").env("GIT_ALLOW_PROTOCOL", "none");
    // A reference could show an object in place of another.
    git.env("GIT_NO_REPLACE_OBJECTS", "1").env("GIT_GRAFT_FILE", "/dev/null/none");
    git
}

/// Adds settings, which take the place of those in files.
pub(crate) fn configure<'a>(git: &mut Command, settings: impl IntoIterator<Item = (&'a str, &'a str)>) {
    let mut count = 0;
    for (name, value) in settings {
        git.env(format!("GIT_CONFIG_KEY_{count}"), name).env(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    git.env("GIT_CONFIG_COUNT", count.to_string());
}

/// Runs a command. It is never killed, because a git that is killed leaves lock files: it ends by itself if the future
/// is dropped, and also if this program is killed.
pub(crate) async fn run(mut command: Command, input: Vec<u8>) -> Result<Output> {
    command.stdin(if input.is_empty() { Stdio::null() } else { Stdio::piped() });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = tokio::process::Command::from(command).spawn().map_err(not_started)?;
    let stdin = child.stdin.take();
    let write = async {
        if let Some(mut stdin) = stdin {
            // A command that has failed reads no more, and says why.
            _ = stdin.write_all(&input).await;
        }
    };
    match timeout(LIMIT, async { tokio::join!(write, child.wait_with_output()).1 }).await {
        Ok(output) => Ok(output?),
        Err(_) => Err(Error::new(GIT, format!("git has not ended after {LIMIT:?}"))
            .suggest("look at what it waits for, and try again when it has ended")),
    }
}

/// Runs a command, and returns its standard output if it succeeds.
pub(crate) async fn output(command: Command, input: Vec<u8>) -> Result<Vec<u8>> {
    checked(run(command, input).await?)
}

/// Runs a command, and returns the line that it prints.
pub(crate) async fn line(command: Command) -> Result<String> {
    Ok(text(&output(command, Vec::new()).await?))
}

/// Returns the standard output of a command that succeeded.
pub(crate) fn checked(output: Output) -> Result<Vec<u8>> {
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::new(GIT, format!("git failed: {}", said.trim())))
}

pub(crate) fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim_end().to_owned()
}

/// Returns the texts of an output that ends each of them with a zero byte.
pub(crate) fn texts(output: &[u8]) -> Vec<String> {
    let texts = output.split(|byte| *byte == 0).filter(|text| !text.is_empty());
    texts.map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

pub(crate) fn not_started(error: std::io::Error) -> Error {
    Error::new(GIT, format!("git cannot be started: {error}")).suggest("install git, version 2.38 or later")
}

/// # Errors
/// git is missing or too old.
pub(crate) async fn check_version(environment: &Environment) -> Result<()> {
    let mut version = bare(environment);
    version.arg("version");
    let version = line(version).await?;
    let mut numbers = version.split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok());
    let found = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if found >= OLDEST {
        return Ok(());
    }
    let (major, minor) = OLDEST;
    Err(Error::new(GIT, format!("`{version}` is too old")).suggest(format!("install git {major}.{minor} or later")))
}
