//! The store: one workspace directory with instances.
//!
//! # Protocol
//! The writes of a turn, in order, each with the state that a crash leaves and what the next opening does about it:
//!
//! 1. Append `{"turn": id, "baseBytes": n, "event": {…}, "digest": …}` to the events, `event` being the input event that
//!    the turn answers. *Crash:* the turn was interrupted and has no message events.
//! 2. Append each event to the events before the model sees it, with `by` if a layer emitted it; `{"reached": …}` for what
//!    else is a fact, and before a fact `{"state": {…}}` if it changed (RESUME-01); `{"started": id}` before a call
//!    starts that must not run twice (EFFECT-01); sync before a tool acts on the world. *Crash:* the turn was
//!    interrupted; the opening returns what is recorded of it. If it goes on, `{"resume": id, "keep": n}` takes back
//!    the message events after the first `n`; calls that wait for a decision, and state that changes while
//!    it does not run, are `{"suspend": id, "waits": […], "state": {…}}`, synced; what was decided is
//!    `{"decided": {…}}`.
//! 3. Only if the turn did more than append: write the new base beside the old one, as `base.jsonl.tmp`, and sync it.
//!    Unchanged lines are copied. *Crash:* as after 2; the next turn that does more than append removes the file.
//! 4. Append `{"fold": id, "pure": …, "baseBytesAfter": …, "crc": …, "eventsCrc": …, "state": {…}, "outcome": {…}}` to
//!    the events and sync once: **the commit**. *Crash before the sync:* as after 2 or as after 4, and no caller was
//!    told of a commit. *Crash after it:* the base does not have that length and checksum, so the opening cuts it to
//!    `baseBytes`, folds the events into it again, and does 5 to 8.
//! 5. Write the new base. If the turn only appended, append its lines and sync; otherwise rename the new file over the
//!    old one and sync the directory. *Crash during it:* as after 4. *Crash after it:* the base has that length and
//!    checksum, so the opening leaves it alone and does 6 to 8.
//! 6. Replace each changed state file atomically. *Crash during or after it:* as after 5; the opening writes the files
//!    again.
//! 7. Append `{"turn": id, "digest": …, "type": …, …}` to `ended.jsonl`, without a sync: how the turn ended, so that its
//!    event is answered once (ONCE-01). *Crash:* as after 6.
//! 8. Empty the events, and write `{"committed": id, "baseBytes": n, "crc": …, "state": {name: crc}}` to them, without a
//!    sync: length and checksum of the base, and the checksum of each state file. *Crash:* nothing is left to do, or as
//!    after 7. Without the record, or with a part of it, the next opening trusts the files.
//!
//! A failure up to and including 4 leaves the turn uncommitted, and the commit can be tried again. The exception is a
//! failed sync of the events: it leaves the outcome open, and the error says that the instance must be opened again.
//! After 4 a commit no longer fails: remaining steps are done before the next turn begins, and if that fails, the
//! turn does not begin.
//!
//! All these writes go through one seam, `disk.rs`. A test records them there and opens every state that a crash could
//! leave.
//!
//! # Lock
//! A process that opens an instance locks its file `lock`. This excludes others only as long as the path leads to the
//! locked file, so the process then compares the two, and starts again if they differ. Deleting an instance takes the
//! lock, renames the directory, and only then removes what is in it: an opening that found the old directory notices,
//! and makes a new one. The journal compares again before each flush and commit. If something else removed or replaced
//! the file, the error is `E_STORE_LOST` and nothing is written, because another process may have the instance open.
//!
//! # Damage
//! Opening cuts off a torn last line, and pages of the events that were never written to the disk with everything
//! after them, and keeps the bytes as `<file>.corrupt-<n>`; it does the same with records of a later version. Any
//! other damage fails the opening with an error that names the file, and the line if it is known (BITS-01):
//!
//! - The records of 1, 4, 7 and 8 end with `sum`, the CRC-32 of everything before it in the line. The message events of a
//!   committed turn are covered by `eventsCrc`, the CRC-32 of its records from the first one up to the fold record.
//! - The base and the state files are compared with the record of the last commit. Opening reads them in any case.
//! - A turn that is folded again must result in the base that its commit recorded. If it does not, the opening fails,
//!   with one exception: when the old base, the events and the fold record have the right checksums, the same content
//!   is only encoded differently by another version. Then the opening appends a second fold record and goes on.
//!
//! What has no checksum, because another implementation wrote it, is accepted, and gets one with
//! the next commit. An `events.jsonl` that loses its end is not told apart from an earlier moment of the turn: after a
//! crash, until the next opening, that is the one file whose end must not get lost.
//!
//! # Blocking
//! The store does its I/O on the caller's thread, also in its `async` functions: a sync takes about a millisecond,
//! and a hop to another thread would slow down every step of a turn. Since these functions have no await point,
//! dropping their future cannot leave a write half done.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{BoxFuture, Error, ErrorCode, EventId, ExtensionName, Result};
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
        if workspace.exists() && !workspace.is_dir() {
            let message = format!("{} exists, but is not a directory", workspace.display());
            return Err(Error::new(ErrorCode::STORE_IO, message).suggest("choose another place, or move the file away"));
        }
        Ok(Self { workspace, disk: Arc::new(RealDisk), fsync: Fsync::default(), journal_limit: None })
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

    /// Sends all writes to `disk`, for tests that record them.
    #[doc(hidden)]
    #[must_use]
    pub fn on_disk(mut self, disk: impl Disk) -> Self {
        self.disk = Arc::new(disk);
        self
    }

    /// Sets the length at which a journal is full, instead of what depends on the base, for tests of checkpoints.
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
        if self.fsync == Fsync::Never { Arc::new(UnsyncedDisk(disk)) } else { disk }
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
