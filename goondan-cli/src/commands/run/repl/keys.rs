//! The keys that a person presses while a turn runs: a thread reads them from the terminal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crossterm::event::{self, Event};
use goondan::Result;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::terminal::{Terminal, TypingTerminal};

/// The interval in which the thread looks for the end of the turn.
const INTERVAL: Duration = Duration::from_millis(20);

/// Reads keys until it is dropped.
pub(crate) struct Keys {
    events: UnboundedReceiver<Event>,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    _terminal: TypingTerminal,
}

impl Keys {
    pub(crate) fn start(terminal: &Terminal) -> Result<Self> {
        let terminal = terminal.typing();
        let ended = Arc::new(AtomicBool::new(false));
        let (sender, events) = unbounded_channel();
        let is_ended = Arc::clone(&ended);
        let thread = thread::Builder::new().name("keys".to_owned()).spawn(move || {
            while !is_ended.load(Ordering::Acquire) {
                if let Some(event) = read(INTERVAL) {
                    // It is received until the thread has ended.
                    _ = sender.send(event);
                }
            }
        })?;
        Ok(Self { events, ended, thread: Some(thread), _terminal: terminal })
    }

    /// Waits for the next key. It never comes once the terminal is closed.
    pub(crate) async fn next(&mut self) -> Event {
        match self.events.recv().await {
            Some(event) => event,
            None => std::future::pending().await,
        }
    }

    /// Stops reading, and returns the keys that were not taken. Later ones are left to the line editor.
    pub(crate) fn end(mut self) -> Vec<Event> {
        self.stop();
        let mut left = Vec::new();
        while let Ok(event) = self.events.try_recv() {
            left.push(event);
        }
        // Several keys may have been read at once.
        while let Some(event) = read(Duration::ZERO) {
            left.push(event);
        }
        left
    }

    fn stop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take()
            && !is_closed(Duration::ZERO)
        {
            // It does not panic, and has nothing to return.
            _ = thread.join();
        }
    }
}

/// Reads a key that is there within this time.
fn read(within: Duration) -> Option<Event> {
    // Keys that came together with the one before are not in the terminal any more.
    if !is_there() {
        if is_closed(within) {
            // The signal ends the turn.
            thread::sleep(within);
        }
        if !is_there() {
            return None;
        }
    }
    event::read().ok()
}

fn is_there() -> bool {
    !is_closed(Duration::ZERO) && event::poll(Duration::ZERO).unwrap_or(false)
}

/// Waits until there is a key, but not longer than this. Returns whether the terminal was closed: then looking for a
/// key would not return.
fn is_closed(within: Duration) -> bool {
    let stdin = io::stdin();
    let mut stdin = [PollFd::new(&stdin, PollFlags::IN)];
    let within = Timespec { tv_sec: 0, tv_nsec: within.subsec_nanos().into() };
    match poll(&mut stdin, Some(&within)) {
        Ok(_) => stdin[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL),
        // A signal came.
        Err(_) => false,
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.stop();
    }
}
