//! The store: one workspace directory with instances.
//!
//! # Protocol
//! The journal, `events.jsonl`, holds the turns since its first record, the checkpoint
//! `{"format":1, "committed": id, "baseBytes": n, "crc": …, "state": {name: crc}, "answered": […]}`, which says what
//! the other files were when it began. The writes of a turn, in order, each with the state that a crash leaves and
//! the answer of the next opening:
//!
//! 1. Append `{"turn": id, "after": id, "event": {…}, "digest": …}` to the journal, `event` being the input event that
//!    the turn answers; then each message event before the model sees it, with `by` if a layer emitted it;
//!    `{"reached": …}` for any other fact, and before a fact `{"state": {…}}` if it changed (RESUME-01);
//!    `{"started": id}` before a call starts that must not run twice (EFFECT-01); sync before a tool acts on the world.
//!    *Crash:* the turn was interrupted; the opening returns the record of it. If it goes on,
//!    `{"resume": id, "keep": n}` takes back the message events after the first `n`; calls that wait for a decision,
//!    and state that changes while it does not run, are `{"suspend": id, "waits": […], "state": {…}}`, synced; what
//!    was decided is `{"decided": {…}}`.
//! 2. Append `{"fold": id, "pure": …, "eventsCrc": …, "state": {…}, "outcome": {…}}` and sync: **the commit**, and the
//!    only sync that each turn makes. *Crash before the sync:* as after 1 or as after 2, and no caller was told of a
//!    commit. *Crash after it:* the opening adds the turns of the journal to the base, in memory.
//! 3. If all turns that the base lacks only append: their lines behind the base, without a sync, for readers.
//!    *Crash:* any part of them is there, or zeros. The missing part is written again.
//!
//! When the journal is full, and when a conversation is closed whose turns did more than append, or set state:
//!
//! 4. Write the new base as `base.jsonl.tmp`, with unchanged lines copied, and sync it; append
//!    `{"folded": id, "baseBytes": n, "crc": …}` to the journal and sync it; rename. *Crash:* the base is the one before
//!    or the one after. The opening goes on from the newest one that the journal knows.
//! 5. Replace the files of changed state. *Crash:* some are new. The journal has all of it.
//! 6. Only if the journal is full: sync the base and the directories, then replace the journal by a new checkpoint,
//!    synced, with its directory. *Crash:* the old journal or the new one. Both describe the other files.
//!
//! A failure up to and including 2 leaves the turn uncommitted, and the commit can be tried again. The exception is a
//! failed sync of the journal: it leaves the outcome open, and the error says that the instance must be opened again.
//! After 2 a commit no longer fails. If 3 to 6 fail, the files are read again before the next turn begins.
//!
//! All these writes go through one seam, `disk.rs`. A test records them there and opens every state that a crash could
//! leave.
//!
//! # Lock
//! A process that opens an instance locks its file `lock`. This excludes others only as long as the path leads to the
//! locked file, so the process then compares the two, and starts again if they differ. Deleting an instance takes the
//! lock, renames the directory, and only then removes its entries: an opening that found the old directory notices,
//! and makes a new one. The journal compares again before each flush and commit. If something else removed or replaced
//! the file, the error is `E_STORE_LOST` and nothing is written, because another process may have the instance open.
//!
//! # Damage
//! Opening cuts off a torn end of the journal, and pages of it that were never written to the disk with everything
//! after them, if no turn begins behind them; the bytes are kept as `<file>.corrupt-<n>`. Any other damage fails the
//! opening with an error that names the file, and the line if it is known (BITS-01):
//!
//! - The checkpoint and the first and last records of turns end with `sum`, the CRC-32 of everything before it in the
//!   line. The others of a committed turn are covered by its `eventsCrc`. Each turn names the one before it.
//! - The base must be one that the checkpoint or a `folded` record describes, and the lines after it those that the
//!   turns since then append, or zeros. With `fsync: never`, anything else that follows is kept aside.
//! - A state file must be the one of the checkpoint, or one that a turn since then stored.
//!
//! A journal that loses whole turns at its end is found by the base, which has more then; if those turns did more than
//! append, or were not shown in the base yet, it is not told apart from an earlier moment.
//!
//! # Blocking
//! The store does its I/O on the caller's thread, also in its `async` functions: a sync takes about a millisecond,
//! and a hop to another thread would slow down every step of a turn. Since these functions have no await point,
//! dropping their future cannot leave a write half done. With [`Syncs::InPlace`] it is the runtime's other tasks that
//! hop: the file system makes syncs that are in flight together with one commit of its own, if there are threads to
//! wait for each.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{BoxFuture, Error, ErrorCode, EventId, ExtensionName, Message, Result};
use goondan_runtime::store::{EndedTurn, InstanceId, InstancePage, InstanceQuery, Opened, Store};
use serde_json::Value;

