//! The terminal: its original settings, what it can display, and styled text.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

/// The controlling terminal of the process. Clones share the saved settings.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// The settings at the start, to be restored at the end: the line editor may be interrupted while it has changed
    /// them.
    original: Arc<Mutex<Option<Termios>>>,
    /// Whether standard error is a terminal too, so that progress is visible.
    pub(crate) shows_progress: bool,
    /// Whether the cursor can be moved, so that lines can be redrawn.
    pub(crate) moves_cursor: bool,
    pub(crate) colors: bool,
}

impl Terminal {
    pub(crate) fn of_process() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let moves_cursor = env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self {
            original: Arc::new(Mutex::new(tcgetattr(io::stdin()).ok())),
            shows_progress: io::stderr().is_terminal(),
            moves_cursor,
            colors: moves_cursor && !is_set("NO_COLOR"),
        }
    }

    /// Restores the original settings. Errors are ignored: a closed terminal needs no restoring.
    pub(crate) fn restore(&self) {
        if let Some(original) = &*self.original.lock().unwrap_or_else(PoisonError::into_inner) {
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, original);
            if self.moves_cursor {
                // Turns off bracketed paste.
                _ = io::stdout().write_all(b"\x1b[?2004l");
            }
        }
    }

    /// Returns `text` in `style` if colours are enabled, otherwise unchanged.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.colors { format!("\x1b[{}m{text}\x1b[0m", style as u8) } else { text.to_owned() }
    }
}

/// A text style; the value is the parameter of the SGR escape sequence.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Dim = 2,
    Red = 31,
    Green = 32,
    Cyan = 36,
}

/// Removes control characters except line breaks and tabs. Models and tools produce arbitrary text, which could
/// otherwise move the cursor, change terminal settings or set the title.
pub(crate) fn sanitize(text: &str) -> Cow<'_, str> {
    let is_unsafe = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if text.contains(is_unsafe) { text.replace(is_unsafe, "").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_removed() {
        assert_eq!(sanitize("a\tb\nä\r\n"), "a\tb\nä\n");
        assert_eq!(sanitize("\x1b]0;title\x07\x1b[2Jx\u{9b}31m"), "]0;title[2Jx31m");
    }
}
