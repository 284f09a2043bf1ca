//! Reloads that extensions ask for: `agent.reload` on the bus of a conversation goes to the program, and
//! `agent.reloadAnswer` comes back.
// LEGACY-CHANGESET-04

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::Poll;

use goondan_core::{AgentReload, Event, ReloadEffect, Result};
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};

use super::shared::AgentInner;
use crate::attach::Services;
use crate::ports::store::InstanceId;

/// How many requests wait for a program that does not read them. Those that exceed it are refused.
const QUEUE: usize = 64;

/// The requests for reloads of agents, returned by [`Agent::reload_requests`](crate::Agent::reload_requests).
pub struct ReloadRequests {
    requests: Receiver<ReloadRequest>,
    /// For more agents.
    sender: WeakSender<ReloadRequest>,
}

/// An extension asks for a reload of its agent. It is answered by the runtime, once: as soon as a reload of its
/// conversation waits for the next step, or when this is dropped before.
pub struct ReloadRequest {
    services: Arc<Services>,
    id: String,
    reason: String,
}

/// Where requests for reloads of one agent go.
#[derive(Default)]
pub(super) struct ReloadListener(Mutex<Option<Sender<ReloadRequest>>>);

impl ReloadRequests {
    /// Returns the requests of `agent`.
    pub(crate) fn of(agent: &AgentInner) -> Self {
        let (sender, requests) = channel(QUEUE);
        let requests = Self { requests, sender: sender.downgrade() };
        agent.reload_listener.set(sender);
        requests
    }

    pub(crate) fn add(&self, agent: &AgentInner) {
        if let Some(sender) = self.sender.upgrade() {
            agent.reload_listener.set(sender);
        }
    }

    /// Waits for the next request. Returns `None` once the agents are dropped.
    ///
    /// A program that awaits a reload must go on reading requests meanwhile: see [`ReloadRequests::serve`].
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.requests.recv().await
    }

    /// Calls `reload` for each request, and `tell` with what it returns, until the agents are dropped. The requests are
    /// refused with the error that `reload` returns.
    ///
    /// While a reload waits for the end of a step, another tool call of that step may ask for one. Then `reload` is
    /// dropped and called again, so that what is loaded is never older than a request.
    pub async fn serve<T>(mut self, mut reload: impl AsyncFnMut() -> Result<T>, mut tell: impl FnMut(Result<T>)) {
        while let Some(request) = self.next().await {
            let mut requests = vec![request];
            let outcome = loop {
                match self.unless_another(reload()).await {
                    Ok(outcome) => break outcome,
                    Err(another) => requests.push(another),
                }
            };
            if let Err(error) = &outcome {
                requests.into_iter().for_each(|request| request.refuse(error));
            }
            tell(outcome);
        }
    }

    /// Runs `reload`, unless another request comes before its end.
    async fn unless_another<T>(&mut self, reload: impl Future<Output = T>) -> Result<T, ReloadRequest> {
        let mut reload = pin!(reload);
        poll_fn(|cx| match self.requests.poll_recv(cx) {
            Poll::Ready(Some(another)) => Poll::Ready(Err(another)),
            _ => reload.as_mut().poll(cx).map(Ok),
        })
        .await
    }
}

impl ReloadRequest {
    /// Returns the conversation whose extension asks.
    pub fn conversation(&self) -> &InstanceId {
        &self.services.id
    }

    /// Answers that the conversation continues unchanged, and why. Does nothing if it is answered already.
    pub fn refuse(mut self, reason: impl fmt::Display) {
        self.reason = reason.to_string();
    }
}

impl Drop for ReloadRequest {
    fn drop(&mut self) {
        if self.services.waiting_reload.take_request(&self.id) {
            self.services.answer_reload(&self.id, ReloadEffect::None, Some(&self.reason));
        }
    }
}

impl ReloadListener {
    fn set(&self, sender: Sender<ReloadRequest>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(sender);
    }

    fn get(&self) -> Option<Sender<ReloadRequest>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Brings the request of an event called `agent.reload` to the program. It is refused if no program listens.
pub(super) fn request_reload(agent: Option<&AgentInner>, services: &Arc<Services>, event: &Event) {
    let AgentReload { id, .. } = match event.payload() {
        Ok(request) => request,
        Err(error) => return tracing::error!("an event `{}` was not acted upon: {}", event.name(), error.report()),
    };
    services.waiting_reload.add_request(id.clone());
    let listener = agent.and_then(|agent| agent.reload_listener.get());
    let unheard = listener.as_ref().is_none_or(Sender::is_closed);
    let reason = if unheard { "the program does not reload its agents" } else { "the program made no reload" };
    let request = ReloadRequest { services: Arc::clone(services), id, reason: reason.to_owned() };
    // One that cannot be sent is dropped, which answers it.
    _ = listener.map(|listener| listener.try_send(request));
}

impl fmt::Debug for ReloadRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadRequests").finish_non_exhaustive()
    }
}

impl fmt::Debug for ReloadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReloadRequest({} of {})", self.id, self.services.id)
    }
}