use super::Fsync;
use super::atomic::FileOps;
use super::disk::{Disk, RealDisk, UnsyncedDisk};
use super::journal;
use super::layout::InstanceDir;
use super::layout::{agreements_dir, workspace_id};
use super::path::StorePath;
use super::shared;
use super::syncs::{InPlaceDisk, Syncs};

/// Keeps instances in the files of one workspace directory. It keeps no files open itself: each instance that it
/// opens is locked until its journal is dropped.
///
/// ```
/// use goondan::store::{FileStore, state_root};
/// # fn main() -> goondan::Result<()> {
/// let store = FileStore::in_workspace(&state_root(None)?, "my-swarm")?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct FileStore {
    pub(super) workspace: PathBuf,
    disk: Arc<dyn Disk>,
    pub(super) fsync: Fsync,
    syncs: Syncs,
    journal_limit: Option<u64>,
}

impl FileStore {
    /// Returns a store for the workspace directory `dir`, `<state root>/workspaces/<workspaceId>`. Nothing is created
    /// until an instance is opened.
    ///
    /// # Errors
    /// `E_STORE_IO` when `dir` is not a path, or exists and is not a directory.
    pub fn open(dir: impl AsRef<Path>) -> Result<Self> {
        let dir = dir.as_ref();
        // Absolute, so that the store stays the same when the program changes its working directory.
        let workspace = std::path::absolute(dir).map_err(|error| {
            Error::new(ErrorCode::STORE_IO, format!("`{}` is not a directory for a store", dir.display()))
                .caused_by(error)
        })?;
        if workspace.metadata().is_ok_and(|found| !found.is_dir()) {
            let message = format!("{} exists, but is not a directory", workspace.display());
            return Err(Error::new(ErrorCode::STORE_IO, message).suggest("choose another place, or move the file away"));
        }
        let (fsync, syncs) = (Fsync::default(), Syncs::default());
        Ok(Self { workspace, disk: Arc::new(RealDisk), fsync, syncs, journal_limit: None })
    }

    /// Returns a store for the directory of the workspace `name` below `state_root`; see [`workspace_id`].
    ///
    /// # Errors
    /// See [`FileStore::open`].
    pub fn in_workspace(state_root: &Path, name: &str) -> Result<Self> {
        Self::open(state_root.join("workspaces").join(workspace_id(name)))
    }

    /// Sets when the store syncs. Defaults to [`Fsync::Turn`].
    #[must_use]
    pub fn fsync(mut self, fsync: Fsync) -> Self {
        self.fsync = fsync;
        self
    }

    /// Sets whether the runtime's other tasks run during a sync. Defaults to [`Syncs::OnThread`].
    #[must_use]
    pub fn syncs(mut self, syncs: Syncs) -> Self {
        self.syncs = syncs;
        self
    }

    /// Sends all writes to `disk`, for tests that record them.
    #[doc(hidden)]
    #[must_use]
    pub fn on_disk(mut self, disk: impl Disk) -> Self {
        self.disk = Arc::new(disk);
        self
    }

