//! Locks across processes: of an instance directory, for one journal at a time, and of a shared state.

use std::fs::{File, Metadata, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};

use goondan_core::{Error, ErrorCode, Result};
use goondan_runtime::store::InstanceId;

use super::atomic::io_error;
use super::layout::InstanceDir;
use super::path::{Access, StorePath};

/// The number of attempts to find an instance that others delete. Each attempt but the last needs a deletion just then.
const MAX_ATTEMPTS: u32 = 1_000;

/// An exclusive lock on an instance directory or a shared state, released on drop. The operating system also releases
/// it when the process ends, however it ends, so a leftover lock file blocks no later process.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
    /// Which file it is.
    locked: Metadata,
    path: StorePath,
    /// Whether the file names this process.
    signed: bool,
}

impl Lock {
    /// Locks the file at `path`, unless another holder has it. The file is created unless it exists.
    pub(super) fn at_once(path: &StorePath) -> Result<Option<Self>> {
        let file = path.open(Access::Create).map_err(|error| io_error("open", path, error))?;
        match file.try_lock() {
            Ok(()) => Self::new(file, path.clone()).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(io_error("lock", path, error)),
        }
    }

    fn new(file: File, path: StorePath) -> Result<Self> {
        let locked = file.metadata().map_err(|error| io_error("read", &path, error))?;
        Ok(Self { file, locked, path, signed: false })
    }

    /// Locks the instance whose directory `find` returns. The lock file is created unless it exists; nothing else is
    /// changed. While another process deletes the directory, `find` is called again.
    pub(super) fn take(
        instance: &InstanceId,
        mut find: impl FnMut() -> Result<InstanceDir>,
    ) -> Result<(InstanceDir, Self)> {
        let mut attempts = 0;
        loop {
            let dir = find()?;
            if let Some(lock) = Self::try_take(dir.lock(), instance)? {
                return Ok((dir, lock));
            }
            attempts += 1;
            if attempts == MAX_ATTEMPTS {
                return Err(unstable(&dir.lock()));
            }
        }
    }

    /// Locks the file at `path` as soon as no other holder has it. The file is created unless it exists.
    pub(super) fn wait(path: &StorePath) -> Result<Self> {
        for _ in 0..MAX_ATTEMPTS {
            let file = path.open(Access::Create).map_err(|error| io_error("open", path, error))?;
            file.lock().map_err(|error| io_error("lock", path, error))?;
            let lock = Self::new(file, path.clone())?;
            if lock.is_held()? {
                return Ok(lock);
            }
        }
        Err(unstable(path))
    }

    /// Locks the file at `path`. Returns `None` if the file or its directory was removed or replaced meanwhile.
    fn try_take(path: StorePath, instance: &InstanceId) -> Result<Option<Self>> {
        match path.open(Access::Create) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => Self::claim(opened.map_err(|error| io_error("open", &path, error))?, path, instance),
        }
    }

    /// Locks `file`, which was found at `path`.
    fn claim(mut file: File, path: StorePath, instance: &InstanceId) -> Result<Option<Self>> {
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(instance, &mut file)),
            Err(TryLockError::Error(error)) => return Err(io_error("lock", &path, error)),
        }
        let lock = Self::new(file, path)?;
        // An earlier holder may have deleted the file. Then its lock excludes no other opener.
        Ok(lock.is_held()?.then_some(lock))
    }

    /// Writes the id of this process to the file, for the error message of other processes.
    pub(super) fn sign(&mut self) -> Result<()> {
        let pid = format!("{}\n", std::process::id());
        let file = &mut self.file;
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
        self.signed = true;
        written.map_err(|error| io_error("write", &self.path, error))
    }

    /// Fails if the lock no longer excludes others, because its file or directory was removed or replaced.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_held()? {
            return Ok(());
        }
        let what = format!("{} was removed or replaced while the instance was open", self.path.display());
        Err(Error::new(ErrorCode::STORE_LOST, what)
            .suggest("send the input again, which opens it; delete instances with `goondan instance delete` only"))
    }

    /// Whether the path still leads to the locked file.
    fn is_held(&self) -> Result<bool> {
        self.path.leads_to(&self.locked).map_err(|error| io_error("read", &self.path, error))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // The id of this process would be wrong after this. Failures cannot be handled here.
        if self.signed {
            _ = self.file.set_len(0);
        }
        // Closing the file is not enough: a child process that was forked, but has not called exec yet, still holds a
        // copy of the descriptor and with it the lock.
        _ = self.file.unlock();
    }
}

fn unstable(path: &StorePath) -> Error {
    let what = format!("{} is another file each time it is locked", path.display());
    Error::new(ErrorCode::STORE_IO, what)
        .suggest("use a file system on which a file keeps its identity while it is open")
}

fn locked(instance: &InstanceId, file: &mut File) -> Error {
    let mut text = String::new();
    _ = file.read_to_string(&mut text);
    let holder = match text.trim().parse::<u32>() {
        Ok(pid) if pid == std::process::id() => "in this process".to_owned(),
        Ok(pid) => format!("in process {pid}"),
        Err(_) => "in another process".to_owned(),
    };
    Error::new(ErrorCode::STORE_LOCKED, format!("the instance `{instance}` is open already, {holder}"))
        .suggest("end the other use of it first, or use another instance key")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use goondan_core::{AgentName, InstanceKey};

    /// An opener that found the lock file, and gets the lock only after another process has deleted the instance, and
    /// perhaps a third one has created it again.
    #[test]
    fn the_lock_of_a_file_that_was_deleted_after_it_was_opened_does_not_count() {
        let instance = InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() };
        for created_again in [false, true] {
            let dir = tempfile::tempdir().unwrap();
            let path = StorePath::workspace(dir.path()).join("lock");
            let opened = path.open(Access::Create).unwrap();
            fs::remove_file(&*path).unwrap();
            let other = created_again.then(|| Lock::try_take(path.clone(), &instance).unwrap().unwrap());
            assert!(Lock::claim(opened, path.clone(), &instance).unwrap().is_none());
            drop(other);
            assert!(Lock::try_take(path, &instance).unwrap().is_some());
        }
    }
}
