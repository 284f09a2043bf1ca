//! Watches the files of a bundle by polling their metadata in a thread, and hears extensions that have changed them.
//!
//! For a few files, polling costs less than setting up change notifications, and it works on every file system.

use std::collections::BTreeMap;
use std::fs;
use std::future::pending;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use goondan::agent::{ReloadRequest, ReloadRequests};
use goondan::{Agent, Result};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::conversation::OpenConversation;
use super::race::{Either, race};

const POLL_INTERVAL: Duration = Duration::from_millis(300);

/// Says when to reload: files have changed, or an extension asks for it. Its thread ends after this is dropped.
pub(crate) struct Watcher {
    files: Arc<Mutex<WatchedFiles>>,
    changed: UnboundedReceiver<()>,
    /// `None` for a watcher that never reports anything.
    requests: Option<ReloadRequests>,
}

#[derive(Default)]
struct WatchedFiles {
    paths: Vec<PathBuf>,
    known: BTreeMap<PathBuf, Fingerprint>,
    /// Whether a file has changed, and may still be being written.
    unsettled: bool,
}

impl Watcher {
    /// Starts watching the files of `conversation`, and listening to the extensions of its agents.
    pub(crate) fn start(conversation: &OpenConversation) -> Result<Self> {
        let (sender, changed) = unbounded_channel();
        let paths = conversation.files();
        let files = Arc::new(Mutex::new(WatchedFiles { known: fingerprints(&paths), paths, unsettled: false }));
        let shared = Arc::clone(&files);
        thread::Builder::new().name("watch".to_owned()).spawn(move || poll(&shared, &sender))?;
        let requests = conversation.agents().next().map(Agent::reload_requests);
        let this = Self { files, changed, requests };
        this.watch(conversation);
        Ok(this)
    }

    /// Returns a watcher that never reports anything.
    pub(crate) fn disabled() -> Self {
        // The sender is dropped at once.
        Self { files: Arc::default(), changed: unbounded_channel().1, requests: None }
    }

    /// Waits for a change. Returns the request of the extension that made it, if one did.
    pub(crate) async fn changed(&mut self) -> Option<ReloadRequest> {
        loop {
            let changed = async {
                if self.changed.recv().await.is_none() {
                    pending().await
                }
            };
            match race(requested(&mut self.requests), changed).await {
                Either::Left(request) if self.take_changes() => return Some(request),
                Either::Left(request) => request.refuse("no file of the bundle has changed"),
                Either::Right(()) => return None,
            }
        }
    }

    /// Waits for a request of an extension.
    pub(crate) async fn requested(&mut self) -> ReloadRequest {
        requested(&mut self.requests).await
    }

    /// Regards the files as they are now as known. Returns whether one has changed.
    pub(crate) fn take_changes(&mut self) -> bool {
        let mut files = lock(&self.files);
        let settled = files.look();
        let unsettled = std::mem::take(&mut files.unsettled);
        drop(files);
        let mut told = false;
        while self.changed.try_recv().is_ok() {
            told = true;
        }
        settled || unsettled || told
    }

    /// Watches the files and agents that `conversation` has now.
    pub(crate) fn watch(&self, conversation: &OpenConversation) {
        lock(&self.files).paths = conversation.files();
        if let Some(requests) = &self.requests {
            conversation.agents().for_each(|agent| requests.follow(agent));
        }
    }
}

async fn requested(requests: &mut Option<ReloadRequests>) -> ReloadRequest {
    if let Some(requests) = requests
        && let Some(request) = requests.next().await
    {
        return request;
    }
    pending().await
}

fn lock(files: &Mutex<WatchedFiles>) -> MutexGuard<'_, WatchedFiles> {
    files.lock().unwrap_or_else(PoisonError::into_inner)
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

impl WatchedFiles {
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
fn poll(files: &Mutex<WatchedFiles>, changed: &UnboundedSender<()>) {
    while !changed.is_closed() {
        thread::sleep(POLL_INTERVAL);
        let settled = lock(files).look();
        if settled && changed.send(()).is_err() {
            return;
        }
    }
}
