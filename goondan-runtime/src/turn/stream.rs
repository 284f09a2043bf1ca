//! The stream of a turn: what happens while it runs, for its caller.

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use goondan_core::{
    BoxFuture, Error, ErrorCode, Event, ExtensionShown, MessageEvent, Result, RuntimeEvent, ToolCallId, TurnResult,
};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::bus::{EventStream, QUEUE};
use crate::ports::model::ModelDelta;

/// Something that happened while a turn ran. [`TurnStream::next`] returns it.
///
/// Pieces of an answer are a preview: a middleware may change the answer afterwards, and the result of the turn has
/// what counts. If a middleware holds the stream of a step, the answer comes when the step ends: each part in one
/// piece, after the events of the step's tool calls.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TurnUpdate {
    /// A piece of the model's text.
    Text {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// A piece of what the model thinks before it answers.
    Reasoning {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The piece.
        text: String,
    },
    /// The model begins to request a tool call. The call runs when the answer is complete.
    ToolCall {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer.
        part: u32,
        /// The id of the call.
        id: ToolCallId,
        /// The tool's name as the model wrote it.
        name: String,
    },
    /// A piece of the arguments of a tool call.
    Arguments {
        /// The index of the step.
        step: u32,
        /// The index of the part in the answer, as [`TurnUpdate::ToolCall`] has it.
        part: u32,
        /// A piece of their JSON text.
        json: String,
    },
    /// The answer of this step begins again. Discard the pieces that were received of it.
    Restart {
        /// The index of the step.
        step: u32,
        /// Why.
        reason: String,
        /// How long the model waits before it is asked again; `None` if the provider begins again by itself.
        wait: Option<Duration>,
    },
    /// How far a tool call is, as its handler said with [`ToolContext::progress`](goondan_core::ToolContext::progress).
    /// At most 20 a second are told of each call.
    Progress {
        /// The id of the call.
        call: ToolCallId,
        /// How much is done.
        done: f64,
        /// How much there is to do, if it is known.
        total: Option<f64>,
        /// What the call is at.
        text: String,
    },
    /// The output of a tool call for people. The runtime event of the call follows, then its message, perhaps after
    /// those of other calls.
    Output {
        /// The id of the call.
        call: ToolCallId,
        /// The output, or the error.
        text: String,
        /// Whether the presenter of the tool made it; otherwise it is what the model reads.
        by_presenter: bool,
    },
    /// Something that an extension shows to the person. A status or a list takes the place of the one that
    /// [it replaces](goondan_core::Shown::replaces), of the same extension.
    // SHOW-01
    Shown(ExtensionShown),
    /// A change of the conversation, as it is stored. If a middleware holds the stream of a step, the changes since its
    /// model was asked come when its layers have returned. Those of a turn that goes on come from its first.
    Message(MessageEvent),
    /// An event of the conversation's bus: see [`TurnStream::with_events`].
    Emitted(Event),
    /// A turn, step or tool call began or ended, or a request to the model is repeated.
    Event(Arc<RuntimeEvent>),
}

impl TurnUpdate {
    pub(super) fn of_delta(step: u32, delta: ModelDelta<'_>) -> Self {
        match delta {
            ModelDelta::Text { part, text } => Self::Text { step, part, text: text.to_owned() },
            ModelDelta::Reasoning { part, text } => Self::Reasoning { step, part, text: text.to_owned() },
            ModelDelta::ToolCall { part, id, name } => {
                Self::ToolCall { step, part, id: id.to_owned().into(), name: name.to_owned() }
            }
            ModelDelta::Arguments { part, json } => Self::Arguments { step, part, json: json.to_owned() },
            ModelDelta::Restart { reason, wait } => Self::Restart { step, reason: reason.to_owned(), wait },
        }
    }
}

/// The most events of the bus that are told in a row before the turn is polled, so that many do not hold it back.
const IN_A_ROW: u32 = 32;

/// The channel from a turn to its stream. Unbounded, but the stream polls the turn only when it is empty, so it holds
/// no more than one poll has sent, and a bounded number of what others send besides: events of the bus, and what
/// extensions show.
#[derive(Clone)]
pub(crate) struct UpdateSender {
    updates: UnboundedSender<TurnUpdate>,
    /// The number of updates of others that are not told yet.
    waiting: Arc<AtomicUsize>,
}

impl UpdateSender {
    /// Sends an update of the turn.
    pub(super) fn send(&self, update: TurnUpdate) {
        // An error means that the receiver was dropped.
        let _ = self.updates.send(update);
    }

    /// Whether there is room for an update of others.
    pub(super) fn has_room(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) < QUEUE
    }

    /// Sends an update of others.
    pub(super) fn send_counted(&self, update: TurnUpdate) {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        self.send(update);
    }
}

