//! Owns the other end of that child process: it is given a deadline, and what becomes of it is told.

use std::collections::BTreeMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use goondan::bundle::{Declared, Libraries, LibraryEntry, Plugins};
use goondan::{Error, ErrorCode, ExtensionDescriptor, ExtensionSchemas, Result};

use super::describe::Answer;
use crate::args::DeadlineArgs;

/// No answer is longer.
const MOST: u64 = 16 << 20;
/// How much of what the child says beside its answer is told when it fails.
const MOST_SAID: u64 = 4 << 10;
/// Whoever was killed has its pipes closed; only children of its own could keep them open.
const CLOSING: Duration = Duration::from_secs(1);

/// Asks the library at `path` for its schemas, in a process of its own.
///
/// # Errors
/// `E_EXT_LOAD` or `E_EXT_COMPAT`: what the library says, or how its process ended.
pub(super) fn schemas(path: &Path, deadline: Duration) -> Result<Vec<ExtensionSchemas>> {
    let mut child = Command::new(std::env::current_exe()?)
        .args(["plugin", "describe"])
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let said = child.stderr.take().map(|pipe| read(pipe, MOST_SAID));
    let answer = child.stdout.take().map(|pipe| read(pipe, MOST));
    let answer = answer.and_then(|answer| answer.recv_timeout(deadline).ok());
    let status = end(&mut child)?;
    match answer.as_deref().map(serde_json::from_slice) {
        Some(Ok(Answer::Schemas(schemas))) => Ok(schemas),
        Some(Ok(Answer::Failed { code, message, suggestion })) => {
            Err(Error::new(ErrorCode::from(code), message).suggest(suggestion.unwrap_or_default()))
        }
        Some(Err(_)) => Err(ended(path, status, said.as_ref())),
        None => Err(late(path, deadline)),
    }
}

/// Whoever closed its standard output has no more to say, so it may as well be killed. If it is ending already, how it ends
/// stays what it is.
fn end(child: &mut Child) -> io::Result<ExitStatus> {
    child.kill()?;
    child.wait()
}

/// Reads all of `pipe`, and keeps the first `most` bytes.
fn read(mut pipe: impl Read + Send + 'static, most: u64) -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What cannot be read was not said.
        _ = pipe.by_ref().take(most).read_to_end(&mut bytes);
        _ = io::copy(&mut pipe, &mut io::sink());
        _ = sender.send(bytes);
    });
    receiver
}

fn ended(path: &Path, status: ExitStatus, said: Option<&Receiver<Vec<u8>>>) -> Error {
    let message =
        format!("the process in which `{}` was loaded ended before it was described: {status}", path.display());
    let error = Error::new(ErrorCode::EXT_LOAD, message).suggest(
        "the library does that when it is loaded, or in its schemas: correct it; agents could not use it either",
    );
    let said = said.and_then(|said| said.recv_timeout(CLOSING).ok()).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    if said.trim().is_empty() { error } else { error.caused_by(format!("it said: {}", said.trim())) }
}

fn late(path: &Path, deadline: Duration) -> Error {
    let message = format!("`{}` was not described within {} s", path.display(), deadline.as_secs());
    Error::new(ErrorCode::EXT_LOAD, message).suggest(
        "the library waits for something when it is loaded, or in its schemas; `--deadline` gives it more time",
    )
}

/// The libraries of bundles. With a deadline they are asked, each in a process of its own, for what their files do not tell.
pub(crate) fn libraries(deadline: Option<&DeadlineArgs>) -> Box<dyn Libraries> {
    match deadline {
        Some(deadline) => Box::new(Describing::new(deadline.timeout())),
        None => Box::new(Plugins::new()),
    }
}

/// The libraries of bundles, with the schemas that they tell when they are asked in a process of their own.
struct Describing {
    plugins: Plugins,
    deadline: Duration,
    /// A file is asked once, however many of its extensions the bundle names.
    asked: Mutex<BTreeMap<PathBuf, Vec<ExtensionSchemas>>>,
}

impl Describing {
    fn new(deadline: Duration) -> Self {
        Self { plugins: Plugins::new(), deadline, asked: Mutex::default() }
    }
}

impl Libraries for Describing {
    fn declared(&self, library: &LibraryEntry) -> Result<Declared> {
        let declared = self.plugins.declared(library)?;
        if declared.config_schema.is_some() {
            return Ok(declared);
        }
        let inspected = self.plugins.inspect(library)?;
        let name = &inspected.extension(library.name.as_str())?.name;
        let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
        if !asked.contains_key(&library.file) {
            asked.insert(library.file.clone(), schemas(&library.file, self.deadline)?);
        }
        let mut all = asked.get(&library.file).into_iter().flatten();
        let config_schema = all.find(|schemas| schemas.name == *name).map(|schemas| schemas.config.clone());
        Ok(Declared { config_schema, ..declared })
    }

    fn load(&self, library: &LibraryEntry) -> Result<&'static ExtensionDescriptor> {
        self.plugins.load(library)
    }
}