    /// Sets the length at which a journal is full, instead of the length that depends on the base, for tests of
    /// checkpoints.
    #[doc(hidden)]
    #[must_use]
    pub fn journal_limit(mut self, bytes: u64) -> Self {
        self.journal_limit = Some(bytes);
        self
    }

    pub(super) fn dir_of(&self, instance: &InstanceId) -> InstanceDir {
        InstanceDir::new(&self.workspace, instance, FileOps::new(self.disk()))
    }

    pub(super) fn disk(&self) -> Arc<dyn Disk> {
        let disk = self.disk.clone();
        match (self.fsync, self.syncs) {
            (Fsync::Never, _) => Arc::new(UnsyncedDisk(disk)),
            (_, Syncs::OnThread) => disk,
            (_, Syncs::InPlace) => Arc::new(InPlaceDisk(disk)),
        }
    }

    /// Returns the path of an instance's directory, whether or not it exists.
    // D-05
    pub fn instance_dir(&self, instance: &InstanceId) -> PathBuf {
        self.dir_of(instance).path().to_path_buf()
    }
}

/// Makes, unless it exists, and returns the directory for the files of an extension below `workspace`.
// LINKS-01
pub(super) fn extension_dir(workspace: &Path, extension: &ExtensionName, disk: Arc<dyn Disk>) -> Result<PathBuf> {
    let dir = StorePath::workspace(workspace).join("extensions").join(extension.as_str());
    FileOps::new(disk).create_dirs(&dir)?;
    Ok(dir.to_path_buf())
}

impl Store for FileStore {
    fn open<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Opened>> {
        Box::pin(async move { journal::open(self.dir_of(instance), instance, self.fsync, self.journal_limit) })
    }

    fn list<'a>(&'a self, query: &'a InstanceQuery) -> BoxFuture<'a, Result<InstancePage>> {
        Box::pin(async move { self.list_now(query) })
    }

    fn delete<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<bool>> {
        Box::pin(async move {
            match self.delete(instance) {
                Ok(()) => Ok(true),
                Err(error) if *error.code() == ErrorCode::STORE_NOT_FOUND => Ok(false),
                Err(error) => Err(error),
            }
        })
    }

    fn messages<'a>(&'a self, instance: &'a InstanceId) -> BoxFuture<'a, Result<Option<Vec<Arc<Message>>>>> {
        Box::pin(async move {
            match self.read(instance) {
                Ok(conversation) => Ok(Some(conversation.messages)),
                Err(error) if *error.code() == ErrorCode::STORE_NOT_FOUND => Ok(None),
                Err(error) => Err(error),
            }
        })
    }

    fn outcome<'a>(&'a self, instance: &'a InstanceId, event: &'a EventId) -> BoxFuture<'a, Result<Option<EndedTurn>>> {
        Box::pin(async move { self.outcome_now(instance, event) })
    }

    fn workspace(&self) -> Option<&str> {
        self.workspace.file_name()?.to_str()
    }

    /// With the other workspaces of the state root, whose agents this program may run too.
    fn directories(&self) -> Vec<PathBuf> {
        let all = self.workspace.parent().filter(|parent| parent.ends_with("workspaces"));
        match all.and_then(|all| Some((all, all.parent()?))) {
            Some((all, root)) => vec![all.to_owned(), agreements_dir(root)],
            None => vec![self.workspace.clone()],
        }
    }

    fn extension_dir(&self, extension: &ExtensionName) -> Result<PathBuf> {
        extension_dir(&self.workspace, extension, self.disk())
    }

    fn shared_state(&self, extension: &ExtensionName) -> Result<Option<Value>> {
        shared::read(&self.workspace, extension)
    }

    fn update_shared_state(
        &self,
        extension: &ExtensionName,
        change: &mut dyn FnMut(Option<Value>) -> Result<Value>,
    ) -> Result<()> {
        shared::update(&self.workspace, extension, self.disk(), change)
    }
}
