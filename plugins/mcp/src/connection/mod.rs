//! One connection to a server: when it starts, starts again and ends.

pub(crate) mod pool;
mod restarts;
mod state;

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use goondan::extension::ExtensionApi;
use goondan::{Error, Result};
use goondan_lock::Lock;
use tokio::time::{sleep, timeout};

use crate::config::{Limits, Mode, Protocol, Sizes, Transport};
use crate::failure::{self, Failure};
use crate::offer::Listing;
use crate::server::{Client, Ended, Live, Server, Users, Watch};

use restarts::{Restarts, Start};
use state::{State, Status};

/// The longest wait for the end of a process when the connection to it has ended.
const END: Duration = Duration::from_secs(1);

/// A connection to a server, made when it is first needed, and made again when it broke. It ends when its last user
/// leaves, and its process is killed when it is dropped.
pub(crate) struct Connection {
    server: Server,
    mode: Mode,
    /// The server, while it runs. The lock is held while it starts, so that it starts once.
    live: tokio::sync::Mutex<Option<Live>>,
    listing: Arc<Listing>,
    restarts: Lock<Restarts>,
    /// Why it is not open, or was not at the last call.
    fault: Lock<Option<String>>,
    users: Users,
}

/// An extension that uses a connection.
pub(crate) struct User {
    connection: Arc<Connection>,
    id: u64,
}

impl Connection {
    /// # Errors
    /// `E_EXT_CONFIG` when the transport cannot be used.
    pub(crate) fn new(
        transport: &Transport,
        protocol: Protocol,
        sizes: Sizes,
        root: &Path,
        mode: Mode,
    ) -> Result<Arc<Self>> {
        let users = Users::default();
        let server = Server::new(transport, protocol, sizes, root, &users)?;
        let (live, listing, restarts, fault) = Default::default();
        Ok(Arc::new(Self { server, mode, live, listing, restarts, fault, users }))
    }

    pub(crate) fn listing(&self) -> &Listing {
        &self.listing
    }

    /// Adds a user, whose bus and log hear of the connection.
    pub(crate) fn join(self: Arc<Self>, api: ExtensionApi) -> User {
        static IDS: AtomicU64 = AtomicU64::new(0);
        let id = IDS.fetch_add(1, Ordering::Relaxed);
        self.users.lock().push((id, api));
        User { connection: self, id }
    }

    fn set_fault(&self, fault: Option<String>) {
        *self.fault.lock() = fault;
    }

    /// Returns how the connection is, for the user.
    pub(crate) fn status(&self, limits: &Limits) -> Status {
        let pause = match self.restarts.lock().next(limits.restarts, Instant::now()) {
            Start::NotFor(pause) => Some(pause),
            Start::After(_) => None,
        };
        let offers = self.listing.offers();
        let fault = self.fault.lock().clone();
        let open = match self.mode {
            Mode::Stateful => self.live.try_lock().map(|live| live.as_ref().is_some_and(Live::is_open)),
            Mode::Stateless => Ok(false),
        };
        let state = match (open, fault) {
            (Err(_), _) => State::Starts,
            (Ok(true), _) => State::Works,
            (Ok(false), Some(reason)) => State::Broken { reason },
            (Ok(false), None) if self.mode == Mode::Stateless && self.listing.revision() > 0 => State::WorksForEachCall,
            (Ok(false), None) => State::New,
        };
        Status { state, server: offers.server.clone(), tools: offers.tools.len(), pause }
    }

    /// Emits an event on the bus of each user.
    fn tell(&self, event: &str, text: &str) {
        let users = self.users.lock().clone();
        for (_, api) in users {
            api.events().emit(event, (text,));
        }
    }

    /// Starts the server if it does not run, and knows its offers then.
    ///
    /// # Errors
    /// `E_MCP_START`, `E_MCP_TIMEOUT`, `E_MCP_DOWN`.
    pub(crate) async fn start(self: &Arc<Self>, limits: &Limits) -> Result<()> {
        match self.mode {
            Mode::Stateful => self.live_client(limits).await.map(drop),
            Mode::Stateless => {
                let live = self.open(Weak::<Self>::new(), limits).await?;
                let asked = self.listing.ask(&live.client(), limits.connect()).await;
                live.end(limits.shutdown()).await;
                asked.inspect_err(|error| self.set_fault(Some(error.message().into_owned())))
            }
        }
    }

