//! Reloads of a host, also while turns run: on demand, when files change, and when an extension requests it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fmt;
use std::future::{pending, poll_fn};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use goondan_bundle::{Bundle, Capabilities};
use goondan_core::{AgentName, Result};
use goondan_runtime::{ReloadRequest, ReloadRequests, Reloaded};

use crate::additions::additions;
use crate::error::OpenError;
use crate::files::Files;
use crate::host::{Current, Host};
use crate::race::{Either, race};

/// Reloads a host; [`Host::reloader`] and [`Host::watch`] return it.
///
/// A server runs [`Reloader::serve`] in a task, a program that runs one turn after the other uses
/// [`Reloader::changed`] between them and [`Reloader::while_running`] meanwhile.
///
/// A reload changes the words of agents and their way of working. It does not let them do more outside: a bundle that
/// adds a command, a library, a host or a directory is not taken, and [`OpenError::Adds`] lists the additions. After
/// a person has agreed, [`Reloader::accept`] takes it. A new build of a library that is in use is no addition.
// TREE-01
pub struct Reloader {
    host: Host,
    /// The abilities that the last reload would have added.
    waiting: Capabilities,
    /// The abilities that the next reload may add.
    accepted: Capabilities,
    /// `None` in one that reloads on demand only.
    watched: Option<Watch>,
}

struct Watch {
    files: Files,
    /// `None` until there is an agent.
    requests: Option<ReloadRequests>,
}

/// The outcome of a reload.
#[derive(Debug)]
#[non_exhaustive]
pub struct HostReload {
    /// The bundle as it was read.
    pub bundle: Arc<Bundle>,
    /// The outcome for each agent that existed before. An agent that could not be reloaded continues unchanged.
    pub agents: BTreeMap<AgentName, Result<Reloaded>>,
}

impl Host {
    /// Returns a reloader that reloads on demand only. Requests of extensions are refused.
    pub fn reloader(&self) -> Reloader {
        Reloader::new(self, None)
    }

    /// Starts watching the files of the bundle, the scripts of its models and its libraries, and receiving the reload
    /// requests of extensions.
    ///
    /// # Errors
    /// `E_EXT_RUNTIME` when the system starts no thread; `E_RELOAD_TAKEN` while something else receives the requests,
    /// such as another reloader that watches.
    // LEGACY-CHANGESET-04
    pub fn watch(&self) -> Result<Reloader> {
        let mut watched = Watch { files: Files::watch(watched_files(self))?, requests: None };
        watched.follow(self)?;
        Ok(Reloader::new(self, Some(watched)))
    }

    /// Reads the bundle again and replaces the agents by those that it describes, if they can do nothing more than now
    /// but those that are `accepted`. Turns that run continue with their next step on them.
    async fn reload(&self, accepted: &Capabilities) -> Result<HostReload, OpenError> {
        let bundle = self.inner.source.read_bundle()?;
        for agent in self.inner.instances.agents() {
            bundle.agent(agent.as_str())?;
        }
        let mut agents = self.inner.agents.lock().await;
        let added = additions(&self.current().bundle, &bundle, self.inner.source.loader())?.beyond(accepted);
        if !added.is_empty() {
            return Err(OpenError::Adds(added));
        }
        let outcomes = agents.reload_at_next_step(&bundle, self.inner.source.loader()).await?;
        let current = Current::new(bundle, &agents);
        let bundle = Arc::clone(&current.bundle);
        self.replace(Arc::new(current));
        Ok(HostReload { bundle, agents: outcomes })
    }
}

impl Reloader {
    fn new(host: &Host, watched: Option<Watch>) -> Self {
        let (waiting, accepted) = (Capabilities::default(), Capabilities::default());
        Self { host: host.clone(), waiting, accepted, watched }
    }

    /// Waits until files have changed, or an extension that has changed some requests a reload, and returns its
    /// request. Never returns without [`Host::watch`].
    pub async fn changed(&mut self) -> Option<ReloadRequest> {
        let Some(Watch { files, requests }) = &mut self.watched else { return pending().await };
        loop {
            match race(requested(requests), files.changed()).await {
                Either::Left(request) if files.take_changes() => return Some(request),
                Either::Left(request) => request.refuse("no file of the bundle has changed"),
                Either::Right(()) => return None,
            }
        }
    }

