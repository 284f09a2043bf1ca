//! The terminal: its original settings, and its abilities.

use std::env;
use std::io;
use std::sync::Arc;

use goondan_lock::Lock;
use nix::errno::Errno;
use nix::sys::termios::{LocalFlags, SetArg, SpecialCharacterIndices, Termios, tcgetattr, tcsetattr};
use rustix::termios::tcgetwinsize;

use crate::output::{Stream, Styled};

/// The terminals whose cursor the line editor cannot move either.
const FIXED_CURSOR: [&str; 3] = ["dumb", "cons25", "emacs"];

/// The size of a terminal that does not tell it.
const DEFAULT_COLUMNS: u16 = 80;
const DEFAULT_ROWS: u16 = 24;

/// The controlling terminal of the process. Clones share the saved settings.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// The settings at the start, to be restored at the end: the line editor may be interrupted while it has changed
    /// them.
    original: Arc<Lock<Option<Termios>>>,
    /// Whether standard error is a terminal too, so that progress is visible.
    pub(crate) shows_progress: bool,
    /// Whether the cursor can be moved, so that lines can be redrawn.
    pub(crate) moves_cursor: bool,
    pub(crate) colors: bool,
    /// The width of a terminal that is not there.
    #[cfg(test)]
    columns: Option<usize>,
}

impl Terminal {
    pub(crate) fn of_process() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let moves_cursor = env::var_os("TERM").is_some_and(|term| !FIXED_CURSOR.iter().any(|fixed| term == *fixed));
        Self {
            original: Arc::new(Lock::new(tcgetattr(io::stdin()).ok())),
            shows_progress: Stream::Err.is_terminal(),
            moves_cursor,
            colors: moves_cursor && !is_set("NO_COLOR"),
            #[cfg(test)]
            columns: None,
        }
    }

    /// A terminal that is not there, of this width.
    #[cfg(test)]
    pub(crate) fn of_test(columns: usize) -> Self {
        let original = Arc::new(Lock::new(None));
        Self { original, shows_progress: true, moves_cursor: true, colors: true, columns: Some(columns) }
    }

    /// Turns off the echo, until the returned value is dropped. The line editor shows what is typed by itself; what is
    /// typed ahead while a turn runs appears in the next prompt, not in the midst of the output. Without the line
    /// editor, the echo stays.
    pub(crate) fn quiet(&self) -> QuietTerminal {
        let original = self.original.lock().clone();
        if let (Some(mut settings), true) = (original, self.moves_cursor) {
            settings.local_flags.remove(LocalFlags::ECHO);
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &settings);
        }
        QuietTerminal(self.clone())
    }

    /// Gives each key to the program at once, without an echo, until the returned value is dropped. Ctrl-C stays a
    /// signal.
    pub(crate) fn typing(&self) -> TypingTerminal {
        let before = tcgetattr(io::stdin()).ok();
        if let Some(mut settings) = before.clone() {
            settings.local_flags.remove(LocalFlags::ECHO | LocalFlags::ICANON | LocalFlags::IEXTEN);
            settings.control_chars[SpecialCharacterIndices::VMIN as usize] = 1;
            settings.control_chars[SpecialCharacterIndices::VTIME as usize] = 0;
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, &settings);
        }
        _ = Stream::Out.styled(&self.styled().begin_bracketed_paste());
        TypingTerminal { terminal: self.clone(), before }
    }

    /// Restores the original settings. Errors are ignored: a closed terminal needs no restoring.
    pub(crate) fn restore(&self) {
        if let Some(original) = &*self.original.lock() {
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, original);
            if self.moves_cursor {
                _ = Stream::Out.styled(&self.styled().end_bracketed_paste());
            }
        }
    }

    /// Returns the width of the terminal, which may change at any time.
    pub(crate) fn columns(&self) -> usize {
        #[cfg(test)]
        if let Some(columns) = self.columns {
            return columns;
        }
        tcgetwinsize(io::stdin())
            .ok()
            .map(|size| size.ws_col)
            .filter(|columns| *columns > 0)
            .unwrap_or(DEFAULT_COLUMNS)
            .into()
    }

    /// Returns the height of the terminal, which may change at any time.
    pub(crate) fn rows(&self) -> usize {
        let size = tcgetwinsize(io::stdin()).ok();
        size.map(|size| size.ws_row).filter(|rows| *rows > 0).unwrap_or(DEFAULT_ROWS).into()
    }

    /// Starts a text in the colours of this terminal.
    pub(crate) fn styled(&self) -> Styled {
        Styled::new(self.colors)
    }
}

/// Ends that keys are given to the program when it is dropped.
pub(crate) struct TypingTerminal {
    terminal: Terminal,
    before: Option<Termios>,
}

impl Drop for TypingTerminal {
    fn drop(&mut self) {
        if let Some(before) = &self.before {
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, before);
        }
        _ = Stream::Out.styled(&self.terminal.styled().end_bracketed_paste());
    }
}

/// Restores the settings of a terminal when it is dropped.
pub(crate) struct QuietTerminal(Terminal);

impl Drop for QuietTerminal {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Returns whether this is the error of a terminal that was closed.
pub(crate) fn is_closed(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::EIO as i32)
}
