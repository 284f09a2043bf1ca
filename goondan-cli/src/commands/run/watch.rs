//! Owns watching: the files that a conversation is made of, looked at again and again by a thread of its own.
//!
//! Looking at a few files is cheaper than what it takes to be told of changes, and it works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use goondan::Result;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How often the files are looked at.
const PACE: Duration = Duration::from_millis(300);

/// Watches files; without any it never tells of a change.
pub(crate) struct Watch {
    files: Arc<Mutex<Vec<PathBuf>>>,
    changed: UnboundedReceiver<()>,
}

impl Watch {
    /// Watches `files` from now on.
    pub(crate) fn start(files: Vec<PathBuf>) -> Result<Self> {
        let (sender, changed) = unbounded_channel();
        let known = looks(&files);
        let files = Arc::new(Mutex::new(files));
        let shared = Arc::clone(&files);
        thread::Builder::new().name("watch".to_owned()).spawn(move || look(&shared, known, &sender))?;
        Ok(Self { files, changed })
    }

    /// Watches nothing.
    pub(crate) fn nothing() -> Self {
        // A channel whose other end is gone.
        Self { files: Arc::default(), changed: unbounded_channel().1 }
    }

    /// Waits until files have changed.
    pub(crate) async fn changed(&mut self) {
        if self.changed.recv().await.is_none() {
            std::future::pending().await
        }
    }

    /// Whether files have changed since the last time.
    pub(crate) fn has_changed(&mut self) -> bool {
        self.changed.try_recv().is_ok()
    }

    /// Watches these from now on.
    pub(crate) fn watch(&self, files: Vec<PathBuf>) {
        *self.files.lock().unwrap_or_else(PoisonError::into_inner) = files;
    }
}

/// What a file looks like without being opened; `None` when there is none.
type Look = Option<(u64, u64, u64, i64, i64)>;

fn looks(files: &[PathBuf]) -> BTreeMap<PathBuf, Look> {
    let look = |path: &PathBuf| {
        let file = fs::metadata(path).ok()?;
        Some((file.dev(), file.ino(), file.size(), file.mtime(), file.mtime_nsec()))
    };
    files.iter().map(|path| (path.clone(), look(path))).collect()
}

/// Tells of changes until nobody listens. A file that is just being written looks different each time: it is waited for.
fn look(files: &Mutex<Vec<PathBuf>>, mut known: BTreeMap<PathBuf, Look>, changed: &UnboundedSender<()>) {
    let mut unsettled = false;
    while !changed.is_closed() {
        thread::sleep(PACE);
        let now = looks(&files.lock().unwrap_or_else(PoisonError::into_inner));
        // What is watched only now is no change.
        let differs = now.iter().any(|(path, look)| known.get(path).is_some_and(|before| before != look));
        known = now;
        if differs {
            unsettled = true;
        } else if std::mem::take(&mut unsettled) && changed.send(()).is_err() {
            return;
        }
    }
}
