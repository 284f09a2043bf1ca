//! Lines of the log while a person types.

use goondan_lock::Lock;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::{Stream, Styled, eprint_styled};

/// Takes the lines while a person types.
static TYPED: Lock<Option<UnboundedSender<Styled>>> = Lock::new(None);

/// Prints a line of the log to standard error. While there is an [`Above`], the line is given to it.
pub(crate) fn eprint_log(line: Styled) {
    let line = match &*TYPED.lock() {
        Some(typed) => typed.send(line).err().map(|unsent| unsent.0),
        None => Some(line),
    };
    if let Some(line) = line {
        eprint_styled(&line);
    }
}

/// The lines of the log that are to be printed above the line that a person types. When it is dropped, those that are
/// left are printed where the cursor is, and later ones too.
pub(crate) struct Above(UnboundedReceiver<Styled>);

impl Above {
    pub(crate) fn new() -> Self {
        let (sender, lines) = unbounded_channel();
        // In a file, the log needs no place.
        if Stream::Err.is_terminal() {
            *TYPED.lock() = Some(sender);
        }
        Self(lines)
    }

    /// Waits for the next line.
    pub(crate) async fn next(&mut self) -> Styled {
        match self.0.recv().await {
            Some(line) => line,
            // Standard error is no terminal.
            None => std::future::pending().await,
        }
    }
}

impl Drop for Above {
    fn drop(&mut self) {
        *TYPED.lock() = None;
        while let Ok(line) = self.0.try_recv() {
            eprint_styled(&line);
        }
    }
}
