//! A server that runs, until it is ended.

use std::sync::Weak;
use std::time::Duration;

use process::Process;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::process::Stderr;
use super::session::{Client, Session};

/// Callbacks for a running server.
pub(crate) trait Watch: Send + Sync + 'static {
    /// The server wrote a line to its standard error.
    fn heard(&self, line: &str);
    /// The process of the server ended by itself.
    fn ended(&self, reason: &str);
}

/// A server that runs. Its process is killed when this is dropped.
pub(crate) struct Live {
    session: Session,
    /// Tasks that ask the server. They end with this.
    tasks: JoinSet<()>,
    /// Asks the task that holds the process to end it in this time; `None` if there is no process.
    end: Option<oneshot::Sender<Duration>>,
    ended: Ended,
}

/// The end of a server's process, once it has ended.
pub(crate) type Ended = watch::Receiver<Option<String>>;

impl Live {
    #[cfg(feature = "http")]
    pub(super) fn without_process(session: Session) -> Self {
        // The sender was dropped: how the process ended stays unknown.
        let (_, ended) = watch::channel(None);
        Self { session, tasks: JoinSet::new(), end: None, ended }
    }

    pub(super) fn with_process(session: Session, mut process: Process, stderr: Stderr, watch: Weak<dyn Watch>) -> Self {
        let (end, asked_to_end) = oneshot::channel();
        let (told, ended) = watch::channel(None);
        let close = session.closer();
        // The process is awaited and not its output, which something that it started may hold open.
        tokio::spawn(async move {
            let status = tokio::select! {
                status = process.wait() => status,
                grace = asked_to_end => {
                    // Without `grace`, the process is dropped, and so killed.
                    if let Ok(grace) = grace {
                        let _ = process.end(grace).await;
                    }
                    return;
                }
            };
            close();
            let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
            let reason = format!("it ended: {status}; {}", stderr.last_words().await);
            if let Some(watch) = watch.upgrade() {
                watch.ended(&reason);
            }
            told.send_replace(Some(reason));
        });
        Self { session, tasks: JoinSet::new(), end: Some(end), ended }
    }

    /// Returns whether the server can be asked.
    pub(crate) fn is_open(&self) -> bool {
        self.session.is_open()
    }

    pub(crate) fn client(&self) -> Client {
        self.session.client()
    }

    pub(crate) fn ended(&self) -> Ended {
        self.ended.clone()
    }

    /// Runs a task that ends with the server.
    pub(crate) fn spawn(&mut self, task: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(task);
    }

    /// Closes the input of the server, and ends its process in `grace`.
    pub(crate) async fn end(self, grace: Duration) {
        let Some(end) = self.end else {
            // The server is told that its session ends; if it does not answer, the session ends anyway.
            let _ = timeout(grace, self.session.close()).await;
            return;
        };
        // Without waiting for it, because a server that does not read may block the last message.
        self.session.closer()();
        let mut ended = self.ended;
        if end.send(grace).is_ok() {
            // The task of the process drops its sender when it is done.
            while ended.changed().await.is_ok() {}
        }
    }
}
