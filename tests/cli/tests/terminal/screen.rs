//! A program on a pseudo-terminal: sends keys to it and waits for what the screen shows.

use std::io::{Read, Write};
use std::num::NonZero;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use pty_process::Size;
use pty_process::blocking::{Command, Pty};
use regex::Regex;

use crate::support::{Fixture, PROGRAM};
use crate::svg;

const ROWS: NonZero<u16> = NonZero::new(60).unwrap();
const COLUMNS: NonZero<u16> = NonZero::new(140).unwrap();

/// How long a test waits for the screen before it fails. What it waits for happens at once.
const LIMIT: Duration = Duration::from_secs(60);

pub(crate) const ESC: &str = "\x1b";
pub(crate) const UP: &str = "\x1b[A";
pub(crate) const LEFT: &str = "\x1b[D";
pub(crate) const BACKSPACE: &str = "\x7f";
pub(crate) const ENTER: &str = "\r";
pub(crate) const CTRL_C: &str = "\x03";
pub(crate) const CTRL_D: &str = "\x04";
pub(crate) const CTRL_R: &str = "\x12";

/// A program on a terminal, mostly `goondan run`. A thread reads what it prints until it ends.
pub(crate) struct Screen {
    pty: Arc<Pty>,
    pub(crate) child: Child,
    output: Arc<(Mutex<TerminalOutput>, Condvar)>,
    /// The state root, which the text of the screen replaces by `STATE`: its name differs in every run.
    state: String,
    /// The gate of the fixture, which the text replaces by `GATE`.
    gate: String,
}

struct TerminalOutput {
    parser: vt100::Parser,
    /// All bytes as they came.
    raw: Vec<u8>,
    ended: bool,
}

impl Screen {
    pub(crate) fn start(fixture: &Fixture, arguments: &[&str], variables: &[(&str, &str)]) -> Self {
        let command = Command::new(PROGRAM).args(fixture.arguments()).args(arguments);
        let command = command.env_remove("GOONDAN_LOG").env_remove("NO_COLOR").env("TERM", "xterm-256color");
        Self::run(command.envs(variables.iter().copied()), &fixture.state())
    }

    /// Starts it on a terminal of this width.
    pub(crate) fn start_with_columns(fixture: &Fixture, columns: NonZero<u16>) -> Self {
        let command = Command::new(PROGRAM).args(fixture.arguments()).env_remove("GOONDAN_LOG").env_remove("NO_COLOR");
        Self::run_with_columns(command.env("TERM", "xterm-256color"), &fixture.state(), columns)
    }

    /// Runs a command on a terminal.
    pub(crate) fn run(command: Command, state: &Path) -> Self {
        Self::run_with_columns(command, state, COLUMNS)
    }

    pub(crate) fn run_with_columns(command: Command, state: &Path, columns: NonZero<u16>) -> Self {
        let (pty, pts) = pty_process::blocking::open().unwrap();
        pty.resize(Size::new(ROWS.get(), columns.get())).unwrap();
        let child = command.spawn(pts).unwrap();
        let parser = vt100::Parser::new(ROWS, columns, 0);
        let output = TerminalOutput { parser, raw: Vec::new(), ended: false };
        let output = Arc::new((Mutex::new(output), Condvar::new()));
        let pty = Arc::new(pty);
        let (reader, writer) = (Arc::clone(&pty), Arc::clone(&output));
        thread::spawn(move || read_output(&reader, &writer));
        let [state, gate] = [state.to_owned(), state.with_file_name("gate")].map(|path| path.display().to_string());
        Self { pty, child, output, state, gate }
    }

    /// Changes the number of columns.
    pub(crate) fn resize(&self, columns: NonZero<u16>) {
        self.output.0.lock().unwrap().parser.screen_mut().set_size(ROWS, columns);
        self.pty.resize(Size::new(ROWS.get(), columns.get())).unwrap();
    }

    pub(crate) fn send(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Waits until the screen ends with `expected`. Elapsed times are replaced by `N s`, and spaces at the ends of
    /// lines are removed.
    #[track_caller]
    pub(crate) fn shows(&self, expected: &str) {
        self.wait(|text| text.ends_with(expected.trim_end()), expected);
    }

    /// Waits until `expected` is anywhere on the screen.
    #[track_caller]
    pub(crate) fn contains(&self, expected: &str) {
        self.wait(|text| text.contains(expected), expected);
    }

    /// Waits until the screen fits.
    #[track_caller]
    pub(crate) fn until(&self, fits: impl Fn(&str) -> bool, expected: &str) {
        self.wait(fits, expected);
    }

    /// Returns what the screen shows, with one sign of the progress for all, and one name for temporary directories.
    pub(crate) fn text(&self) -> String {
        let text = self.text_of(&self.output.0.lock().unwrap());
        let text = Regex::new("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]").unwrap().replace_all(&text, "⠼").into_owned();
        Regex::new(r"\.tmp\w{6}").unwrap().replace_all(&text, ".tmpXXXXXX").into_owned()
    }

    /// Draws the screen, from the last row on that begins with `from`.
    pub(crate) fn svg(&self, from: &str) -> String {
        svg::draw(self.output.0.lock().unwrap().parser.screen(), from)
    }

    #[track_caller]
    fn wait(&self, fits: impl Fn(&str) -> bool, expected: &str) {
        let output = self.wait_while(|output| !output.ended && !fits(&self.text_of(output)));
        let text = self.text_of(&output);
        assert!(fits(&text), "expected:\n{expected}\n\nshown:\n{text}");
    }

    /// Waits until the program has ended. Returns its exit status and the whole screen.
    pub(crate) fn end(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let text = self.text_of(&self.wait_while(|output| !output.ended));
        (status, text)
    }

    /// Waits until the program has ended with exit code 0. Returns all bytes that the terminal got.
    pub(crate) fn raw_at_end(mut self) -> String {
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
        String::from_utf8_lossy(&self.wait_while(|output| !output.ended).raw).into_owned()
    }

    fn wait_while(&self, condition: impl FnMut(&mut TerminalOutput) -> bool) -> MutexGuard<'_, TerminalOutput> {
        let (output, changed) = &*self.output;
        changed.wait_timeout_while(output.lock().unwrap(), LIMIT, condition).unwrap().0
    }

    fn text_of(&self, output: &TerminalOutput) -> String {
        let text = output.parser.screen().contents().replace(&self.state, "STATE").replace(&self.gate, "GATE");
        let lines: Vec<_> = text.trim_end().lines().map(str::trim_end).collect();
        Regex::new(r"\d+\.\d s").unwrap().replace_all(&lines.join("\n"), "N s").into_owned()
    }
}

fn read_output(mut pty: &Pty, output: &(Mutex<TerminalOutput>, Condvar)) {
    let (output, changed) = output;
    let mut buffer = [0; 4096];
    loop {
        let read = pty.read(&mut buffer).unwrap_or(0);
        let mut output = output.lock().unwrap();
        output.parser.process(&buffer[..read]);
        output.raw.extend_from_slice(&buffer[..read]);
        output.ended = read == 0;
        changed.notify_all();
        if output.ended {
            break;
        }
    }
}
