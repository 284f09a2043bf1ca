//! `inbox.jsonl` of the workspace: events that were accepted and are not answered.
//!
//! A line `{"put": {…}}` is synced before an event counts as accepted. `{"done": {…}}` follows without a sync: if it is
//! lost, the event is taken again, and has its answer already. Opening cuts off a torn last line, whose event nobody was
//! told is accepted; any other damage is an error. When most lines are of events that are done, the file is written anew.
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

/// From how many lines on the file is written anew, if a quarter of them or less is of events that wait.
const MANY_LINES: usize = 1024;

/// Keeps events in a file of a workspace, next to the instances of a [`FileStore`]. It belongs to one process at a time.
///
/// Events are kept as conversations keep them: secrets are masked in them but for their text, and of the authentication
/// only the principal is left. So they come out of the queue, in the same process too.
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
    /// Whether a write has failed, so that what is on the disk is not known.
    has_failed: bool,
}

#[derive(Serialize, Deserialize)]
struct PutRecord<'a> {
    put: PutEvent<'a>,
}

#[derive(Serialize, Deserialize)]
struct PutEvent<'a> {
    agent: Cow<'a, AgentName>,
    key: Cow<'a, InstanceKey>,
    event: Cow<'a, AgentEvent>,
}

#[derive(Serialize, Deserialize)]
struct DoneRecord<'a> {
    done: DoneEvent<'a>,
}

#[derive(Serialize, Deserialize)]
struct DoneEvent<'a> {
    agent: Cow<'a, AgentName>,
    key: Cow<'a, InstanceKey>,
    event: Cow<'a, EventId>,
}

impl<'a> PutRecord<'a> {
    fn of(AgentCall { target, instance, event, .. }: &'a AgentCall) -> Self {
        let (agent, key) = (Cow::Borrowed(target), Cow::Borrowed(instance));
        Self { put: PutEvent { agent, key, event: Cow::Borrowed(event) } }
    }
}

/// What a line says.
#[derive(Deserialize)]
#[serde(untagged)]
enum Record {
    Put(Box<PutRecord<'static>>),
    Done(DoneRecord<'static>),
}

impl FileStore {
    /// Opens the queue of this workspace. Nothing is created but its file, which is locked until the queue is dropped.
    ///
    /// # Errors
    /// `E_STORE_LOCKED` when a process has it, `E_STORE_DAMAGED` when a line of it is not what was written, `E_STORE_IO`
    /// when it cannot be read or made.
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
        // Also a line that only lacks its end: nobody was told that its event is accepted.
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            files.cut(&path, whole as u64)?;
            bytes.truncate(whole);
        }
        let mut waiting = Vec::new();
        let mut number = 0;
        for line in lines::lines(&bytes) {
            number = line.number;
            match read(line, &path)? {
                Record::Put(record) => {
                    let PutEvent { agent, key, event } = record.put;
                    waiting.push(AgentCall::new(agent.into_owned(), key.into_owned(), event.into_owned()));
                }
                Record::Done(DoneRecord { done }) => waiting.retain(|call| {
                    call.event.id != *done.event || call.instance != *done.key || call.target != *done.agent
                }),
            }
        }
        let memory = waiting.into_iter().collect();
        let inbox = Inbox { path, files, len: bytes.len() as u64, lines: number, has_failed: false };
        Ok(FileQueue { memory, inbox: Mutex::new(inbox), _lock: lock })
    }
}

fn read(line: Line<'_>, path: &StorePath) -> Result<Record> {
    if is_sum_right(line.text) != Some(true) {
        return Err(damaged(path, line.number, "the checksum of this record is wrong"));
    }
    lines::parse(line.text).map_err(|error| damaged(path, line.number, "this is no record of a queue").caused_by(error))
}

impl Inbox {
    fn append(&mut self, record: &impl Serialize, synced: bool) -> Result<()> {
        if self.has_failed {
            let message = format!("{} cannot be written after an earlier failure", self.path.display());
            return Err(Error::new(ErrorCode::STORE_IO, message).suggest("open the queue again"));
        }
        let mut line = Vec::new();
        lines::push_with_sum(&mut line, record, &self.path)?;
        let mut file = self.files.open(&self.path)?;
        let written = file.write_at(self.len, &line).and_then(|()| if synced { file.sync() } else { Ok(()) });
        // A part of a line, or a line of which nobody knows whether it is on the disk.
        self.has_failed = written.is_err();
        written.map_err(|error| io_error("write", &self.path, error))?;
        (self.len, self.lines) = (self.len + line.len() as u64, self.lines + 1);
        Ok(())
    }

    /// Writes the file anew, with the events that wait.
    fn rewrite(&mut self, waiting: &[AgentCall]) -> Result<()> {
        let mut bytes = Vec::new();
        waiting.iter().try_for_each(|call| lines::push_with_sum(&mut bytes, &PutRecord::of(call), &self.path))?;
        self.files.replace(&self.path, &bytes)?;
        (self.len, self.lines) = (bytes.len() as u64, waiting.len());
        self.path.parent().map_or(Ok(()), |workspace| self.files.sync_dir(&workspace))
    }
}

impl Queue for FileQueue {
    fn put(&self, mut call: AgentCall) -> BoxFuture<'_, Result<()>> {
        Box::pin(async move {
            call.event = for_record(&call.event).into_owned();
            // Held until the event is in memory: it is put once.
            let mut inbox = self.inbox.lock();
            if !self.memory.contains(&call)? {
                inbox.append(&PutRecord::of(&call), true)?;
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
            let AgentCall { target, instance, event, .. } = call;
            let (agent, key, event) = (Cow::Borrowed(target), Cow::Borrowed(instance), Cow::Borrowed(&event.id));
            let mut inbox = self.inbox.lock();
            inbox.append(&DoneRecord { done: DoneEvent { agent, key, event } }, false)?;
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
