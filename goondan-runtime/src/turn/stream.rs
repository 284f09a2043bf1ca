//! The stream of a turn: its updates while it runs, for its caller.

use std::fmt;
use std::future::poll_fn;
use std::task::{Context, Poll};

use goondan_core::{BoxFuture, Error, ErrorCode, Result, TurnResult};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::bus::EventStream;
use crate::updates::{TurnUpdate, UpdateSender};

/// The most events of the bus that are told in a row before the turn is polled, so that many do not hold it back.
const IN_A_ROW: u32 = 32;

/// Cancels the turn of a stream.
pub(crate) struct Cancel {
    /// Cancels the turn that runs.
    pub(crate) running: Box<dyn Fn() + Send + Sync>,
    /// Cancels the turn of the stream if it does not run.
    pub(crate) open: BoxFuture<'static, Result<bool>>,
}

/// A turn that runs while its updates are read, returned by [`Instance::run_stream`](crate::Instance::run_stream).
///
/// The turn runs only while updates are awaited, so a slow reader holds the model back. [`TurnStream::cancel`] ends the
/// turn; dropping the stream leaves it open, as [`Instance::run`](crate::Instance::run) says.
#[must_use = "the turn runs only while this is awaited"]
pub struct TurnStream {
    turn: Option<BoxFuture<'static, Result<TurnResult>>>,
    cancel: Cancel,
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
        cancel: Cancel,
        start: impl FnOnce(UpdateSender) -> BoxFuture<'static, Result<TurnResult>>,
    ) -> Self {
        let (sender, updates) = unbounded_channel();
        let sender = UpdateSender::new(sender);
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

    /// Adds the updates of the turns of other agents that this turn waits for to the updates, as
    /// [`TurnUpdate::Child`]. If 256 of those and of events wait, later ones are lost.
    // D-40
    pub fn with_children(self) -> Self {
        self.sender.want_children();
        self
    }

    /// Returns the next update, or `None` once the turn has ended.
    pub async fn next(&mut self) -> Option<TurnUpdate> {
        poll_fn(|cx| self.poll_update(cx)).await
    }

    fn poll_update(&mut self, cx: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        let polled = self.poll_any(cx);
        if let Poll::Ready(update) = &polled {
            if update.as_ref().is_some_and(TurnUpdate::is_of_others) {
                self.sender.has_told_counted();
                self.in_a_row += 1;
            } else {
                self.in_a_row = 0;
            }
        }
        polled
    }

    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<Option<TurnUpdate>> {
        // Updates that the turn has sent already are told before the turn goes on: it may block the thread.
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

    /// Ends the turn now, and commits it. The part of an answer that the model had said is kept, with `"partial":
    /// true` in the metadata of its message. The turns of other agents that it waits for end with it. Does nothing if
    /// the turn has ended or has not begun. Remaining updates are dropped.
    ///
    /// # Errors
    /// `E_STORE_…` when the turn could not be stored.
    // RESUME-01, WORK-01
    pub async fn cancel(mut self) -> Result<()> {
        let Some(turn) = self.turn.take() else { return Ok(()) };
        if !self.sender.does_turn_run() {
            drop(turn);
            return self.cancel.open.await.map(drop);
        }
        (self.cancel.running)();
        match turn.await {
            Err(error) if error.code().as_str().starts_with("E_STORE_") => Err(error),
            // Its error is that it was cancelled, or its own if it has ended before.
            _ => Ok(()),
        }
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
