//! Owns the signals that end turns and conversations: who gets the first, and what the second does.

use std::io::{self, Write};
use std::process;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use goondan::{Error, ErrorCode, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals as Received;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::race::{First, first};

/// What somebody outside asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C: stop what you are doing.
    Interrupt,
    /// Finish what you are doing, and leave. A terminal that goes away asks for the same.
    Terminate,
}

/// The signals of this process, taken in by a thread of their own: a tool that blocks the thread of the conversation does
/// not keep the second signal from ending the process.
pub(crate) struct Signals {
    received: UnboundedReceiver<Signal>,
    /// Whether a signal was received and is not carried out yet.
    pending: Arc<AtomicBool>,
}

impl Signals {
    /// Takes signals in from now on. While one is pending, another ends the process at once, after `farewell`.
    pub(crate) fn watch(farewell: impl Fn() + Send + 'static) -> Result<Self> {
        let signals = Received::new([SIGINT, SIGTERM, SIGHUP])
            .map_err(|error| Error::new(ErrorCode::IO, "cannot listen to signals").caused_by(error))?;
        let (sender, received) = unbounded_channel();
        let pending = Arc::new(AtomicBool::new(false));
        let shared = Arc::clone(&pending);
        thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || take_in(signals, &sender, &shared, farewell))?;
        Ok(Self { received, pending })
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match self.received.recv().await {
            Some(signal) => signal,
            // The thread never ends.
            None => std::future::pending().await,
        }
    }

    /// Says that the last signal was carried out: the next one is a first one again.
    pub(crate) fn carried_out(&self) {
        self.pending.store(false, Ordering::Release);
    }

    /// Awaits `turn` while signals are heard. Ctrl-C cancels it. SIGTERM leaves it `grace` to end by itself.
    pub(crate) async fn over<T>(&mut self, turn: impl Future<Output = T>, grace: Duration) -> Ended<T> {
        let mut turn = Box::pin(turn);
        match first(turn.as_mut(), self.next()).await {
            First::One(output) => Ended::ByItself(output),
            First::Other(Signal::Interrupt) => Ended::Interrupted,
            First::Other(Signal::Terminate) => {
                let seconds = grace.as_secs();
                // Where that cannot be said nobody wants to know.
                _ = writeln!(io::stderr(), "leaving when the running turn has ended, or in {seconds} s");
                Ended::Drained(tokio::time::timeout(grace, turn).await.ok())
            }
        }
    }
}

/// How a turn ended that signals may have shortened.
pub(crate) enum Ended<T> {
    ByItself(T),
    /// Ctrl-C cancelled it.
    Interrupted,
    /// The process is to leave; `None` when the turn did not end within the grace period and was cancelled.
    Drained(Option<T>),
}

fn take_in(
    mut signals: Received,
    sender: &UnboundedSender<Signal>,
    pending: &AtomicBool,
    farewell: impl Fn() + Send + 'static,
) {
    for number in signals.forever() {
        let first = !pending.swap(true, Ordering::AcqRel);
        if first {
            let signal = if number == SIGINT { Signal::Interrupt } else { Signal::Terminate };
            // Nobody listens any more when the process is about to end anyway.
            _ = sender.send(signal);
        } else if number != SIGHUP {
            // A terminal that goes away says so more than once, and supervisors say it after SIGTERM: that is no hurry.
            farewell();
            process::exit(128 + number);
        }
    }
}
