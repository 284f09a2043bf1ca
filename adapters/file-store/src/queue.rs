//! `inbox.jsonl` of the workspace: events that were accepted and are not answered.
//!
//! A line `{"put": {…}}` is synced before an event counts as accepted. `{"done": {…}}` follows without a sync: if it
//! is lost, the event is taken again, and has its answer already. Opening cuts off a torn last line, whose event was
//! not reported as accepted; any other damage is an error. When most lines are of events that are done, the file is
//! written anew.
// ONCE-01

use std::borrow::Cow;
use std::fmt;
use std::num::NonZeroUsize;

use goondan_core::{AgentEvent, AgentName, BoxFuture, Error, ErrorCode, EventId, InstanceKey, Result};
use goondan_lock::Lock as Mutex;
use goondan_runtime::store::{InstanceId, TurnOutcome};
use goondan_runtime::{AgentCall, MemoryQueue, Queue};
use serde::{Deserialize, Serialize};

use super::atomic::{self, FileOps, io_error};
use super::lines::{self, Line, damaged, is_sum_right};
use super::lock::Lock;
use super::path::StorePath;
use super::records::for_record;
use super::store::FileStore;

/// The number of lines from which the file is written anew, if a quarter of them or less is of events that wait.
const MANY_LINES: usize = 1024;

/// Keeps events in a file of a workspace, next to the instances of a [`FileStore`]. It belongs to one process at a
/// time.
///
/// Events are kept as conversations keep them: secrets are masked in them but for their text, and of the authentication
/// only the principal is left. They come out of the queue in this form, in the same process too.
pub struct FileQueue {
    memory: MemoryQueue,
    inbox: Mutex<Inbox>,
    _lock: Lock,
}

/// The file.
struct Inbox {
    path: StorePath,
    files: FileOps,
    /// The length up to which it is written.
    len: u64,
    lines: usize,
    /// Whether a write has failed, so that the content of the disk is not known.
    has_failed: bool,
}

/// A line of the file.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Record<'a> {
    Put { put: Box<Of<'a, AgentEvent>> },
    Done { done: Of<'a, EventId> },
}

/// An event of an instance: whole, or its id.
#[derive(Serialize, Deserialize)]
struct Of<'a, T: Clone> {
    agent: Cow<'a, AgentName>,
    key: Cow<'a, InstanceKey>,
    event: Cow<'a, T>,
}

impl<'a, T: Clone> Of<'a, T> {
    fn new(call: &'a AgentCall, event: &'a T) -> Self {
        Self { agent: Cow::Borrowed(&call.target), key: Cow::Borrowed(&call.instance), event: Cow::Borrowed(event) }
    }
}

impl<'a> Record<'a> {
    fn put(call: &'a AgentCall) -> Self {
        Self::Put { put: Box::new(Of::new(call, &call.event)) }
    }

    fn done(call: &'a AgentCall) -> Self {
        Self::Done { done: Of::new(call, &call.event.id) }
    }
}

impl FileStore {
    /// Opens the queue of this workspace. Nothing is created but its file, which is locked until the queue is dropped.
    ///
    /// # Errors
    /// `E_STORE_LOCKED` when a process has it, `E_STORE_DAMAGED` when a line of it is not as it was written,
    /// `E_STORE_IO` when it cannot be read or made.
    pub fn queue(&self) -> Result<FileQueue> {
        let (workspace, files) = (StorePath::workspace(&self.workspace), FileOps::new(self.disk()));
        files.create_dirs(&workspace)?;
        let lock = Lock::at_once(&workspace.join("inbox.lock"))?.ok_or_else(|| {
            let message = format!("another process answers the queue of {}", self.workspace.display());
            Error::new(ErrorCode::STORE_LOCKED, message).suggest("end it first, or use another workspace")
        })?;
        let path = workspace.join("inbox.jsonl");
        if files.ensure_file(&path)? {
            files.sync_dir(&workspace)?;
        }
        let mut bytes = atomic::read(&path)?;
        // Also a line that only lacks its end: `put` had not returned.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            files.cut(&path, whole as u64)?;
            bytes.truncate(whole);
        }
        let (memory, mut lines) = (MemoryQueue::new(), 0);
        for line in lines::lines(&bytes) {
            lines = line.number;
            match read(line, &path)? {
                Record::Put { put } => {
                    let Of { agent, key, event } = *put;
                    memory.add(AgentCall::new(agent.into_owned(), key.into_owned(), event.into_owned()));
                }
                Record::Done { done: Of { agent, key, event } } => {
                    let instance = InstanceId { agent: agent.into_owned(), key: key.into_owned() };
                    memory.remove(instance, event.into_owned(), None);
                }
            }
        }
        let inbox = Inbox { path, files, len: bytes.len() as u64, lines, has_failed: false };
        Ok(FileQueue { memory, inbox: Mutex::new(inbox), _lock: lock })
    }
}

