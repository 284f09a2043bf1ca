//! Owns the store that keeps instances in files, so that they outlive the process and the machine.
//!
//! # Files
//! `<state root>/workspaces/<workspaceId>/instances/<instance>/` holds, in the formats of F-STORE,
//! `metadata.json`, `lock`, `messages/base.jsonl` (the messages after the last committed turn),
//! `messages/events.jsonl` (the running turn), `messages/runtime-events.jsonl` and its predecessor
//! `runtime-events.1.jsonl` (what the runtime did, for people who look from outside), `extensions/<name>.json` (state), and
//! `workspace/`, where tools work on files.
//!
//! # Protocol
//! What a turn writes, in this order, and what an opening makes of a crash after each step:
//!
//! 1. `{"turn": id, "baseBytes": n}` to the events. *Crash:* the turn was interrupted, without events.
//! 2. Each event to the events, before the model sees it, and `{"started": id}` before a call starts that must not run
//!    twice (EFFECT-01); synced before a tool acts on the world. *Crash:* the turn was interrupted; its events and started
//!    calls are given out, and the turn can go on.
//! 3. A turn that did more than append: the new base beside the old one, as `base.jsonl.tmp`, synced. Lines that stay are
//!    copied. *Crash:* as after 2; the file is overwritten by the next one.
//! 4. `{"fold": id, "pure": …, "baseBytesAfter": …, "crc": …, "state": {…}}` to the events, and one sync: **the commit**.
//!    *Crash before the sync:* as after 2, or as after 4, and nobody was told. *Crash after it:* the base is not of that
//!    length and checksum, so it is cut to `baseBytes` and the events are folded into it again, and 5 to 7 are done.
//! 5. The new base. A turn that only appended adds its lines and syncs; another one puts the new file in the place of the
//!    old one, and syncs the directory. *Crash within:* as after 4. *Crash after it:* the base has that length and
//!    checksum, so it is left alone, and 6 and 7 are done.
//! 6. The state files, each replaced in one step. *Crash within or after it:* as after 5; the files are written again.
//! 7. The events are emptied, without a sync. *Crash:* nothing is left to do, or the same as after 6.
//!
//! A failure up to 4 leaves the turn uncommitted, to be committed again; only a failed sync leaves it open, and says that
//! the instance must be opened again. After 4 a commit does not fail: what is left is done before the next turn begins, and
//! if that fails, the turn does not begin.
//!
//! All of it passes one seam, `disk.rs`, so that a test notes it and opens what each crash on the way leaves.
//!
//! # Damage
//! A last line that a crash tore, and pages of the events that never came to the disk with all that follows them, are cut
//! off and kept as `<file>.corrupt-<n>`; so are records of a later version. Other damage stops the opening with an error that
//! names file and line.

mod atomic;
mod base;
mod disk;
mod events;
mod fold;
mod journal;
mod lines;
mod lock;
mod log;
mod metadata;
mod outside;
mod place;
mod recovery;
mod repair;
mod runtime_events;
mod state;
mod transfer;

use std::path::{Path, PathBuf};
use std::sync::Arc;

#[doc(hidden)]
pub use disk::{Disk, DiskFile, How, RealDisk};
pub use outside::{StoredConversation, StoredInstance};
pub use place::{state_root, workspace_id};
pub use repair::StoredFault;

use super::{InstanceId, Opened, Store};
use crate::BoxFuture;
use crate::error::{Error, ErrorCode, Result};
use atomic::Files;
use disk::Unsynced;
use place::Place;
pub(super) use place::directory_name;

/// Keeps instances in the files of one workspace directory. It holds nothing open itself: each instance that it opens is
/// locked until its journal is dropped.
///
/// ```
/// use goondan_core::store::{FileStore, state_root};
/// # fn main() -> goondan_core::Result<()> {
/// let store = FileStore::in_workspace(&state_root(None)?, "my-swarm")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    fsync: Fsync,
}

/// When what happens in an instance is brought to the medium, so that it outlives a failure of the machine. What a turn
/// leaves outlives the process in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fsync {
    /// At the end of each turn, and before each tool call that may act on the world.
    #[default]
    Turn,
    /// Also before each request to the model, and after its answer.
    Always,
    /// Never: a machine that stops may take the newest turns with it, and damage files.
    Never,
}

impl Fsync {
    /// The name, as bundles and the command line have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}

impl FileStore {
    /// A store over the workspace directory `dir`, `<state root>/workspaces/<workspaceId>`. Nothing is made before an
    /// instance is opened.
    ///
    /// # Errors
    /// `E_STORE_IO` when `dir` is not a path, or is there and is not a directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        // A program that changes its working directory must not change its store with it.
        let absolute = std::path::absolute(dir).map_err(|error| {
            Error::new(ErrorCode::STORE_IO, format!("`{}` is not a directory for a store", dir.display()))
                .caused_by(error)
        })?;
        if absolute.exists() && !absolute.is_dir() {
            let message = format!("{} is there, but is not a directory", absolute.display());
            return Err(Error::new(ErrorCode::STORE_IO, message).suggest("choose another place, or move the file away"));
        }
        Ok(Self { dir: absolute, disk: Arc::new(RealDisk), fsync: Fsync::default() })
    }

    /// A store over the directory of the workspace `name` below `state_root`; see [`workspace_id`].
    ///
    /// # Errors
    /// See [`FileStore::open`].
    pub fn in_workspace(state_root: &Path, name: &str) -> Result<Self> {
        Self::open(state_root.join("workspaces").join(workspace_id(name)))
    }

    /// When it syncs; at the end of each turn and before effectful tool calls unless said otherwise.
    #[must_use]
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Writes by way of `disk`.
    #[doc(hidden)]
    #[must_use]
    pub fn on_disk(mut self, disk: impl Disk) -> Self {
        self.disk = Arc::new(disk);
        self
    }

    fn place(&self, instance: &InstanceId) -> Place {
        let disk = self.disk.clone();
        let disk = if self.fsync == Fsync::Never { Arc::new(Unsynced(disk)) } else { disk };
        Place::new(&self.dir, instance, Files::new(disk))
    }

    /// The directory of an instance, whether it exists or not (D-05).
    pub fn instance_dir(&self, instance: &InstanceId) -> PathBuf {
        self.place(instance).dir().to_owned()
    }
}

impl Store for FileStore {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move { atomic::blocking(|| journal::open(self.place(instance), instance, self.fsync)) })
    }
}
