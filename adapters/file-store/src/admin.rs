//! Administration: listing, reading and deleting instances without opening them.

use std::collections::HashMap;
use std::io::BufRead;
use std::io::ErrorKind;
use std::sync::Arc;

use goondan_core::{AgentName, Error, ErrorCode, EventId, InstanceKey, Message, Result, Timestamp, TurnId, Wait};
use goondan_runtime::store::{
    EndedTurn, InstanceId, InstancePage, InstanceQuery, InstanceStatus, StoredInstance, TurnOutcome,
};
use serde::Deserialize;

use super::atomic::{self, io_error};
use super::grammar::JournalRecords;
use super::layout::InstanceDir;
use super::lock::Lock;
use super::path::StorePath;
use super::standing::{FoundTail, Standing, read_journal, replay};
use super::status::{HeldLocks, status};
use super::store::FileStore;
use super::{events, runtime_events};

/// The number of attempts of [`FileStore::read`] when a running turn changes the files between two reads.
const READS: usize = 1_000;
/// The name of a directory that is being deleted starts with it. A crash can leave one in the workspace.
const DELETED: &str = "deleted-";

/// The stored messages of an instance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredConversation {
    /// The messages, oldest first, including those of a turn that is not committed.
    pub messages: Vec<Arc<Message>>,
    /// The turn that is running, or that an earlier process left uncommitted, if any.
    pub open_turn: Option<TurnId>,
    /// The calls of that turn that wait for decisions, each with its open questions.
    pub waits: Vec<Wait>,
    /// The outcome of the last committed turn that answered an event. `None` if there is none.
    pub outcome: Option<TurnOutcome>,
}

