//! Owns what is known of the terminal: how it was found, and what may be shown on it.

use std::borrow::Cow;
use std::env;
use std::io::{self, IsTerminal, Write};
use std::sync::{Arc, Mutex, PoisonError};

use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};

/// The terminal that the process was started on. Clones are the same terminal.
#[derive(Clone)]
pub(crate) struct Terminal {
    /// The settings before anyone changed them: the line editor may be left in the middle of a line.
    found: Arc<Mutex<Option<Termios>>>,
    /// Whether standard error is a terminal too, so that progress is seen by somebody.
    pub(crate) shows_progress: bool,
    /// Whether lines can be drawn over.
    pub(crate) moves: bool,
    pub(crate) colours: bool,
}

impl Terminal {
    pub(crate) fn of_process() -> Self {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let moves = env::var_os("TERM").is_some_and(|term| term != "dumb");
        Self {
            found: Arc::new(Mutex::new(tcgetattr(io::stdin()).ok())),
            shows_progress: io::stderr().is_terminal(),
            moves,
            colours: moves && !is_set("NO_COLOR"),
        }
    }

    /// Gives the terminal back as it was found. A terminal that went away needs that no more.
    pub(crate) fn restore(&self) {
        if let Some(found) = &*self.found.lock().unwrap_or_else(PoisonError::into_inner) {
            _ = tcsetattr(io::stdin(), SetArg::TCSANOW, found);
            if self.moves {
                // Pasted text comes unmarked again.
                _ = io::stdout().write_all(b"\x1b[?2004l");
            }
        }
    }

    /// `text` in a style, if there are colours.
    pub(crate) fn paint(&self, style: Style, text: &str) -> String {
        if self.colours { format!("\x1b[{}m{text}\x1b[0m", style as u8) } else { text.to_owned() }
    }
}

/// How a text looks, as the number that terminals know it by.
#[derive(Clone, Copy)]
pub(crate) enum Style {
    Dim = 2,
    Red = 31,
    Green = 32,
    Cyan = 36,
}

/// `text` without what would move the cursor, change settings of the terminal, or forge its title: models and tools say
/// anything.
pub(crate) fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if text.contains(harmful) { text.replace(harmful, "").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_cannot_command_the_terminal() {
        assert_eq!(harmless("a\tb\nä\r\n"), "a\tb\nä\n");
        assert_eq!(harmless("\x1b]0;title\x07\x1b[2Jx\u{9b}31m"), "]0;title[2Jx31m");
    }
}
