//! The status of an instance, told from its files without changing them.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::Read;

use goondan_runtime::store::InstanceStatus;

use super::grammar::{JournalRecords, open_turn_start};
use super::layout::InstanceDir;
use super::path::Access;
use super::standing::read_journal;

/// The locks that processes of this system hold. Trying to take a lock would tell too, but would make another process
/// that tries at the same moment fail.
pub(super) struct HeldLocks {
    /// The inodes and the processes.
    held: HashSet<(u64, u32)>,
}

impl HeldLocks {
    pub(super) fn read() -> Self {
        // Each line is such as `1: FLOCK  ADVISORY  WRITE 4711 fe:00:1234 0 EOF`. Other systems have no such file.
        let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
        let held = locks.lines().filter_map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, "FLOCK", _, _, process, inode, ..] = words[..] else { return None };
            Some((inode.rsplit(':').next()?.parse().ok()?, process.parse().ok()?))
        });
        Self { held: held.collect() }
    }

    /// Whether the lock of an instance is held. The lock file names the process that took it last, and file systems
    /// may have the same numbers of inodes, so both must match.
    fn is_held(&self, dir: &InstanceDir) -> bool {
        let Ok(mut file) = dir.lock().open(Access::Read) else { return false };
        let Some(inode) = inode(&file) else { return false };
        let mut text = String::new();
        let process = file.read_to_string(&mut text).ok().and_then(|_| text.trim().parse().ok());
        process.is_some_and(|process| self.held.contains(&(inode, process)))
    }
}

#[cfg(unix)]
fn inode(lock: &File) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    lock.metadata().ok().map(|found| found.ino())
}

#[cfg(not(unix))]
fn inode(_: &File) -> Option<u64> {
    None
}

/// Returns the status of the instance in `dir`. It is no error that the events cannot be read: those who list many
/// instances want the others too.
pub(super) fn status(dir: &InstanceDir, locks: &HeldLocks) -> InstanceStatus {
    if locks.is_held(dir) {
        return InstanceStatus::Open;
    }
    let Ok((bytes, _)) = read_journal(dir) else { return InstanceStatus::Unreadable };
    match JournalRecords::open_turn(&bytes[open_turn_start(&bytes)..], &dir.events()) {
        None => InstanceStatus::Idle,
        Some(open) if open.facts.undecided().next().is_some() => InstanceStatus::Suspended,
        Some(_) => InstanceStatus::Interrupted,
    }
}
