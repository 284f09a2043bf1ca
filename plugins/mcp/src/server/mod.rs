//! The start, the watch and the end of a server.

mod answer;
mod asker;
#[cfg(feature = "http")]
mod bearer;
mod clean;
mod digest;
mod elicited;
#[cfg(feature = "http")]
mod events;
mod hearing;
#[cfg(feature = "http")]
mod http;
mod json;
mod live;
mod message;
mod pipes;
mod place;
#[cfg(feature = "http")]
mod post;
mod process;
mod protocol;
mod running;
mod session;
mod users;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use goondan::Result;
use tokio::time::Instant;

use crate::config::{Protocol, Sizes, Transport};

pub(crate) use answer::{Answer, Block, Resource, Tool};
pub(crate) use elicited::{secret_field, with_defaults};
pub(crate) use hearing::Announced;
pub(crate) use live::{Ended, Live, Watch};
use place::Place;
pub(crate) use running::{Asked, Caller, Elicitation, ElicitationKind, Response, Said};
use session::Begin;
pub(crate) use session::{Client, Subscription};
pub(crate) use users::Users;

/// A server that can be started.
pub(crate) struct Server {
    place: Place,
    protocol: Protocol,
    sizes: Sizes,
    users: Users,
    /// Whether it was found that the server does not survive the question which versions of the protocol it knows.
    old: AtomicBool,
}

impl Server {
    /// # Errors
    /// `E_EXT_CONFIG` when the transport cannot be used. Relative paths start at `root`.
    pub(crate) fn new(
        transport: &Transport,
        protocol: Protocol,
        sizes: Sizes,
        root: &Path,
        users: &Users,
    ) -> Result<Self> {
        let (place, users, old) = (Place::new(transport, root, users)?, Users::clone(users), AtomicBool::new(false));
        Ok(Self { place, protocol, sizes, users, old })
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
        let attempt = |protocol| {
            let begin = Begin {
                protocol,
                announced: Arc::clone(&announced),
                users: Users::clone(&self.users),
                sizes: self.sizes,
            };
            self.place.open(begin, connect, limit, Weak::clone(&watch))
        };
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