fn read(line: Line<'_>, path: &StorePath) -> Result<Record<'static>> {
    if is_sum_right(line.text) != Some(true) {
        return Err(damaged(path, line.number, "the checksum of this record is wrong"));
    }
    lines::parse(line.text).map_err(|error| damaged(path, line.number, "this is no record of a queue").caused_by(error))
}

impl Inbox {
    fn append(&mut self, record: &Record<'_>, synced: bool) -> Result<()> {
        if self.has_failed {
            let message = format!("{} cannot be written after an earlier failure", self.path.display());
            return Err(Error::new(ErrorCode::STORE_IO, message).suggest("open the queue again"));
        }
        let mut line = Vec::new();
        lines::push_with_sum(&mut line, record, &self.path)?;
        let mut file = self.files.open(&self.path)?;
        let written = file.write_at(self.len, &line).and_then(|()| if synced { file.sync() } else { Ok(()) });
        // There may be a part of a line, or a line that is not on the disk.
        self.has_failed = written.is_err();
        written.map_err(|error| io_error("write", &self.path, error))?;
        (self.len, self.lines) = (self.len + line.len() as u64, self.lines + 1);
        Ok(())
    }

    /// Writes the file anew, with the events that wait.
    fn rewrite(&mut self, waiting: &[AgentCall]) -> Result<()> {
        let mut bytes = Vec::new();
        waiting.iter().try_for_each(|call| lines::push_with_sum(&mut bytes, &Record::put(call), &self.path))?;
        self.files.replace(&self.path, &bytes)?;
        (self.len, self.lines) = (bytes.len() as u64, waiting.len());
        self.path.parent().map_or(Ok(()), |workspace| self.files.sync_dir(&workspace))
    }
}

impl Queue for FileQueue {
    fn put(&self, mut call: AgentCall) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            if let Cow::Owned(recorded) = for_record(&call.event) {
                call.event = recorded;
            }
            // Held until the event is in memory: it is put once.
            let mut inbox = self.inbox.lock();
            if !self.memory.contains(&call)? {
                inbox.append(&Record::put(&call), true)?;
                self.memory.add(call);
            }
            Ok(())
        })
    }

    fn take(&self, room: NonZeroUsize) -> BoxFuture<'_, Result<Vec<AgentCall>>> {
        self.memory.take(room)
    }

    fn done<'a>(&'a self, call: &'a AgentCall, outcome: TurnOutcome) -> BoxFuture<'a, Result<()>> {
        Box::pin(async move {
            self.memory.done(call, outcome).await?;
            let mut inbox = self.inbox.lock();
            inbox.append(&Record::done(call), false)?;
            if inbox.lines < MANY_LINES {
                return Ok(());
            }
            let waiting = self.memory.events();
            if inbox.lines < 4 * waiting.len() { Ok(()) } else { inbox.rewrite(&waiting) }
        })
    }

    fn give_back(&self, call: &AgentCall) {
        self.memory.give_back(call);
    }

    fn outcome<'a>(
        &'a self,
        instance: &'a InstanceId,
        event: &'a EventId,
    ) -> BoxFuture<'a, Result<Option<TurnOutcome>>> {
        self.memory.outcome(instance, event)
    }
}

impl fmt::Debug for FileQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileQueue").field("waiting", &self.memory).finish_non_exhaustive()
    }
}
