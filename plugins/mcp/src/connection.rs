//! One connection to a server: when it starts, starts again and ends.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use goondan::extension::ExtensionApi;
use goondan::{Error, ErrorCode, Result};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::child::Child;
use crate::client::{Client, Session};
use crate::config::{Limits, Mode, Transport};
use crate::failure::{self, Failure};
use crate::listing::Listing;
use crate::restarts::{Restarts, Start};

/// How long the end of a process is waited for when the connection to it has ended.
const END: Duration = Duration::from_secs(1);

/// A connection to a server, made when it is first needed, and made again when it broke. It ends when its last user
/// leaves, and its process is killed when it is dropped.
pub(crate) struct Connection {
    server: Server,
    mode: Mode,
    /// The server, while it runs. The lock is held while it starts, so that it starts once.
    live: tokio::sync::Mutex<Option<Live>>,
    listing: Arc<Listing>,
    restarts: Mutex<Restarts>,
    users: Mutex<Vec<(u64, ExtensionApi)>>,
}

/// How the server is reached.
struct Server {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    directory: PathBuf,
}

/// A server that runs. Its process is killed when this is dropped.
struct Live {
    session: Session,
    /// Ends with this.
    _follow: JoinSet<()>,
    /// Asks the task that holds the process to end it in this time.
    end: oneshot::Sender<Duration>,
    ended: Ended,
}

/// How the process of a server ended, once it has.
type Ended = watch::Receiver<Option<String>>;

/// An extension that uses a connection.
pub(crate) struct User {
    connection: Arc<Connection>,
    id: u64,
}