/// A turn that runs while its updates are read, returned by [`Instance::run_stream`](crate::Instance::run_stream).
///
/// The turn runs only while updates are awaited, so a slow reader holds the model back. [`TurnStream::cancel`] ends the
/// turn; dropping the stream leaves it open, as [`Instance::run`](crate::Instance::run) says.
#[must_use = "the turn runs only while this is awaited"]
pub struct TurnStream {
    turn: Option<BoxFuture<'static, Result<TurnResult>>>,
    /// Cancels the turn once it does not run any more.
    cancel: BoxFuture<'static, Result<bool>>,
    updates: UnboundedReceiver<TurnUpdate>,
    /// Where the events of the bus go that the caller asked for.
    sender: UpdateSender,
    /// The subscriptions to them.
    events: Vec<EventStream>,
    /// The number of updates of others among the newest ones, without one of the turn between.
    in_a_row: u32,
    result: Option<Result<TurnResult>>,
}

impl TurnStream {
    pub(crate) fn new(
        cancel: BoxFuture<'static, Result<bool>>,
        start: impl FnOnce(UpdateSender) -> BoxFuture<'static, Result<TurnResult>>,
    ) -> Self {
        let (sender, updates) = unbounded_channel();
        let sender = UpdateSender { updates: sender, waiting: Arc::default() };
        let turn = Some(start(sender.clone()));
        Self { turn, cancel, updates, sender, events: Vec::new(), in_a_row: 0, result: None }
    }

    /// Adds events of the conversation's bus to the updates, as [`TurnUpdate::Emitted`]: those of `events` that are
    /// emitted until the turn ends, each where it happened among the other updates. If 256 of them wait, later ones are
    /// lost. [`InstanceEvents`](crate::InstanceEvents) has an example.
    pub fn with_events(mut self, mut events: EventStream) -> Self {
        let sender = self.sender.clone();
        events.forward_to(move |event| {
            let has_room = sender.has_room();
            if has_room {
                sender.send_counted(TurnUpdate::Emitted(event));
            }
            has_room
        });
        self.events.push(events);
        self
    }

    /// Returns the next update, or `None` once the turn has ended.
    pub async fn next(&mut self) -> Option<TurnUpdate> {
        poll_fn(|cx| self.poll_update(cx)).await
    }

    fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        let polled = self.poll_any(cx);
        if let Poll::Ready(update) = &polled {
            match update {
                Some(TurnUpdate::Emitted(_) | TurnUpdate::Shown(_)) => {
                    self.sender.waiting.fetch_sub(1, Ordering::Relaxed);
                    self.in_a_row += 1;
                }
                _ => self.in_a_row = 0,
            }
        }
        polled
    }

    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        // What the turn has sent already is told before the turn goes on: it may block the thread.
        if self.in_a_row < IN_A_ROW
            && let Ok(update) = self.updates.try_recv()
        {
            return Poll::Ready(Some(update));
        }
        self.in_a_row = 0;
        if let Some(turn) = &mut self.turn
            && let Poll::Ready(result) = turn.as_mut().poll(cx)
        {
            self.result = Some(result);
            self.turn = None;
            // Later events belong to other turns.
            self.events.clear();
        }
        if self.turn.is_none() {
            return Poll::Ready(self.updates.try_recv().ok());
        }
        self.updates.poll_recv(cx)
    }

    /// Ends the turn now, and commits it. What the model had said of an answer is kept, with `"partial": true` in the
    /// metadata of its message. Does nothing if the turn has ended or has not begun. Remaining updates are dropped.
    ///
    /// # Errors
    /// `E_STORE_…` when the turn could not be stored.
    // RESUME-01
    pub async fn cancel(mut self) -> Result<()> {
        if self.turn.take().is_some() {
            self.cancel.await?;
        }
        Ok(())
    }

    /// Waits for the end of the turn, and returns its result. Remaining updates are dropped.
    ///
    /// # Errors
    /// As [`Instance::run`](crate::Instance::run).
    pub async fn finish(mut self) -> Result<TurnResult> {
        while self.next().await.is_some() {}
        self.result.unwrap_or_else(|| Err(Error::new(ErrorCode::EXT_RUNTIME, "the turn returned no result")))
    }
}

/// With the feature `stream`, the updates are a stream that other crates read, such as axum for server-sent events. The
/// turn has ended when it has; [`TurnStream::finish`] returns the result.
#[cfg(feature = "stream")]
#[cfg_attr(docsrs, doc(cfg(feature = "stream")))]
impl futures_core::Stream for TurnStream {
    type Item = TurnUpdate;

    fn poll_next(self: std::pin::Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        self.get_mut().poll_update(cx)
    }
}

impl fmt::Debug for TurnStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.turn.is_some() { "TurnStream(running)" } else { "TurnStream(ended)" })
    }
}
