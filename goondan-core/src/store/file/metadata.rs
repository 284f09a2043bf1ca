//! Owns `metadata.json`: whose directory this is, and whether a turn runs in it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::super::InstanceId;
use super::atomic::{self, io_error};
use super::place::Place;
use crate::conversation::Timestamp;
use crate::error::{Error, ErrorCode, Result};

/// What `metadata.json` says, and where it lies.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    /// Not read: what another process noted before it ended says nothing about now.
    #[serde(skip_deserializing)]
    status: Status,
    agent_name: String,
    instance_key: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Members of other implementations: kept.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// What the instance does, for people and tools that look from outside.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    #[default]
    Idle,
    Processing,
}

impl Metadata {
    /// Reads the file; none if there is none, or only one that a crash of the machine left without sense: its content is
    /// not synced when it changes.
    pub(super) fn read(place: &Place, instance: &InstanceId) -> Result<Option<Self>> {
        let path = place.metadata();
        let bytes = atomic::read(&path)?;
        let mut metadata: Self = match serde_json::from_slice(&bytes) {
            Ok(metadata) => metadata,
            Err(_) if bytes.is_empty() => return Ok(None),
            Err(_) => {
                place.files().keep_aside(&path, &*bytes)?;
                return Ok(None);
            }
        };
        // Serde counts a member that is not read among the unknown ones.
        metadata.other.remove("status");
        if metadata.agent_name == instance.agent.as_str() && metadata.instance_key == instance.key.as_str() {
            return Ok(Some(metadata));
        }
        let Self { agent_name, instance_key, .. } = metadata;
        let what =
            format!("{} belongs to the instance `{agent_name}:{instance_key}`, not `{instance}`", path.display());
        Err(Error::new(ErrorCode::STORE_DAMAGED, what).suggest("use another instance key, or move the directory away"))
    }

    /// The first content of a new directory.
    pub(super) fn new(instance: &InstanceId) -> Self {
        let now = Timestamp::now();
        Self {
            status: Status::Idle,
            agent_name: instance.agent.to_string(),
            instance_key: instance.key.to_string(),
            created_at: now,
            updated_at: now,
            other: Map::new(),
        }
    }

    /// Writes the file so that it outlives the machine, once its directory is synced.
    pub(super) fn write(&self, place: &Place) -> Result<()> {
        place.files().replace(&place.metadata(), &self.encode(place)?)
    }

    /// Notes what the instance does now. A failure is only reported: nothing depends on this file, and a turn must not
    /// fail for it.
    pub(super) fn note(&mut self, place: &Place, status: Status) {
        self.status = status;
        self.updated_at = Timestamp::now();
        if let Err(error) = self.encode(place).and_then(|bytes| put(place, &bytes)) {
            tracing::warn!(error = %error.report(), "the status of an instance could not be noted");
        }
    }

    fn encode(&self, place: &Place) -> Result<Vec<u8>> {
        let failed = |error| io_error("encode", &place.metadata(), std::io::Error::other(error));
        let mut bytes = serde_json::to_vec(self).map_err(failed)?;
        // Of one length for every status.
        let room = match self.status {
            Status::Idle => "processing".len() - "idle".len(),
            Status::Processing => 0,
        };
        bytes.resize(bytes.len() + room, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Writes the file over where it has the same length: to put another in its place makes some file systems bring that one to
/// the medium at once, which a status is not worth.
fn put(place: &Place, bytes: &[u8]) -> Result<()> {
    let (files, path) = (place.files(), place.metadata());
    if atomic::len(&path)? != bytes.len() as u64 {
        return files.replace_unsynced(&path, bytes);
    }
    files.open(&path)?.write_at(0, bytes).map_err(|error| io_error("write", &path, error))
}
