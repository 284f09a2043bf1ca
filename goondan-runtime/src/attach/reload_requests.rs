//! Requests of extensions for reloads, which go to the program.
// LEGACY-CHANGESET-04, D-41

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use goondan_core::{AgentReloadAnswer, BoxFuture, Error, ErrorCode, Event, ReloadEffect, Result};
use goondan_lock::Lock;
use tokio::sync::mpsc::{Receiver, Sender, WeakSender, channel};
use tokio::sync::oneshot;

use crate::bus::Bus;
use crate::ports::store::InstanceId;

/// The most requests that wait for a program that does not read them. Those that exceed it are refused.
const QUEUE: usize = 64;

/// The requests for reloads of agents, returned by [`Agent::reload_requests`](crate::Agent::reload_requests).
pub struct ReloadRequests {
    requests: Receiver<ReloadRequest>,
    /// For more agents.
    sender: WeakSender<ReloadRequest>,
}

/// A request of an extension for a reload of its agent. The runtime answers it, once: as soon as a reload of its
/// conversation waits for the next step, or when this is dropped before.
pub struct ReloadRequest {
    request: Arc<Request>,
    /// Why there is no reload, if this is dropped unanswered.
    reason: String,
}

/// A request, and where its answer goes.
pub(super) struct Request {
    conversation: InstanceId,
    id: String,
    bus: Bus,
    /// `None` once it is answered.
    answer: Lock<Option<oneshot::Sender<AgentReloadAnswer>>>,
}

/// Where requests for reloads of one agent go.
#[derive(Default)]
pub(crate) struct ReloadListener(Lock<Option<Sender<ReloadRequest>>>);

impl ReloadRequests {
    /// Returns the requests that go to `listener`.
    ///
    /// # Errors
    /// `E_RELOAD_TAKEN`.
    pub(crate) fn of(listener: &ReloadListener) -> Result<Self> {
        let (sender, requests) = channel(QUEUE);
        let requests = Self { requests, sender: sender.downgrade() };
        listener.set(sender)?;
        Ok(requests)
    }

    /// # Errors
    /// `E_RELOAD_TAKEN`.
    pub(crate) fn add(&self, listener: &ReloadListener) -> Result<()> {
        self.sender.upgrade().map_or(Ok(()), |sender| listener.set(sender))
    }

    /// Waits for the next request. Returns `None` once the agents are dropped.
    ///
    /// A program that awaits a reload must go on reading requests meanwhile: see [`ReloadRequests::serve`].
    pub async fn next(&mut self) -> Option<ReloadRequest> {
        self.requests.recv().await
    }

    /// Calls `reload` for each request, and `tell` with its outcome, until the agents are dropped. The requests are
    /// refused with the error that `reload` returns.
    ///
    /// While a reload waits for the end of a step, another tool call of that step may ask for one. Then `reload` is
    /// dropped and called again, so that the loaded agent is never older than a request.
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
        &self.request.conversation
    }

    /// Answers that the conversation continues unchanged, and why. Does nothing if it is answered already.
    pub fn refuse(mut self, reason: impl fmt::Display) {
        self.reason = reason.to_string();
    }
}

impl Drop for ReloadRequest {
    fn drop(&mut self) {
        self.request.answer(ReloadEffect::None, Some(&self.reason));
    }
}

impl Request {
    /// Returns the request `id` of an extension of `conversation`, and its answer.
    pub(super) fn new(
        conversation: InstanceId,
        id: String,
        bus: Bus,
    ) -> (Arc<Self>, BoxFuture<'static, AgentReloadAnswer>) {
        let (sender, answer) = oneshot::channel();
        let unanswered = AgentReloadAnswer::new(&*id, ReloadEffect::None, Some("the program ends".to_owned()));
        let request = Self { conversation, id, bus, answer: Lock::new(Some(sender)) };
        (Arc::new(request), Box::pin(async move { answer.await.unwrap_or(unanswered) }))
    }

    /// Answers the request, and publishes the answer. Does nothing if it is answered already.
    pub(super) fn answer(&self, effect: ReloadEffect, reason: Option<&str>) {
        let Some(sender) = self.answer.lock().take() else { return };
        let answer = AgentReloadAnswer::new(&*self.id, effect, reason.map(str::to_owned));
        match Event::new(AgentReloadAnswer::NAME, (&answer,)) {
            Ok(event) => self.bus.emit(event),
            Err(error) => tracing::error!("the answer to a request for a reload was not emitted: {error}"),
        }
        // The extension may not wait for it.
        _ = sender.send(answer);
    }
}

impl ReloadListener {
    /// Sends later requests to `sender`, unless they go to another receiver that exists.
    fn set(&self, sender: Sender<ReloadRequest>) -> Result<()> {
        let mut listener = self.0.lock();
        if listener.as_ref().is_some_and(|other| !other.is_closed() && !other.same_channel(&sender)) {
            return Err(Error::new(
                ErrorCode::RELOAD_TAKEN,
                "the reload requests of this agent have a receiver already",
            )
            .suggest("receive them in one place, or drop the other receiver first"));
        }
        *listener = Some(sender);
        Ok(())
    }

    /// Sends a request to the program. It is refused if no program listens.
    pub(super) fn send(&self, request: Arc<Request>) {
        let listener = self.0.lock().clone();
        let unheard = listener.as_ref().is_none_or(Sender::is_closed);
        let reason = if unheard { "the program does not reload its agents" } else { "the program made no reload" };
        let request = ReloadRequest { request, reason: reason.to_owned() };
        // One that cannot be sent is dropped, which answers it.
        _ = listener.map(|listener| listener.try_send(request));
    }
}

impl fmt::Debug for ReloadRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReloadRequests").finish_non_exhaustive()
    }
}

impl fmt::Debug for ReloadRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReloadRequest({} of {})", self.request.id, self.request.conversation)
    }
}
