//! The tree of work: the turns of other agents that a turn waits for belong to it. They are cancelled with it, and
//! all that they use counts in it.
// D-40, WORK-01, WORK-02

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use goondan_core::{BoxFuture, EventId, InstanceKey, Result, TokenUsage, TurnInfo};
use goondan_lock::Lock;
use tokio::task::JoinHandle;

use super::asked::{Numbers, Place, event_id, next_number};
use super::inbox::Inbox;
use super::left::{Left, wait_for};
use crate::live::{Asker, Clock, Spent};
use crate::ports::router::{AgentCall, AgentReply, Router, ephemeral_prefix};
use crate::ports::store::InstanceId;
use crate::updates::UpdateSender;

/// The requests of one run of a turn to other agents. Without a request nothing is allocated.
pub(crate) struct Asked {
    /// The sum of the turn that waits for this one.
    above: Option<Arc<Spent>>,
    /// The stream of the turn.
    stream: Option<UpdateSender>,
    below: OnceLock<Box<Below>>,
}

/// The requests below a turn in the tree.
struct Below {
    numbers: Lock<Numbers>,
    spent: Arc<Spent>,
    inbox: Arc<Inbox>,
    /// The requests whose futures were dropped before they had an answer.
    dropped: Lock<Vec<Unanswered>>,
    /// The cancelled ones.
    ending: Lock<Vec<JoinHandle<()>>>,
}

/// A request without an answer.
struct Unanswered {
    request: BoxFuture<'static, Result<AgentReply>>,
    left: Left,
}

/// Waits for the answer to a request. If it is dropped before, the request is cancelled when the turn runs on or ends,
/// and left to itself when the turn is dropped: it is asked again when that turn goes on.
pub(super) struct Waiting<'a> {
    below: &'a Below,
    unanswered: Option<Unanswered>,
}

impl Asked {
    /// The requests of a turn with this stream, if it has one. Another turn waits for it if `above` is given.
    pub(crate) fn of(above: Option<Arc<Spent>>, stream: Option<UpdateSender>) -> Self {
        Self { above, stream, below: OnceLock::new() }
    }

    fn below(&self, inbox: &Arc<Inbox>) -> &Below {
        self.below.get_or_init(|| {
            Box::new(Below {
                numbers: Lock::default(),
                spent: Arc::new(Spent::below(self.above.clone())),
                inbox: Arc::clone(inbox),
                dropped: Lock::default(),
                ending: Lock::default(),
            })
        })
    }

    /// Returns the key of a conversation for one request alone.
    pub(super) fn ephemeral_key(&self, turn: &TurnInfo, place: Place<'_>, inbox: &Arc<Inbox>) -> Result<InstanceKey> {
        inbox.may_have_ephemeral();
        let number = next_number(&mut self.below(inbox).numbers.lock(), format!("ephemeral/{place}"));
        InstanceKey::new(&format!("{}{place}/{number}", ephemeral_prefix(&turn.turn)))
    }

    /// Returns the id of the event for a request.
    pub(super) fn event_id(&self, turn: &TurnInfo, place: Place<'_>, inbox: &Arc<Inbox>, call: &AgentCall) -> EventId {
        event_id(&mut self.below(inbox).numbers.lock(), turn, place, call)
    }

    /// Sends a request, and waits for its answer.
    pub(super) fn wait(
        &self,
        (router, mut call): (Arc<dyn Router>, AgentCall),
        turn: &TurnInfo,
        place: Place<'_>,
        inbox: &Arc<Inbox>,
        clock: &Clock,
    ) -> Waiting<'_> {
        let below = self.below(inbox);
        let updates =
            self.stream.as_ref().and_then(|stream| stream.of_child(place.call(), &call.target, &call.instance));
        let asker = Asker::waiting(clock.clone(), Arc::clone(&below.spent), updates);
        call.asker = Some(asker.clone());
        call.from = Some(InstanceId { agent: turn.agent.clone(), key: turn.instance.clone() });
        let left = Left { router: Arc::clone(&router), call: call.clone(), asker };
        let request = Box::pin(async move { router.request(call).await });
        Waiting { below, unanswered: Some(Unanswered { request, left }) }
    }

    /// Counts the usage of the turn itself.
    pub(crate) fn spend(&self, usage: TokenUsage) {
        if let Some(above) = &self.above {
            above.add(usage);
        }
    }

    /// Returns the usage of the turns below this one, if their models report it.
    pub(crate) fn spent(&self) -> Option<TokenUsage> {
        self.below.get()?.spent.tokens()
    }

    /// Cancels the requests that were dropped, for the turn runs on.
    #[inline]
    pub(crate) fn cancel_dropped(&self) {
        if let Some(below) = self.below.get() {
            below.cancel_dropped();
        }
    }

    /// Cancels the requests that were dropped, for the turn ends, and waits a while until all that were cancelled have
    /// ended.
    #[inline]
    pub(crate) async fn end(&self) {
        if let Some(below) = self.below.get() {
            below.cancel_dropped();
            let ending = std::mem::take(&mut *below.ending.lock());
            if !ending.is_empty() {
                Box::pin(wait_for(ending)).await;
            }
        }
    }
}

impl Below {
    fn cancel_dropped(&self) {
        let dropped = std::mem::take(&mut *self.dropped.lock());
        if dropped.is_empty() {
            return;
        }
        let mut ending = self.ending.lock();
        ending.retain(|turn| !turn.is_finished());
        ending.extend(dropped.into_iter().map(Unanswered::cancel));
    }
}

impl Unanswered {
    /// Cancels the turn that would answer, and returns the task in which it ends.
    fn cancel(self) -> JoinHandle<()> {
        self.left.asker.cancel();
        tokio::spawn(async move { drop(self.request.await) })
    }
}

impl Drop for Below {
    fn drop(&mut self) {
        // The turn was interrupted: it asks again when it goes on.
        for Unanswered { left, .. } in std::mem::take(&mut *self.dropped.lock()) {
            self.inbox.leave(left);
        }
    }
}

impl Future for Waiting<'_> {
    type Output = Result<AgentReply>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Some(unanswered) = &mut self.unanswered else { return Poll::Pending };
        let reply = std::task::ready!(unanswered.request.as_mut().poll(cx));
        self.unanswered = None;
        Poll::Ready(reply)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(unanswered) = self.unanswered.take() {
            self.below.dropped.lock().push(unanswered);
        }
    }
}
