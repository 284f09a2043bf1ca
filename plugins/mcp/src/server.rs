//! How a server is started, watched and ended.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use goondan::{Error, ErrorCode, Result};
use process::Process;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;
#[cfg(feature = "http")]
use tokio::time::timeout_at;
use tokio::time::{Instant, sleep_until, timeout};

#[cfg(feature = "http")]
use crate::bearer::{Bearer, Requests};
use crate::child::{Child, Stderr};
use crate::client::{Announced, Client, Session, Subscription};
use crate::config::{Protocol, Transport};
use crate::failure;
#[cfg(feature = "http")]
use crate::http::{self, Endpoint};
use crate::listing::Listing;
use crate::users::Users;

/// How long the end of a process is waited for that did not shake hands.
const END: Duration = Duration::from_secs(1);

/// A server that can be started.
pub(crate) struct Server {
    place: Place,
    protocol: Protocol,
    /// Whether it was found that the server does not survive the question which versions of the protocol it knows.
    old: AtomicBool,
}

/// How a server is reached.
enum Place {
    Program(Program),
    #[cfg(feature = "http")]
    Endpoint(Endpoint),
}

/// A program that is started.
pub(crate) struct Program {
    name: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    directory: PathBuf,
}

/// Hears of a server while it runs.
pub(crate) trait Watch: Send + Sync + 'static {
    /// The server wrote a line to its standard error.
    fn heard(&self, line: &str);
    /// The process of the server ended by itself.
    fn ended(&self, reason: &str);
}

/// A server that runs. Its process is killed when this is dropped.
pub(crate) struct Live {
    session: Session,
    /// Lists what the server offers. It ends with this.
    listing: JoinSet<()>,
    /// Asks the task that holds the process to end it in this time; `None` if there is no process.
    end: Option<oneshot::Sender<Duration>>,
    ended: Ended,
}

/// How the process of a server ended, once it has.
pub(crate) type Ended = watch::Receiver<Option<String>>;

impl Server {
    /// # Errors
    /// `E_EXT_CONFIG` when the transport cannot be used. Relative paths start at `root`.
    pub(crate) fn new(transport: &Transport, protocol: Protocol, root: &Path, users: &Users) -> Result<Self> {
        Ok(Self { place: Place::new(transport, root, users)?, protocol, old: AtomicBool::new(false) })
    }

    /// Starts the server, and begins a session. One that ends when it is asked which versions of the protocol it knows
    /// is started again, and not asked any more.
    ///
    /// # Errors
    /// `E_MCP_START`.
    pub(crate) async fn open(
        &self,
        announced: Arc<Announced>,
        connect: Duration,
        watch: Weak<dyn Watch>,
    ) -> Result<Live> {
        let limit = Instant::now() + connect;
        let attempt = |protocol| self.place.open(protocol, Arc::clone(&announced), connect, limit, Weak::clone(&watch));
        if self.protocol != Protocol::Auto {
            return attempt(self.protocol).await;
        }
        if !self.old.load(Ordering::Relaxed) {
            let opened = attempt(Protocol::Auto).await;
            if opened.is_ok() || Instant::now() >= limit {
                return opened;
            }
        }
        let live = attempt(Protocol::Legacy).await?;
        self.old.store(true, Ordering::Relaxed);
        Ok(live)
    }
}