/// The members of `metadata.json` that [`FileStore::instances`] returns.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ListedMetadata {
    agent_name: AgentName,
    instance_key: InstanceKey,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl FileStore {
    /// Returns the content of the files in which the runtime reports its work: lines of JSON, older ones first.
    /// They may be incomplete, and nothing else depends on them.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_IO` when the files cannot be read.
    // F-EVENTS
    pub fn runtime_events(&self, instance: &InstanceId) -> Result<impl BufRead + use<>> {
        runtime_events::lines_of(&self.existing(instance)?)
    }

    /// Returns the instances of this workspace, sorted by agent and key. Directories without valid metadata are
    /// skipped. A workspace directory that does not exist has no instances.
    ///
    /// # Errors
    /// `E_STORE_IO` when the directory cannot be read.
    // F-STORE
    pub fn instances(&self) -> Result<Vec<StoredInstance>> {
        Ok(self.list_now(&InstanceQuery::new())?.instances)
    }

    /// Returns a page of the instances, as [`FileStore::instances`] does.
    pub(super) fn list_now(&self, query: &InstanceQuery) -> Result<InstancePage> {
        let folder = StorePath::workspace(&self.workspace).join("instances");
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(query.page([], |_| InstanceStatus::Idle)),
            Err(error) => return Err(io_error("read", &folder, error)),
        };
        let (mut instances, mut dirs, start) = (Vec::new(), HashMap::new(), query.directory_start());
        for entry in entries.into_iter().filter(|entry| entry.begins_with(&start)) {
            let dir = InstanceDir::at(&entry);
            let bytes = atomic::read(&dir.metadata());
            let Ok(Ok(metadata)) = bytes.map(|bytes| serde_json::from_slice::<ListedMetadata>(&bytes)) else {
                continue;
            };
            let ListedMetadata { agent_name: agent, instance_key: key, created_at, updated_at } = metadata;
            let instance = StoredInstance::new(InstanceId { agent, key }, created_at, updated_at);
            dirs.insert(instance.id.clone(), dir);
            instances.push(instance);
        }
        let locks = HeldLocks::read();
        let status = |id: &InstanceId| dirs.get(id).map_or(InstanceStatus::Unreadable, |dir| status(dir, &locks));
        Ok(query.page(instances, status))
    }

    /// Reads the messages of an instance without opening, locking or repairing it. While another process runs a turn
    /// of it, the newest messages may be missing.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_…` when its files cannot be read.
    pub fn read(&self, instance: &InstanceId) -> Result<StoredConversation> {
        let dir = self.existing(instance)?;
        let mut reads = READS;
        loop {
            let events = events::read(&dir.events())?;
            let read = read(&dir);
            reads -= 1;
            // If the journal has changed, a turn has been committed between the reads of the files.
            if read.is_ok() || reads == 0 || events::read(&dir.events())? == events {
                return read;
            }
        }
    }

    /// Returns the status of an instance, without opening or locking it.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_IO` when its directory cannot be found.
    pub fn status(&self, instance: &InstanceId) -> Result<InstanceStatus> {
        Ok(status(&self.existing(instance)?, &HeldLocks::read()))
    }

    /// Deletes an instance for good: its messages, the state of its extensions, and its working directory.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when it is open, `E_STORE_IO` when it
    /// cannot be deleted completely.
    pub fn delete(&self, instance: &InstanceId) -> Result<()> {
        let (dir, _lock) = self.lock(instance)?;
        let workspace = StorePath::workspace(&self.workspace);
        // Renamed first: from then on it is no instance, neither for a process that opens it nor after a crash.
        let deleted = workspace.join(&format!("{DELETED}{:016x}", fastrand::u64(..)));
        let failed = |error| io_error("delete", dir.path(), error);
        dir.path().rename(&deleted).map_err(failed)?;
        dir.ops().sync_dir(&workspace.join("instances"))?;
        for leftover in workspace.entries().map_err(failed)? {
            if leftover.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(DELETED)) {
                leftover.remove_dir_all().map_err(|error| io_error("delete", &leftover, error))?;
            }
        }
        Ok(())
    }

    /// Returns how the turn ended that answered `event`, without opening or locking the instance.
    pub(super) fn outcome_now(&self, instance: &InstanceId, event: &EventId) -> Result<Option<EndedTurn>> {
        let dir = match self.existing(instance) {
            Ok(dir) => dir,
            Err(error) if *error.code() == ErrorCode::STORE_NOT_FOUND => return Ok(None),
            Err(error) => return Err(error),
        };
        let (bytes, _) = read_journal(&dir)?;
        let (records, _) = JournalRecords::survey(&bytes, &dir.events())?;
        Ok(records.answered().rfind(|turn| turn.outcome.event() == Some(event)))
    }

    /// Locks an instance that exists.
    pub(super) fn lock(&self, instance: &InstanceId) -> Result<(InstanceDir, Lock)> {
        Lock::take(instance, || self.existing(instance))
    }

    /// Returns the directory of an instance, or an error if it does not exist.
    pub(super) fn existing(&self, instance: &InstanceId) -> Result<InstanceDir> {
        let dir = self.dir_of(instance);
        if dir.path().is_directory().map_err(|error| io_error("open", dir.path(), error))? {
            return Ok(dir);
        }
        Err(self.not_found(instance))
    }

    /// Returns the error for an instance that does not exist.
    pub(super) fn not_found(&self, instance: &InstanceId) -> Error {
        let message = format!("there is no instance `{instance}` in {}", self.workspace.display());
        Error::new(ErrorCode::STORE_NOT_FOUND, message).suggest("`goondan instance list` shows those that there are")
    }
}

/// Reads the messages of the instance in `dir`, as an opening would.
fn read(dir: &InstanceDir) -> Result<StoredConversation> {
    let mut standing = Standing::read(dir)?;
    if standing.tail.found == FoundTail::Foreign {
        return Err(standing.foreign_tail(dir));
    }
    let open = standing.records.open.take();
    let committed = standing.conversation();
    let waits = open.as_ref().map(|open| open.facts.open_waits().collect()).unwrap_or_default();
    let (open_turn, events) = open.map(|open| (open.turn, open.events)).unzip();
    let conversation = replay(committed.messages().cloned(), events.unwrap_or_default());
    let messages = conversation.messages().cloned().collect();
    let outcome = standing.records.answered().next_back().map(|turn| turn.outcome);
    Ok(StoredConversation { messages, open_turn, waits, outcome })
}
