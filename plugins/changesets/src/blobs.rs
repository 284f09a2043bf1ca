//! Contents of files, to and from git.

use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::process::{ChildStdin, ChildStdout, Stdio};
use std::thread;

use goondan::{Error, Result};

use crate::command::{self, GIT};
use crate::objects::Objects;

/// Stores contents as they are.
pub(crate) struct Writer {
    git: std::process::Child,
    input: BufWriter<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Writer {
    pub(crate) fn new(objects: &Objects) -> Result<Self> {
        let mut git = objects.git(&["fast-import", "--quiet", "--done"]);
        git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut git = git.spawn().map_err(command::not_started)?;
        match (git.stdin.take(), git.stdout.take()) {
            (Some(input), Some(output)) => {
                Ok(Self { git, input: BufWriter::new(input), output: BufReader::new(output) })
            }
            _ => Err(failed("fast-import")),
        }
    }

    /// Stores a content, and returns its id.
    pub(crate) fn store(&mut self, content: &[u8]) -> Result<String> {
        write!(self.input, "blob\nmark :1\ndata {}\n", content.len())?;
        self.input.write_all(content)?;
        self.input.write_all(b"\nget-mark :1\n")?;
        self.input.flush()?;
        let mut id = String::new();
        self.output.read_line(&mut id)?;
        if id.trim().is_empty() { Err(failed("fast-import")) } else { Ok(id.trim().to_owned()) }
    }

    /// Waits until everything is stored.
    pub(crate) fn end(mut self) -> Result<()> {
        self.input.write_all(b"done\n")?;
        self.input.flush()?;
        drop(self.input);
        if self.git.wait()?.success() { Ok(()) } else { Err(failed("fast-import")) }
    }
}

/// Calls `each` with the content of each of `ids` in turn, and its place among them.
pub(crate) fn read(objects: &Objects, ids: &[&str], mut each: impl FnMut(usize, Vec<u8>) -> Result<()>) -> Result<()> {
    if ids.is_empty() {
        return Ok(());
    }
    let mut git = objects.git(&["cat-file", "--batch", "--buffer"]);
    git.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut git = git.spawn().map_err(command::not_started)?;
    let (Some(input), Some(output)) = (git.stdin.take(), git.stdout.take()) else { return Err(failed("cat-file")) };
    let mut output = BufReader::new(output);
    let done = thread::scope(|scope| {
        // It fails if git has, which the other side tells.
        scope.spawn(move || ask(input, ids));
        let done = ids.iter().enumerate().try_for_each(|(at, id)| each(at, answer(&mut output, id)?));
        // Ends the writer too, after an error.
        drop(output);
        done
    });
    git.wait()?;
    done
}

fn ask(input: ChildStdin, ids: &[&str]) -> std::io::Result<()> {
    let mut input = BufWriter::new(input);
    ids.iter().try_for_each(|id| writeln!(input, "{id}"))?;
    input.flush()
}

/// Reads `<id> <type> <size>` and that many bytes, each with a line break.
fn answer(output: &mut impl BufRead, id: &str) -> Result<Vec<u8>> {
    let mut header = String::new();
    output.read_line(&mut header)?;
    let size = header.trim().strip_prefix(id).and_then(|rest| rest.strip_prefix(" blob ")?.parse::<u64>().ok());
    let Some(size) = size else {
        return Err(Error::new(GIT, format!("the repository lacks the object {id}"))
            .suggest("fetch what is missing, as by `git fetch --refetch`"));
    };
    let mut content = Vec::new();
    output.take(size).read_to_end(&mut content)?;
    output.read_exact(&mut [0])?;
    Ok(content)
}

fn failed(command: &str) -> Error {
    Error::new(GIT, format!("`git {command}` failed")).suggest("look at the repository with `git fsck`")
}
