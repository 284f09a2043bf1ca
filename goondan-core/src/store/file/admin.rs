//! Administration: listing, reading and deleting instances without opening them.

use std::io::ErrorKind;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::InstanceId;
use super::FileStore;
use super::atomic::{self, io_error};
use super::base::Fingerprint;
use super::layout::InstanceDir;
use super::lock::Lock;
use super::path::StorePath;
use super::records::{FoldRecord, TurnRecords, torn_part};
use super::recovery::replay;
use super::{base, events};
use crate::conversation::{Message, Timestamp};
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, InstanceKey, TurnId};

/// The name of a directory that is being deleted starts with it. A crash can leave one in the workspace.
const DELETED: &str = "deleted-";

/// An instance as described by its `metadata.json`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredInstance {
    /// The instance.
    #[serde(flatten)]
    pub id: InstanceId,
    /// When it was first opened.
    pub created_at: Timestamp,
    /// When one of its turns last began or ended.
    pub updated_at: Timestamp,
}

/// The stored messages of an instance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredConversation {
    /// The messages, oldest first, including those of a turn that is not committed.
    pub messages: Vec<Arc<Message>>,
    /// The turn that is running, or that an earlier process left uncommitted, if any.
    pub open_turn: Option<TurnId>,
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
    /// Returns the instances of this workspace, sorted by agent and key. Directories without valid metadata are
    /// skipped. A workspace directory that does not exist has no instances.
    ///
    /// # Errors
    /// `E_STORE_IO` when the directory cannot be read.
    // F-STORE
    pub fn instances(&self) -> Result<Vec<StoredInstance>> {
        let folder = StorePath::workspace(&self.workspace).join("instances");
        let entries = match folder.entries() {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("read", &folder, error)),
        };
        let mut instances = Vec::new();
        for entry in entries {
            let bytes = atomic::read(&entry.join("metadata.json"));
            let Ok(Ok(metadata)) = bytes.map(|bytes| serde_json::from_slice::<ListedMetadata>(&bytes)) else {
                continue;
            };
            let ListedMetadata { agent_name: agent, instance_key: key, created_at, updated_at } = metadata;
            instances.push(StoredInstance { id: InstanceId { agent, key }, created_at, updated_at });
        }
        instances.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(instances)
    }

    /// Reads the messages of an instance without opening, locking or repairing it. While another process runs a turn
    /// of it, the newest messages may be missing.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_…` when its files cannot be read.
    pub fn read(&self, instance: &InstanceId) -> Result<StoredConversation> {
        let dir = self.existing(instance)?;
        let (base_path, events_path) = (dir.base(), dir.events());
        let mut events = events::read(&events_path)?;
        events.truncate(torn_part(&events).unwrap_or(events.len()));
        let records = TurnRecords::parse(&events, &events_path)?;
        let length = atomic::len(&base_path)?;
        let read = |end| base::load(&base_path, end).map(|loaded| loaded.messages);
        // A base of the right length may be the old one, or pages that were not written: recovery compares the same.
        let is_new = |fold: &FoldRecord| -> Result<bool> {
            Ok(length == fold.base_bytes_after && Fingerprint::of(&base_path, length)?.crc() == fold.crc)
        };
        let is_folded = base_path.exists() && records.fold.as_ref().map_or(Ok(false), is_new)?;
        let (messages, open_turn) = match (records.begin, records.fold) {
            _ if !base_path.exists() => (Vec::new(), None),
            // The turn is committed and already in the base.
            _ if is_folded => {
                return Ok(StoredConversation { messages: read(None)?, open_turn: None });
            }
            (Some(begin), fold) => (read(Some(begin.base_bytes.min(length)))?, fold.is_none().then_some(begin.turn)),
            (None, _) => (read(None)?, None),
        };
        let conversation = replay(messages, records.events);
        Ok(StoredConversation { messages: conversation.messages().cloned().collect(), open_turn })
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
        let message = format!("there is no instance `{instance}` in {}", self.workspace.display());
        Err(Error::new(ErrorCode::STORE_NOT_FOUND, message)
            .suggest("`goondan instance list` shows those that there are"))
    }
}
