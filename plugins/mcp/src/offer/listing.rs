//! The offers of a connection's server, kept up to date.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use goondan::{Error, Result};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

use crate::failure::{self, Failure};
use crate::server::{Announced, Client, Live, Resource, Subscription, Tool};

/// The longest time of the server's answer when it has announced a change.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest time in which the server accepts a subscription. Without one, changes are not heard of.
const ACCEPT: Duration = Duration::from_secs(2);
/// The wait until a subscription that the server has ended is made again.
const PAUSE: Duration = Duration::from_secs(1);

/// The offers of a server at one time.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Offers {
    /// The name that the server gives itself.
    pub(crate) server: Option<String>,
    pub(crate) tools: Vec<Arc<Tool>>,
    pub(crate) resources: Vec<Resource>,
    /// The items that are left out, for the log.
    pub(crate) problems: Vec<String>,
}

/// The offers of a server, with the number of its announcements.
#[derive(Default)]
pub(crate) struct Listing {
    announced: Arc<Announced>,
    /// The announcements that were there when the server was last asked for its offers.
    asked: watch::Sender<u64>,
    offers: RwLock<Arc<Offers>>,
    /// The number of times that `offers` was set.
    revision: AtomicU64,
    resources: AtomicBool,
}

impl Listing {
    pub(crate) fn announced(&self) -> Arc<Announced> {
        Arc::clone(&self.announced)
    }

    /// Also asks for resources afterwards.
    pub(crate) fn want_resources(&self) {
        self.resources.store(true, Ordering::Release);
    }

    /// Returns 0 if the server was never asked.
    pub(crate) fn revision(&self) -> u64 {
        self.revision.load(Ordering::Acquire)
    }

    pub(crate) fn offers(&self) -> Arc<Offers> {
        Arc::clone(&self.offers.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn set(&self, offers: Offers) {
        *self.offers.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(offers);
        self.revision.fetch_add(1, Ordering::AcqRel);
    }

    /// Asks the server for its offers.
    pub(crate) async fn ask(&self, client: &Client, limit: Duration) -> Result<()> {
        let announced = *self.announced.borrow();
        let asked = match timeout(limit, self.fetch(client)).await {
            Ok(Ok(offers)) => {
                self.set(offers);
                Ok(())
            }
            Ok(Err(Failure::Answered(error))) => Err(error),
            Ok(Err(Failure::Unreadable(reason))) => Err(failure::unreadable("about what it offers", &reason)),
            Ok(Err(Failure::Gone)) => Err(failure::gone("it ended while it was asked what it offers")),
            Err(_) => {
                let message = format!("the MCP server did not say within {limit:?} what it offers");
                Err(Error::new(failure::TIMEOUT, message))
            }
        };
        self.asked.send_replace(announced);
        asked
    }

    async fn fetch(&self, client: &Client) -> Result<Offers, Failure> {
        let (tools, mut problems) = client.tools().await?;
        let resources = match self.resources.load(Ordering::Acquire) {
            true => {
                let (resources, missing) = client.resources().await?;
                problems.extend(missing);
                resources
            }
            false => Vec::new(),
        };
        Ok(Offers { server: client.server_name(), tools, resources, problems })
    }

    /// Asks for announcements, if the server sends them only then.
    pub(crate) async fn subscribe(&self, client: &Client) -> Option<Subscription> {
        timeout(ACCEPT, client.subscribe()).await.ok().flatten()
    }

    /// Keeps the offers up to date while the server runs.
    pub(crate) fn keep_up(self: &Arc<Self>, live: &mut Live, subscription: Option<Subscription>) {
        if let Some(subscription) = subscription {
            let (client, listing) = (live.client(), Arc::clone(self));
            live.spawn(async move { listing.stay_subscribed(&client, subscription).await });
        }
        let (client, listing) = (live.client(), Arc::clone(self));
        live.spawn(async move { listing.follow(&client).await });
    }

    /// Makes a subscription again whenever it ends, as long as the future is polled.
    async fn stay_subscribed(&self, client: &Client, mut subscription: Subscription) {
        loop {
            subscription.ended().await;
            sleep(PAUSE).await;
            let Some(next) = self.subscribe(client).await else { return };
            subscription = next;
            // There may have been some that were not sent.
            self.announced.send_modify(|count| *count += 1);
        }
    }

    /// Asks the server after each announcement, as long as the future is polled. Its earlier offers stay if it
    /// does not answer.
    async fn follow(&self, client: &Client) {
        let mut announced = self.announced.subscribe();
        loop {
            let asked = *self.asked.borrow();
            if announced.wait_for(|announced| *announced > asked).await.is_err() {
                return;
            }
            if let Err(error) = self.ask(client, LIMIT).await {
                let Offers { server, tools, resources, .. } = &*self.offers();
                let (server, tools, resources) = (server.clone(), tools.clone(), resources.clone());
                self.set(Offers { server, tools, resources, problems: vec![error.to_string()] });
            }
        }
    }

    /// Says that the server cannot be asked any more.
    pub(crate) fn stop(&self) {
        self.asked.send_replace(*self.announced.borrow());
    }

    /// Waits, at most for `limit`, until the server was asked after its last announcement.
    pub(crate) async fn settled(&self, limit: Duration) {
        let announced = *self.announced.borrow();
        if *self.asked.borrow() < announced {
            // After the limit, the tools are those of before.
            let _ = timeout(limit, self.asked.subscribe().wait_for(|asked| *asked >= announced)).await;
        }
    }
}
