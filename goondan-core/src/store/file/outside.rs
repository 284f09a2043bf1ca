//! Owns what can be done with instances from outside, without opening them: listing, reading, deleting.

use std::fs;
use std::io::ErrorKind;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::super::InstanceId;
use super::FileStore;
use super::atomic::{self, io_error};
use super::lock::Lock;
use super::log::{Log, torn_part};
use super::place::Place;
use super::recovery::replay;
use super::{base, events};
use crate::conversation::{Message, Timestamp};
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, InstanceKey, TurnId};

/// An instance as its directory tells it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct StoredInstance {
    /// Which instance.
    #[serde(flatten)]
    pub id: InstanceId,
    /// When it was opened for the first time.
    pub created_at: Timestamp,
    /// When a turn of it last began or ended.
    pub updated_at: Timestamp,
}

/// What was said in an instance.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredConversation {
    /// The messages, oldest first; those of a turn that is not committed included.
    pub messages: Vec<Arc<Message>>,
    /// The turn that is running, or that a process left behind.
    pub open_turn: Option<TurnId>,
}

/// The members of `metadata.json` that matter here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    agent_name: AgentName,
    instance_key: InstanceKey,
    created_at: Timestamp,
    updated_at: Timestamp,
}

impl FileStore {
    /// The instances of this workspace, by agent and key. Directories without valid metadata are left out (F-STORE).
    ///
    /// # Errors
    /// `E_STORE_IO` when the directory cannot be read. One that does not exist has no instances.
    pub fn instances(&self) -> Result<Vec<StoredInstance>> {
        let place = self.dir.join("instances");
        let entries = match fs::read_dir(&place) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(io_error("read", &place, error)),
        };
        let mut instances = Vec::new();
        for entry in entries {
            let path = entry.map_err(|error| io_error("read", &place, error))?.path().join("metadata.json");
            let Ok(Ok(metadata)) = fs::read(path).map(|bytes| serde_json::from_slice::<Metadata>(&bytes)) else {
                continue;
            };
            let Metadata { agent_name: agent, instance_key: key, created_at, updated_at } = metadata;
            instances.push(StoredInstance { id: InstanceId { agent, key }, created_at, updated_at });
        }
        instances.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(instances)
    }

    /// What was said in an instance, read without opening, locking or repairing it. While another process runs a turn of
    /// it, what was just said may be missing.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_…` when its files cannot be read.
    pub fn read(&self, instance: &InstanceId) -> Result<StoredConversation> {
        let place = self.existing(instance)?;
        let (base_path, events_path) = (place.base(), place.events());
        let mut events = events::read(&events_path)?;
        events.truncate(torn_part(&events).unwrap_or(events.len()));
        let log = Log::parse(&events, &events_path)?;
        let length = atomic::len(&base_path)?;
        let read = |end| base::load(&base_path, end).map(|loaded| loaded.messages);
        let (messages, open_turn) = match (log.begin, log.fold) {
            _ if !base_path.exists() => (Vec::new(), None),
            // Committed and already in the base.
            (_, Some(fold)) if length == fold.base_bytes_after => {
                return Ok(StoredConversation { messages: read(None)?, open_turn: None });
            }
            (Some(begin), fold) => (read(Some(begin.base_bytes.min(length)))?, fold.is_none().then_some(begin.turn)),
            (None, _) => (read(None)?, None),
        };
        let conversation = replay(messages, log.events);
        Ok(StoredConversation { messages: conversation.messages().cloned().collect(), open_turn })
    }

    /// Deletes an instance: its messages, the state of its extensions, its work directory. Nothing brings it back.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when somebody has it open, `E_STORE_IO` when it
    /// cannot be deleted as a whole.
    pub fn delete(&self, instance: &InstanceId) -> Result<()> {
        let place = self.existing(instance)?;
        let _lock = Lock::take(&place.lock(), instance)?;
        fs::remove_dir_all(place.dir()).map_err(|error| io_error("delete", place.dir(), error))
    }

    pub(super) fn existing(&self, instance: &InstanceId) -> Result<Place> {
        let place = self.place(instance);
        if place.dir().is_dir() {
            return Ok(place);
        }
        let message = format!("there is no instance `{instance}` in {}", self.dir.display());
        Err(Error::new(ErrorCode::STORE_NOT_FOUND, message)
            .suggest("`goondan instance list` shows those that there are"))
    }
}
