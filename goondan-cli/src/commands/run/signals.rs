//! The signals that end turns and conversations: the effect of the first one, and of the second one.

use std::pin::pin;
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use goondan::host::race::{Either, race};
use goondan::{Error, ErrorCode, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as SignalIterator;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::output::{self, Styled};

/// The longest time that a conversation has to close after Ctrl-C.
pub(crate) const AFTER_INTERRUPT: Duration = Duration::from_secs(10);

/// The effect of a received signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// SIGINT, from Ctrl-C: cancel the running turn.
    Interrupt,
    /// SIGTERM, or SIGHUP from a closed terminal: complete the running turn, then exit.
    Terminate,
}

/// Receives the signals of this process. A separate thread waits for them, so that a second signal ends the process
/// even if a tool blocks the thread of the conversation.
pub(crate) struct Signals {
    received: UnboundedReceiver<Signal>,
    /// Whether a signal was received that has not been handled yet. Shared with the thread.
    pending: Arc<AtomicBool>,
}

impl Signals {
    /// Starts the thread. While a signal is pending, another one ends the process, after `before_exit`.
    pub(crate) fn listen(before_exit: impl Fn() + Send + 'static) -> Result<Self> {
        let signals = SignalIterator::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| Error::new(ErrorCode::IO, "cannot listen to signals").caused_by(error))?;
        let (sender, received) = unbounded_channel();
        let pending = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&pending);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || forward(signals, &sender, &shared, before_exit))?;
        Ok(Self { received, pending })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            // The thread holds the sender and never ends.
            None => std::future::pending().await,
        }
    }

    /// Marks the last signal as handled: the next one does not end the process.
    pub(crate) fn mark_handled(&self) {
        self.pending.store(false, Ordering::Release);
    }

    /// Awaits `turn`. SIGINT cuts it short; SIGTERM and SIGHUP leave it `grace` to complete. A turn that is cut short
    /// is awaited until `cancel` has ended it, with the turns of other agents that it waits for.
    pub(crate) async fn run_turn<T>(
        &mut self,
        turn: impl Future<Output = T>,
        grace: Duration,
        cancel: impl Future<Output = Result<bool>>,
    ) -> TurnEnd<T> {
        let mut turn = Box::pin(turn);
        let end = match race(turn.as_mut(), self.next()).await {
            Either::Left(output) => return TurnEnd::Completed(output),
            Either::Right(Signal::Interrupt) => TurnEnd::Interrupted,
            Either::Right(Signal::Terminate) => {
                let seconds = grace.as_secs();
                let leaving = format!("leaving when the running turn has ended, or in {seconds} s\n");
                output::eprint_log(Styled::new(false).text(&leaving));
                match tokio::time::timeout(grace, turn.as_mut()).await {
                    Ok(output) => return TurnEnd::Drained(Some(output)),
                    Err(_) => TurnEnd::Drained(None),
                }
            }
        };
        _ = tokio::time::timeout(AFTER_INTERRUPT, cancelled(turn, cancel)).await;
        end
    }
}

/// Awaits a turn that is cancelled until it has ended. If there is none, that is at once; an error comes again when the
/// turn is closed.
async fn cancelled<T>(turn: impl Future<Output = T>, cancel: impl Future<Output = Result<bool>>) {
    let (mut turn, mut cancel) = (pin!(turn), pin!(cancel));
    // A turn that does not run yet is cancelled once it is dropped.
    let is_cancelled = match race(cancel.as_mut(), turn.as_mut()).await {
        Either::Left(is_cancelled) => is_cancelled.unwrap_or_default(),
        Either::Right(_) => false,
    };
    if is_cancelled {
        _ = turn.await;
    }
}

/// The end of a turn that signals may cut short.
pub(crate) enum TurnEnd<T> {
    Completed(T),
    /// Cancelled by Ctrl-C.
    Interrupted,
    /// The process is to exit. `None` if the turn was cancelled at the end of the grace period.
    Drained(Option<T>),
}

impl<T> TurnEnd<T> {
    /// Returns whether the turn did not run to its end, and is to be cancelled.
    pub(crate) fn is_cut_short(&self) -> bool {
        matches!(self, Self::Interrupted | Self::Drained(None))
    }
}

fn forward(
    mut signals: SignalIterator,
    sender: &UnboundedSender<Signal>,
    pending: &AtomicBool,
    before_exit: impl Fn() + Send + 'static,
) {
    for number in signals.forever() {
        let first = !pending.swap(true, Ordering::AcqRel);
        if first {
            let signal = if number == SIGINT { Signal::Interrupt } else { Signal::Terminate };
            // The receiver is dropped only when the process is about to exit.
            _ = sender.send(signal);
        } else if number != SIGHUP {
            // SIGHUP is excluded: a closed terminal sends it more than once, and supervisors send it after SIGTERM.
            before_exit();
            process::exit(128 + number);
        }
    }
}
