//! Owns a terminal with a program on it: what is typed, and what the screen shows.

use std::io::{Read, Write};
use std::num::NonZero;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use regex::Regex;

use crate::support::{PROGRAM, Place};

const ROWS: NonZero<u16> = NonZero::new(60).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(140).unwrap();

/// How long something may take that happens at once: a test that waits longer has failed.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) const UP: &str = "\x1b[A";
pub(crate) const LEFT: &str = "\x1b[D";
pub(crate) const BACKSPACE: &str = "\x7f";
pub(crate) const ENTER: &str = "\r";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_R: &str = "\x12";

/// A `goondan run` on a terminal.
pub(crate) struct Screen {
    pty: Arc<Pty>,
    pub(crate) child: Child,
    shown: Arc<(Mutex<Shown>, Condvar)>,
    /// What the screen shows in place of the state root, which has another name each time.
    state: String,
}

struct Shown {
    parser: vt100::Parser,
    /// Everything that came, as it came.
    raw: Vec<u8>,
    ended: bool,
}

impl Screen {
    pub(crate) fn start(place: &Place, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(ROWS.get(), COLUMNS.get())).unwrap();
        let command = Command::new(PROGRAM).args(place.arguments()).args(arguments);
        let command = command.env_remove("GOONDAN_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
        let child = command.envs(variables.iter().copied()).spawn(pts).unwrap();
        let parser = vt100::Parser::new(ROWS, COLUMNS, 0);
        let shown = Arc::new((Mutex::new(Shown { parser, raw: Vec::new(), ended: false }), Condvar::new()));
        let pty = Arc::new(pty);
        let (reader, writer) = (Arc::clone(&pty), Arc::clone(&shown));
        thread::spawn(move || show(&reader, &writer));
        Self { pty, child, shown, state: place.state().display().to_string() }
    }

    pub(crate) fn send(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen ends with `expected`; elapsed times are shown as `N s`, spaces at the ends of lines not at all.
    #[track_caller]
    pub(crate) fn shows(&self, expected: &str) {
        self.wait(|text| text.ends_with(expected.trim_end()), expected);
    }

    /// Waits until something is somewhere on the screen.
    #[track_caller]
    pub(crate) fn contains(&self, expected: &str) {
        self.wait(|text| text.contains(expected), expected);
    }

    #[track_caller]
    fn wait(&self, fits: impl Fn(&str) -> bool, expected: &str) {
        let (shown, changed) = &*self.shown;
        let waits = |shown: &mut Shown| !shown.ended && !fits(&self.text_of(shown));
        let (shown, _) = changed.wait_timeout_while(shown.lock().unwrap(), LIMIT, waits).unwrap();
        let text = self.text_of(&shown);
        assert!(fits(&text), "expected:\n{expected}\n\nshown:\n{text}");
    }

    /// Waits for the end of the program. Gives how it ended and the whole screen.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let (shown, changed) = &*self.shown;
        let (shown, _) = changed.wait_timeout_while(shown.lock().unwrap(), LIMIT, |shown| !shown.ended).unwrap();
        (status, self.text_of(&shown))
    }

    /// Waits for a good end of the program. Gives everything that the terminal got, as it came.
    pub(crate) fn raw_at_end(mut self) -> String {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        let (shown, changed) = &*self.shown;
        let (shown, _) = changed.wait_timeout_while(shown.lock().unwrap(), LIMIT, |shown| !shown.ended).unwrap();
        String::from_utf8_lossy(&shown.raw).into_owned()
    }

    fn text_of(&self, shown: &Shown) -> String {
        let text = shown.parser.screen().contents().replace(&self.state, "STATE");
        let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
        Regex::new(r"\d+\.\d s").unwrap().replace_all(&lines.join("\n"), "N s").into_owned()
    }
}

fn show(mut pty: &Pty, shown: &(Mutex<Shown>, Condvar)) {
    let (shown, changed) = shown;
    let mut buffer = [0; 4096];
    loop {
        let read = pty.read(&mut buffer).unwrap_or(0);
        let mut shown = shown.lock().unwrap();
        shown.parser.process(&buffer[..read]);
        shown.raw.extend_from_slice(&buffer[..read]);
        shown.ended = read == 0;
        changed.notify_all();
        if shown.ended {
            break;
        }
    }
}
