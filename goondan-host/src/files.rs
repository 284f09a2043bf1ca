//! The files of a bundle, watched by polling their metadata in a thread.
//!
//! For a few files, polling costs less than setting up change notifications, and it works on every file system.

use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use goondan_core::Result;
use goondan_lock::Lock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Files, and whether they have changed. Its thread ends after this is dropped.
pub(crate) struct Files {
    watched: Arc<Lock<Watched>>,
    changed: UnboundedReceiver<()>,
}

#[derive(Default)]
struct Watched {
    paths: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Fingerprint>,
    /// Whether a file has changed, and may still be being written.
    unsettled: bool,
}

impl Files {
    /// Starts watching.
    pub(crate) fn watch(paths: Vec<PathBuf>) -> Result<Self> {
        let (sender, changed) = unbounded_channel();
        let watched = Arc::new(Lock::new(Watched { known: fingerprints(&paths), paths, unsettled: false }));
        let shared = Arc::clone(&watched);
        thread::Builder::new().name("watch".to_owned()).spawn(move || poll(&shared, &sender))?;
        Ok(Self { watched, changed })
    }

    /// Waits until files have changed and are not being written any more.
    pub(crate) async fn changed(&mut self) {
        if self.changed.recv().await.is_none() {
            // The thread ends after the receiver does.
            std::future::pending().await
        }
    }

    /// Regards the files as they are now as known. Returns whether one has changed.
    pub(crate) fn take_changes(&mut self) -> bool {
        let mut watched = self.watched.lock();
        let settled = watched.look();
        let unsettled = std::mem::take(&mut watched.unsettled);
        drop(watched);
        let mut reported = false;
        while self.changed.try_recv().is_ok() {
            reported = true;
        }
        settled || unsettled || reported
    }

    /// Replaces the files that are watched.
    pub(crate) fn set(&self, paths: Vec<PathBuf>) {
        self.watched.lock().paths = paths;
    }
}

/// Size, modification time, and device and inode of a file; `None` if it does not exist.
type Fingerprint = Option<(u64, Option<SystemTime>, (u64, u64))>;

fn fingerprints(files: &[PathBuf]) -> BTreeMap<PathBuf, Fingerprint> {
    let fingerprint = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.len(), file.modified().ok(), identity(&file)))
    };
    files.iter().map(|path| (path.clone(), fingerprint(path))).collect()
}

#[cfg(unix)]
fn identity(file: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

#[cfg(not(unix))]
fn identity(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

impl Watched {
    /// Returns whether files have changed and are not being written any more. A file that is still being written
    /// differs from look to look, so a change is reported by the first look without a difference.
    fn look(&mut self) -> bool {
        let now = fingerprints(&self.paths);
        // A file that is newly watched is not a change.
        let differs = now.iter().any(|(path, new)| self.known.get(path).is_some_and(|old| old != new));
        self.known = now;
        let settled = !differs && self.unsettled;
        self.unsettled = differs;
        settled
    }
}

/// Sends a message for each change until the receiver is dropped.
fn poll(watched: &Lock<Watched>, changed: &UnboundedSender<()>) {
    while !changed.is_closed() {
        thread::sleep(POLL_INTERVAL);
        let settled = watched.lock().look();
        if settled && changed.send(()).is_err() {
            return;
        }
    }
}