impl Place {
    #[cfg_attr(not(feature = "http"), expect(unused_variables, reason = "only requests have tokens"))]
    fn new(transport: &Transport, root: &Path, users: &Users) -> Result<Self> {
        match transport {
            Transport::Stdio { command, env, cwd } => {
                let Some((name, args)) = command.split_first() else {
                    return Err(Error::new(ErrorCode::EXT_CONFIG, "`transport.command` is empty"));
                };
                let env = env.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
                let directory = cwd.as_ref().map_or_else(|| root.to_owned(), |cwd| root.join(cwd));
                Ok(Self::Program(Program { name: name.clone(), args: args.to_vec(), env, directory }))
            }
            #[cfg(feature = "http")]
            Transport::Http { endpoint, headers, auth } => {
                let bearer = auth.as_ref().map(|auth| Bearer::new(auth, Arc::clone(users)));
                Endpoint::new(endpoint, headers, bearer).map(Self::Endpoint)
            }
            #[cfg(not(feature = "http"))]
            Transport::Http { .. } => {
                Err(Error::new(ErrorCode::EXT_CONFIG, "this build has no transport of the type `http`")
                    .suggest("build the extension `mcp` with its feature `http`"))
            }
        }
    }

    async fn open(
        &self,
        protocol: Protocol,
        announced: Arc<Announced>,
        connect: Duration,
        limit: Instant,
        watch: Weak<dyn Watch>,
    ) -> Result<Live> {
        match self {
            Self::Program(program) => program.open(protocol, announced, connect, limit, watch).await,
            #[cfg(feature = "http")]
            Self::Endpoint(endpoint) => {
                let requests = Requests::new(http::client(connect)?, endpoint.bearer.clone());
                let session = Session::over_http(endpoint, requests, protocol, announced);
                let problem = match timeout_at(limit, session).await {
                    Ok(Ok(session)) => return Ok(Live::without_process(session)),
                    Ok(Err(error)) => error.message().into_owned(),
                    Err(_) => format!("it did not answer within {connect:?}"),
                };
                let message = format!("the MCP server at `transport.endpoint` cannot be reached: {problem}");
                Err(Error::new(failure::START, message))
            }
        }
    }
}

impl Program {
    async fn open(
        &self,
        protocol: Protocol,
        announced: Arc<Announced>,
        connect: Duration,
        limit: Instant,
        watch: Weak<dyn Watch>,
    ) -> Result<Live> {
        let Self { name, args, env, directory } = self;
        let hearing = Weak::clone(&watch);
        let heard = move |line: &str| {
            if let Some(watch) = hearing.upgrade() {
                watch.heard(line);
            }
        };
        let Child { mut process, input, output, stderr } = Child::start(name, args, env, directory, heard).await?;
        let session = Session::over_pipes(output, input, protocol, announced);
        let problem = tokio::select! {
            session = session => match session {
                Ok(session) => return Ok(Live::with_process(session, process, stderr, watch)),
                Err(error) => match timeout(END, process.wait()).await {
                    Ok(Ok(status)) => format!("ended at once: {status}"),
                    _ => format!("did not shake hands: {}", error.message()),
                },
            },
            status = process.wait() => match status {
                Ok(status) => format!("ended at once: {status}"),
                Err(error) => format!("cannot be awaited: {error}"),
            },
            () = sleep_until(limit) => format!("did not shake hands within {connect:?}"),
        };
        // What it started may hold its standard error open.
        drop(process);
        Err(Error::new(failure::START, format!("the MCP server `{name}` {problem}; {}", stderr.last_words().await)))
    }
}

impl Live {
    #[cfg(feature = "http")]
    fn without_process(session: Session) -> Self {
        // The sender was dropped: how the process ended stays unknown.
        let (_, ended) = watch::channel(None);
        Self { session, listing: JoinSet::new(), end: None, ended }
    }

    fn with_process(session: Session, mut process: Process, stderr: Stderr, watch: Weak<dyn Watch>) -> Self {
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
        Self { session, listing: JoinSet::new(), end: Some(end), ended }
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

    /// Asks the server what it offers whenever it announces a change.
    pub(crate) fn follow(&mut self, listing: Arc<Listing>, subscription: Option<Subscription>) {
        if let Some(subscription) = subscription {
            let (client, listing) = (self.client(), Arc::clone(&listing));
            self.listing.spawn(async move { listing.stay_subscribed(&client, subscription).await });
        }
        let client = self.client();
        self.listing.spawn(async move { listing.follow(&client).await });
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
