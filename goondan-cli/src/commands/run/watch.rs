//! Watches the files of a bundle by polling their metadata in a thread.
//!
//! For a few files, polling costs less than setting up change notifications, and it works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use goondan::Result;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Reports changes of files. Its thread ends after this is dropped.
pub(crate) struct FileWatcher {
    files: Arc<Mutex<Vec<PathBuf>>>,
    changed: UnboundedReceiver<()>,
}

impl FileWatcher {
    /// Starts watching `files`.
    pub(crate) fn start(files: Vec<PathBuf>) -> Result<Self> {
        let (sender, changed) = unbounded_channel();
        let known = fingerprints(&files);
        let files = Arc::new(Mutex::new(files));
        let shared = Arc::clone(&files);
        thread::Builder::new().name("watch".to_owned()).spawn(move || poll(&shared, known, &sender))?;
        Ok(Self { files, changed })
    }

    /// Returns a watcher without files, which never reports a change.
    pub(crate) fn disabled() -> Self {
        // The sender is dropped at once.
        Self { files: Arc::default(), changed: unbounded_channel().1 }
    }

    /// Waits for a change.
    pub(crate) async fn changed(&mut self) {
        if self.changed.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// Replaces the watched files.
    pub(crate) fn watch(&self, files: Vec<PathBuf>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }
}

/// Device, inode, size and modification time of a file; `None` if it does not exist.
type Fingerprint = Option<(u64, u64, u64, i64, i64)>;

fn fingerprints(files: &[PathBuf]) -> BTreeMap<PathBuf, Fingerprint> {
    let fingerprint = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(|path| (path.clone(), fingerprint(path))).collect()
}

/// Sends a message for each change until the receiver is dropped. A file that is still being written differs from
/// poll to poll, so the message is sent after the first poll without a difference.
fn poll(files: &Mutex<Vec<PathBuf>>, mut known: BTreeMap<PathBuf, Fingerprint>, changed: &UnboundedSender<()>) {
    let mut unsettled = false;
    while !changed.is_closed() {
        thread::sleep(POLL_INTERVAL);
        let now = fingerprints(&files.lock().unwrap_or_else(PoisonError::into_inner));
        // A file that is newly watched is not a change.
        let differs = now.iter().any(|(path, new)| known.get(path).is_some_and(|old| old != new));
        known = now;
        if differs {
            unsettled = true;
        } else if std::mem::take(&mut unsettled) && changed.send(()).is_err() {
            return;
        }
    }
}