    /// Asks the server something, which is started if it does not run. In errors, it is called
    /// `server`, and the question `what`.
    ///
    /// # Errors
    /// As [`Self::start`]; `E_MCP_GONE` when the server ends before it answers; `E_MCP_ANSWER` when the answer cannot
    /// be read; the error that it answers with.
    pub(crate) async fn ask<T, F>(
        self: &Arc<Self>,
        limits: &Limits,
        [server, what]: [&str; 2],
        question: impl FnOnce(Client) -> F,
    ) -> Result<T>
    where
        F: Future<Output = Result<T, Failure>>,
    {
        // A connection that broke is kept until it is known why.
        let (answer, ended, _broken) = match self.mode {
            Mode::Stateful => {
                let (client, ended) = self.live_client(limits).await?;
                (question(client).await, ended, None)
            }
            Mode::Stateless => {
                let live = self.open(Weak::<Self>::new(), limits).await?;
                let (answer, ended) = (question(live.client()).await, live.ended());
                if matches!(answer, Err(Failure::Gone)) {
                    (answer, ended, Some(live))
                } else {
                    live.end(limits.shutdown()).await;
                    (answer, ended, None)
                }
            }
        };
        match answer {
            Err(Failure::Gone) => Err(self.lost(ended).await),
            Err(Failure::Answered(error)) => {
                self.restarts.lock().answered();
                Err(error)
            }
            Err(Failure::Unreadable(reason)) => {
                self.restarts.lock().answered();
                Err(failure::unreadable(format_args!("`{server}` to `{what}`"), &reason))
            }
            Ok(answer) => {
                self.restarts.lock().answered();
                Ok(answer)
            }
        }
    }

    async fn live_client(self: &Arc<Self>, limits: &Limits) -> Result<(Client, Ended)> {
        let mut slot = self.live.lock().await;
        if let Some(live) = slot.as_ref().filter(|live| live.is_open()) {
            return Ok((live.client(), live.ended()));
        }
        *slot = None;
        self.may_start(limits).await?;
        // Who has to sign in first is no failure of the server.
        let failed = |error: &Error| {
            if !error.details().contains_key(failure::SIGN_IN) {
                self.restarts.lock().failed(Instant::now());
            }
        };
        let watch: Weak<Self> = Arc::downgrade(self);
        let mut live = self.open(watch, limits).await.inspect_err(failed)?;
        let (client, ended) = (live.client(), live.ended());
        // Before the server is asked, so that no change is missed.
        let subscription = self.listing.subscribe(&client).await;
        if let Err(error) = self.listing.ask(&client, limits.connect()).await {
            live.end(limits.shutdown()).await;
            self.set_fault(Some(error.message().into_owned()));
            // If the server ended by itself, that was counted.
            if *error.code() != *failure::GONE {
                failed(&error);
            }
            return Err(error);
        }
        self.listing.keep_up(&mut live, subscription);
        *slot = Some(live);
        drop(slot);
        self.tell("mcp.connected", client.server_name().as_deref().unwrap_or_default());
        Ok((client, ended))
    }

    /// Waits until the server may be started.
    async fn may_start(&self, limits: &Limits) -> Result<()> {
        let (start, failures) = {
            let restarts = self.restarts.lock();
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
        if reason.is_none() {
            self.restarts.lock().failed(Instant::now());
        }
        let reason = reason.as_deref().unwrap_or("the connection broke");
        self.set_fault(Some(reason.to_owned()));
        failure::gone(reason)
    }

    /// Starts the server, and shakes hands with it. `watch` hears of it while it runs.
    async fn open(&self, watch: Weak<dyn Watch>, limits: &Limits) -> Result<Live> {
        let opened = self.server.open(self.listing.announced(), limits.connect(), watch).await;
        self.set_fault(opened.as_ref().err().map(|error| error.message().into_owned()));
        opened
    }
}

impl Watch for Connection {
    fn heard(&self, line: &str) {
        let users = self.users.lock().clone();
        users.iter().for_each(|(_, api)| api.logger().debug(format!("MCP server: {line}")));
    }

    fn ended(&self, reason: &str) {
        self.restarts.lock().failed(Instant::now());
        self.set_fault(Some(reason.to_owned()));
        self.listing.stop();
        self.tell("mcp.disconnected", reason);
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
        if connection.users.lock().is_empty()
            && let Some(live) = slot.take()
        {
            live.end(grace).await;
        }
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.connection.users.lock().retain(|(id, _)| *id != self.id);
    }
}
