//! Lock of an instance directory: one journal at a time, across processes.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

use super::super::InstanceId;
use super::atomic::io_error;
use crate::error::{Error, ErrorCode, Result};

/// An exclusive lock on an instance directory, released on drop. The operating system also releases it when the process
/// ends, however it ends, so a leftover lock file blocks no later process.
#[derive(Debug)]
pub(super) struct Lock {
    file: File,
}

impl Lock {
    pub(super) fn take(path: &Path, instance: &InstanceId) -> Result<Self> {
        let open = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let mut file = open.map_err(|error| io_error("open", path, error))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(locked(instance, &mut file)),
            Err(TryLockError::Error(error)) => return Err(io_error("lock", path, error)),
        }
        // For the error message of other processes only; the lock itself does not depend on it.
        let pid = format!("{}\n", std::process::id());
        let written = file.set_len(0).and_then(|()| file.rewind()).and_then(|()| file.write_all(pid.as_bytes()));
        written.map_err(|error| io_error("write", path, error))?;
        Ok(Self { file })
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a child process that was forked, but has not called exec yet, still holds a
        // copy of the descriptor and with it the lock. A failure cannot be handled here.
        _ = self.file.unlock();
    }
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
