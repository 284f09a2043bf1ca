//! `metadata.json`: the instance that a directory belongs to, its times, and whether a turn is running.

use goondan_core::{Error, ErrorCode, Result, Timestamp};
use goondan_runtime::store::InstanceId;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::atomic::{self, io_error};
use super::layout::InstanceDir;

/// The content of `metadata.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Metadata {
    /// The last one that was written. The status of another process, from before it ended, says nothing about now.
    #[serde(skip_deserializing)]
    status: Status,
    agent_name: String,
    instance_key: String,
    created_at: Timestamp,
    updated_at: Timestamp,
    /// Members of other implementations, which are kept.
    #[serde(flatten)]
    other: Map<String, Value>,
}

/// The activity of an instance, for readers outside the process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    #[default]
    Idle,
    Processing,
}

impl Metadata {
    /// Reads the file. Returns `None` if it does not exist, or if it is not valid: since changes to it are not
    /// synced, a crash of the machine can damage it. An invalid file is kept aside.
    pub(super) fn read(dir: &InstanceDir, instance: &InstanceId) -> Result<Option<Self>> {
        let path = dir.metadata();
        let bytes = atomic::read(&path)?;
        let mut metadata: Self = match serde_json::from_slice(&bytes) {
            Ok(metadata) => metadata,
            Err(_) if bytes.is_empty() => return Ok(None),
            Err(_) => {
                dir.ops().keep_aside(&path, &*bytes)?;
                return Ok(None);
            }
        };
        // Serde puts a member that is not deserialized among the unknown ones.
        if metadata.other.remove("status").is_none_or(|status| status != "idle") {
            metadata.status = Status::Processing;
        }
        if metadata.agent_name == instance.agent.as_str() && metadata.instance_key == instance.key.as_str() {
            return Ok(Some(metadata));
        }
        let Self { agent_name, instance_key, .. } = metadata;
        let what =
            format!("{} belongs to the instance `{agent_name}:{instance_key}`, not `{instance}`", path.display());
        Err(Error::new(ErrorCode::STORE_DAMAGED, what).suggest("use another instance key, or move the directory away"))
    }

    /// Returns the initial metadata of a new directory.
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

    /// Writes the file durably, provided that its directory is synced afterwards.
    pub(super) fn write(&self, dir: &InstanceDir) -> Result<()> {
        dir.ops().replace(&dir.metadata(), &self.encode(dir)?)
    }

    /// Sets the status and writes the file. A failure is only logged: nothing depends on the status, and a turn must
    /// not fail because of it.
    pub(super) fn set_status(&mut self, dir: &InstanceDir, status: Status) {
        self.status = status;
        self.updated_at = Timestamp::now();
        if let Err(error) = self.encode(dir).and_then(|bytes| overwrite(dir, &bytes)) {
            tracing::warn!(error = %error.report(), "the status of an instance could not be written");
        }
    }

    /// Returns the status that was written last.
    pub(super) fn status(&self) -> Status {
        self.status
    }

    fn encode(&self, dir: &InstanceDir) -> Result<Vec<u8>> {
        let failed = |error| io_error("encode", &dir.metadata(), std::io::Error::other(error));
        let mut bytes = serde_json::to_vec(self).map_err(failed)?;
        // Pad to the same length for every status, so that the file can be overwritten in place.
        let padding = match self.status {
            Status::Idle => "processing".len() - "idle".len(),
            Status::Processing => 0,
        };
        bytes.resize(bytes.len() + padding, b' ');
        bytes.push(b'\n');
        Ok(bytes)
    }
}

/// Overwrites the file in place if its length stays the same. Replacing it would make some file systems write the new
/// file to the disk at once, which is too expensive for a status.
fn overwrite(dir: &InstanceDir, bytes: &[u8]) -> Result<()> {
    let (files, path) = (dir.ops(), dir.metadata());
    let failed = |error| io_error("write", &path, error);
    let mut file = files.open(&path)?;
    if file.metadata().map_err(failed)?.len() != bytes.len() as u64 {
        return files.replace_unsynced(&path, bytes);
    }
    file.write_at(0, bytes).map_err(failed)
}