impl Connection {
    /// # Errors
    /// `E_EXT_CONFIG` when the transport cannot be used.
    pub(crate) fn new(transport: &Transport, root: &Path, mode: Mode) -> Result<Arc<Self>> {
        let server = Server::new(transport, root)?;
        let (live, listing, restarts, users) = Default::default();
        Ok(Arc::new(Self { server, mode, live, listing, restarts, users }))
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Adds a user, whose bus and log hear of the connection.
    pub(crate) fn join(self: Arc<Self>, api: ExtensionApi) -> User {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        self.users().push((id, api));
        User { connection: self, id }
    }

    fn users(&self) -> MutexGuard<'_, Vec<(u64, ExtensionApi)>> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn restarts(&self) -> MutexGuard<'_, Restarts> {
        self.restarts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Emits an event on the bus of each user.
    fn tell(&self, event: &str, text: &str) {
        let users = self.users().clone();
        for (_, api) in users {
            api.events().emit(event, (text,));
        }
    }

    /// Starts the server if it does not run, and knows then what it offers.
    ///
    /// # Errors
    /// `E_MCP_START`, `E_MCP_TIMEOUT`, `E_MCP_DOWN`.
    pub(crate) async fn start(self: &Arc<Self>, limits: &Limits) -> Result<()> {
        match self.mode {
            Mode::Stateful => self.live_client(limits).await.map(drop),
            Mode::Stateless => {
                let live = self.open(Weak::new(), limits).await?;
                let asked = self.listing.ask(&live.session.client(), limits.connect()).await;
                live.end(limits.shutdown()).await;
                asked
            }
        }
    }

    /// Asks the server something, which is started if it does not run.
    ///
    /// # Errors
    /// As [`Self::start`]; `E_MCP_GONE` when the server ends before it answers; the error that it answers with.
    pub(crate) async fn ask<T, F>(self: &Arc<Self>, limits: &Limits, question: impl FnOnce(Client) -> F) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        let (answer, ended) = match self.mode {
            Mode::Stateful => {
                let (client, ended) = self.live_client(limits).await?;
                (question(client).await, ended)
            }
            Mode::Stateless => {
                let live = self.open(Weak::new(), limits).await?;
                let (answer, ended) = (question(live.session.client()).await, live.ended.clone());
                if !matches!(answer, Err(Failure::Gone)) {
                    live.end(limits.shutdown()).await;
                }
                (answer, ended)
            }
        };
        match answer {
            Err(Failure::Gone) => Err(self.lost(ended).await),
            Err(Failure::Answered(error)) => {
                self.restarts().answered();
                Err(error)
            }
            Ok(answer) => {
                self.restarts().answered();
                Ok(answer)
            }
        }
    }

    async fn live_client(self: &Arc<Self>, limits: &Limits) -> Result<(Client, Ended)> {
        let mut slot = self.live.lock().await;
        if let Some(live) = slot.as_ref().filter(|live| live.is_open()) {
            return Ok((live.session.client(), live.ended.clone()));
        }
        *slot = None;
        self.may_start(limits).await?;
        let failed = |_: &Error| self.restarts().failed(Instant::now());
        let mut live = self.open(Arc::downgrade(self), limits).await.inspect_err(failed)?;
        let (client, ended) = (live.session.client(), live.ended.clone());
        if let Err(error) = self.listing.ask(&client, limits.connect()).await {
            live.end(limits.shutdown()).await;
            // If the server ended by itself, that was counted.
            if *error.code() != *failure::GONE {
                failed(&error);
            }
            return Err(error);
        }
        live.follow(Arc::clone(&self.listing));
        *slot = Some(live);
        drop(slot);
        self.tell("mcp.connected", client.server_name().as_deref().unwrap_or_default());
        Ok((client, ended))
    }

    /// Waits until the server may be started.
    async fn may_start(&self, limits: &Limits) -> Result<()> {
        let (start, failures) = {
            let restarts = self.restarts();
            (restarts.next(limits.restarts, Instant::now()), restarts.failures())
        };
        match start {
            Start::After(wait) => {
                sleep(wait).await;
                Ok(())
            }
            Start::NotFor(wait) => {
                let wait = wait.as_secs() + 1;
                let message = format!("the MCP server failed {failures} times in a row");
                Err(Error::new(failure::DOWN, message)
                    .suggest(format!("do without it: it is not started again for the next {wait} s")))
            }
        }
    }

    /// Returns the error for a call that got no answer, because the connection ended.
    async fn lost(&self, mut ended: Ended) -> Error {
        let reason = match timeout(END, ended.wait_for(Option::is_some)).await {
            Ok(Ok(reason)) => reason.clone(),
            _ => None,
        };
        let mut slot = self.live.lock().await;
        // A server that closed its output but runs is killed.
        if slot.as_ref().is_some_and(|live| !live.is_open()) {
            *slot = None;
        }
        failure::gone(reason.as_deref().unwrap_or("it closed its output"))
    }

    /// Starts the server and shakes hands with it. `connection` is told when it ends by itself.
    async fn open(&self, connection: Weak<Self>, limits: &Limits) -> Result<Live> {
        let Child { mut process, input, output, stderr } = self.server.start(&connection).await?;
        let handshake = Session::over_pipes(output, input, self.listing.announced());
        let problem = tokio::select! {
            session = handshake => match session {
                Ok(session) => return Ok(Live::new(session, process, stderr, connection)),
                Err(error) => match timeout(END, process.wait()).await {
                    Ok(Ok(status)) => format!("ended at once: {status}"),
                    _ => format!("did not shake hands: {}", error.message()),
                },
            },
            status = process.wait() => match status {
                Ok(status) => format!("ended at once: {status}"),
                Err(error) => format!("cannot be awaited: {error}"),
            },
            () = sleep(limits.connect()) => format!("did not shake hands within {:?}", limits.connect()),
        };
        // What it started may hold its standard error open.
        drop(process);
        let program = &self.server.program;
        Err(Error::new(failure::START, format!("the MCP server `{program}` {problem}; {}", stderr.last_words().await)))
    }
}

impl Server {
    fn new(transport: &Transport, root: &Path) -> Result<Self> {
        match transport {
            Transport::Stdio { command, env, cwd } => {
                let Some((program, args)) = command.split_first() else {
                    return Err(Error::new(ErrorCode::EXT_CONFIG, "`transport.command` is empty"));
                };
                let env = env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let directory = cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd));
                Ok(Self { program: program.clone(), args: args.to_vec(), env, directory })
            }
            Transport::Http { .. } => {
                Err(Error::new(ErrorCode::EXT_CONFIG, "this build has no transport of the type `http`")
                    .suggest("build it with the feature `http`"))
            }
        }
    }

    /// Starts the program. The users of `connection` find its standard error in their logs.
    async fn start(&self, connection: &Weak<Connection>) -> Result<Child> {
        let connection = Weak::clone(connection);
        let heard = move |line: &str| {
            let users = connection.upgrade().map(|connection| connection.users().clone()).unwrap_or_default();
            users.iter().for_each(|(_, api)| api.logger().debug(format!("MCP server: {line}")));
        };
        Child::start(&self.program, &self.args, &self.env, &self.directory, heard).await
    }
}

impl Live {
    fn new(
        session: Session,
        mut process: process::Process,
        stderr: crate::child::Stderr,
        connection: Weak<Connection>,
    ) -> Self {
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
            if let Some(connection) = connection.upgrade() {
                connection.restarts().failed(Instant::now());
                connection.listing.stop();
                connection.tell("mcp.disconnected", &reason);
            }
            told.send_replace(Some(reason));
        });
        Self { session, _follow: JoinSet::new(), end, ended }
    }

    fn is_open(&self) -> bool {
        self.session.is_open()
    }

    /// Asks the server what it offers whenever it announces a change.
    fn follow(&mut self, listing: Arc<Listing>) {
        let client = self.session.client();
        self._follow.spawn(async move { listing.follow(&client).await });
    }

    /// Closes the input of the server, and ends its process in `grace`.
    async fn end(self, grace: Duration) {
        self.session.close().await;
        let mut ended = self.ended;
        if self.end.send(grace).is_ok() {
            // The task of the process drops its sender when it is done.
            while ended.changed().await.is_ok() {}
        }
    }
}

impl User {
    /// Ends the connection if there is no other user.
    // PATTERN-MCP-05
    pub(crate) async fn leave(self, grace: Duration) {
        let connection = Arc::clone(&self.connection);
        drop(self);
        let mut slot = connection.live.lock().await;
        // Another one may have joined until the lock was free.
        if connection.users().is_empty()
            && let Some(live) = slot.take()
        {
            live.end(grace).await;
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.connection.users().retain(|(id, _)| *id != self.id);
    }
}