    /// Reads the bundle again and continues all conversations with it, a turn that runs with its next step. `request`
    /// is the one that [`Reloader::changed`] returned, if any. Another request restarts the reload, which may wait for
    /// the end of the step in which the other one was made.
    ///
    /// # Errors
    /// The bundle has mistakes, lacks an agent that has open conversations, or adds something: nothing was changed, and
    /// the requests are refused.
    pub async fn reload(&mut self, request: Option<ReloadRequest>) -> Result<HostReload, OpenError> {
        let mut requests = Vec::from_iter(request);
        loop {
            let another = async {
                match &mut self.watched {
                    Some(watched) => {
                        watched.files.take_changes();
                        requested(&mut watched.requests).await
                    }
                    None => pending().await,
                }
            };
            let outcome = match race(another, self.host.reload(&self.accepted)).await {
                Either::Left(another) => {
                    requests.push(another);
                    continue;
                }
                Either::Right(outcome) => outcome,
            };
            refuse(requests, &outcome);
            match &outcome {
                Ok(_) => (self.waiting, self.accepted) = Default::default(),
                Err(OpenError::Adds(added)) => self.waiting = added.clone(),
                Err(_) => {}
            }
            if let Some(watched) = &mut self.watched {
                // Those of an agent that the reload has built may have another receiver by now, which answers them.
                _ = watched.follow(&self.host);
            }
            return outcome;
        }
    }

    /// Returns the additions of the last reload; nothing if it was taken.
    pub fn waiting(&self) -> &Capabilities {
        &self.waiting
    }

    /// Reloads with the additions that [`Reloader::waiting`] returns. If the bundle has changed again and adds more,
    /// that waits.
    ///
    /// ```
    /// use goondan::host::{OpenError, Reloader};
    ///
    /// async fn reload(reloader: &mut Reloader, agrees: impl Fn(&str) -> bool) -> Result<(), OpenError> {
    ///     match reloader.reload(None).await {
    ///         Err(OpenError::Adds(added)) if agrees(&added.to_string()) => reloader.accept().await.map(drop),
    ///         outcome => outcome.map(drop),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// As [`Reloader::reload`].
    // TREE-01
    pub async fn accept(&mut self) -> Result<HostReload, OpenError> {
        self.accepted.append(&mut self.waiting);
        self.reload(None).await
    }

    /// Reloads whenever [`Reloader::changed`] returns, and passes each outcome to `report`. Never returns; drop the
    /// future to stop.
    pub async fn serve(mut self, mut report: impl FnMut(Result<HostReload, OpenError>)) {
        loop {
            let request = self.changed().await;
            report(self.reload(request).await);
        }
    }

    /// Runs `turn`. Whenever [`Reloader::changed`] returns meanwhile, it reloads, so that the turn continues with its
    /// next step on the new bundle, and passes the outcome to `report`. A reload that has started is completed after
    /// the turn.
    pub async fn while_running<T>(
        &mut self,
        turn: impl Future<Output = T>,
        mut report: impl FnMut(Result<HostReload, OpenError>),
    ) -> T {
        let reloading = Cell::new(false);
        let reloads = async {
            loop {
                let request = self.changed().await;
                reloading.set(true);
                report(self.reload(request).await);
                reloading.set(false);
            }
        };
        let (mut turn, mut reloads, mut output) = (pin!(turn), pin!(reloads), None);
        poll_fn(|cx| {
            if output.is_none()
                && let Poll::Ready(ended) = turn.as_mut().poll(cx)
            {
                output = Some(ended);
            }
            // It never ends.
            let _: Poll<()> = reloads.as_mut().poll(cx);
            output.take_if(|_| !reloading.get()).map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Watch {
    /// Watches the files and agents that `host` has now.
    ///
    /// # Errors
    /// `E_RELOAD_TAKEN`.
    fn follow(&mut self, host: &Host) -> Result<()> {
        let current = host.current();
        self.files.set(watched_files(host));
        let mut outcome = Ok(());
        for agent in &current.agents {
            let followed = match &self.requests {
                Some(requests) => requests.follow(agent),
                None => agent.reload_requests().map(|requests| self.requests = Some(requests)),
            };
            outcome = outcome.and(followed);
        }
        outcome
    }
}

fn watched_files(host: &Host) -> Vec<PathBuf> {
    host.current().bundle.sources().map(Path::to_path_buf).collect()
}

async fn requested(requests: &mut Option<ReloadRequests>) -> ReloadRequest {
    if let Some(requests) = requests
        && let Some(request) = requests.next().await
    {
        return request;
    }
    pending().await
}

/// Refuses the requests of agents that were not reloaded.
fn refuse(requests: Vec<ReloadRequest>, outcome: &Result<HostReload, OpenError>) {
    for request in requests {
        match outcome {
            Err(error) => request.refuse(error),
            Ok(reload) => {
                if let Some(Err(error)) = reload.agents.get(&request.conversation().agent) {
                    request.refuse(error.report());
                }
            }
        }
    }
}

impl fmt::Debug for Reloader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloader").field("host", &self.host).field("watches", &self.watched.is_some()).finish()
    }
}
