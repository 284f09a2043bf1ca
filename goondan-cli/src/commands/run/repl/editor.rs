//! The line editor: a thread that reads one input for each request.

use std::borrow::Cow;
use std::cell::Cell;
use std::sync::mpsc;
use std::thread;

use goondan::{Error, ErrorCode, Result};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, Config, Context, ExternalPrinter, Helper};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::command::COMMANDS;
use super::input_history::{InputHistory, MAX_INPUTS};
use super::terminal::Terminal;
use crate::output::{self, Style, Styled};

const PROMPT: &str = "> ";

/// The result of one request for input.
pub(crate) enum EditorEvent {
    Input(String),
    /// Ctrl-C; the line was discarded.
    Interrupted {
        /// Whether the line was empty.
        empty: bool,
    },
    /// Ctrl-D, or the terminal was closed.
    End,
}

/// A request to the editor thread.
enum Request {
    /// An input, which begins with this text.
    Input(String),
    /// An input that is shown as stars, and is not in the history.
    Secret,
    /// That an input of elsewhere is in the history.
    Remember(String),
}

/// The handle of the editor thread. The thread reads from the terminal only after [`EditorThread::request`], so that
/// it does not interfere with a running turn. It ends when this is dropped.
pub(crate) struct EditorThread {
    requests: mpsc::Sender<Request>,
    events: UnboundedReceiver<Result<EditorEvent>>,
    /// Prints above the edited line; `None` on a terminal whose lines cannot be redrawn.
    printer: Option<Box<dyn ExternalPrinter + Send>>,
}

impl EditorThread {
    pub(crate) fn start(terminal: &Terminal, history: InputHistory) -> Result<Self> {
        let (requests, requested) = mpsc::channel();
        let (sender, events) = unbounded_channel();
        let mut editor = LineEditor::new(terminal, history)?;
        let printer = editor.editor.create_external_printer().ok().map(|printer| Box::new(printer) as _);
        thread::Builder::new().name("editor".to_owned()).spawn(move || {
            while let Ok(request) = requested.recv() {
                let event = match request {
                    Request::Input(text) => editor.read(&text),
                    Request::Secret => editor.read_secret(),
                    Request::Remember(text) => match editor.remember(&text) {
                        Ok(()) => continue,
                        Err(error) => Err(error),
                    },
                };
                // The receiver is dropped only when the process is about to exit.
                if sender.send(event).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { requests, events, printer })
    }

    /// Prints whole lines above the line that is being edited.
    pub(crate) fn print_above(&mut self, lines: &Styled) {
        let printed = self.printer.as_mut().map(|printer| printer.print(lines.as_str().to_owned()));
        if !matches!(printed, Some(Ok(()))) {
            output::eprint_styled(lines);
        }
    }

    /// Shows the prompt and requests one input, which begins with `text`.
    pub(crate) fn request(&self, text: String) {
        // If the thread has ended, `next` returns `End`.
        _ = self.requests.send(Request::Input(text));
    }

    /// Shows the prompt and requests one input that is not shown.
    pub(crate) fn request_secret(&self) {
        _ = self.requests.send(Request::Secret);
    }

    /// Adds an input to the history that was typed while a turn ran.
    pub(crate) fn remember(&self, text: String) {
        _ = self.requests.send(Request::Remember(text));
    }

    /// Waits for the result of the last request.
    pub(crate) async fn next(&mut self) -> Result<EditorEvent> {
        self.events.recv().await.unwrap_or(Ok(EditorEvent::End))
    }
}

/// The state of the editor thread.
struct LineEditor {
    editor: rustyline::Editor<LineHelper, MemHistory>,
    prompt: (&'static str, String),
    history: InputHistory,
}

impl LineEditor {
    fn new(terminal: &Terminal, history: InputHistory) -> Result<Self> {
        let colors = if terminal.colors { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder().color_mode(colors).max_history_size(MAX_INPUTS).map_err(unusable)?.build();
        let mem_history = MemHistory::with_config(&config);
        let mut editor = rustyline::Editor::with_history(config, mem_history).map_err(unusable)?;
        editor.set_helper(Some(LineHelper::default()));
        let mut line_editor = Self {
            editor,
            prompt: (PROMPT, terminal.styled().paint(Style::Cyan, PROMPT).as_str().to_owned()),
            history,
        };
        line_editor.load_history()?;
        Ok(line_editor)
    }

    /// Copies the input history into the editor.
    fn load_history(&mut self) -> Result<()> {
        self.editor.clear_history().map_err(unusable)?;
        for input in self.history.inputs() {
            self.editor.add_history_entry(input).map_err(unusable)?;
        }
        Ok(())
    }

    fn read(&mut self, text: &str) -> Result<EditorEvent> {
        match self.edit(text)? {
            EditorEvent::Input(input) => self.accept(&input),
            event => Ok(event),
        }
    }

    fn read_secret(&mut self) -> Result<EditorEvent> {
        let set = |editor: &Self, is_secret| _ = editor.editor.helper().map(|helper| helper.is_secret.set(is_secret));
        set(self, true);
        let event = self.edit("");
        set(self, false);
        event
    }

    /// Lets the person edit a line that begins with `text`.
    fn edit(&mut self, text: &str) -> Result<EditorEvent> {
        loop {
            if let Some(helper) = self.editor.helper() {
                helper.empty.set(text.is_empty());
            }
            match self.editor.readline_with_initial(&self.prompt, (text, "")) {
                Ok(input) => return Ok(EditorEvent::Input(input)),
                Err(ReadlineError::Interrupted) => {
                    let empty = self.editor.helper().is_none_or(|helper| helper.empty.get());
                    return Ok(EditorEvent::Interrupted { empty });
                }
                // The window was resized before the first key.
                Err(ReadlineError::Signal(_)) => {}
                // Reading from a closed terminal fails.
                Err(ReadlineError::Eof | ReadlineError::Io(_) | ReadlineError::Errno(_)) => {
                    return Ok(EditorEvent::End);
                }
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    fn accept(&mut self, input: &str) -> Result<EditorEvent> {
        let input = input.replace("\\\n", "\n");
        self.remember(&input)?;
        Ok(EditorEvent::Input(input))
    }
}

impl LineEditor {
    /// Adds an input to the history, unless it is blank.
    fn remember(&mut self, input: &str) -> Result<()> {
        if input.trim().is_empty() {
            return Ok(());
        }
        if let Err(error) = self.history.add(input) {
            let error = Error::new(ErrorCode::IO, "cannot store the input history").caused_by(error);
            output::report(&error);
        }
        self.load_history()
    }
}

fn unusable(error: ReadlineError) -> Error {
    Error::new(ErrorCode::IO, "cannot edit lines on this terminal").suggest("try TERM=dumb").caused_by(error)
}

/// Continues lines that end in a backslash, completes commands, and records whether the line is empty.
#[derive(Default)]
struct LineHelper {
    /// Set while the line is edited, since rustyline does not report the discarded line on Ctrl-C.
    empty: Cell<bool>,
    /// Whether the line is shown as stars.
    is_secret: Cell<bool>,
}

impl Helper for LineHelper {}

impl Highlighter for LineHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        if self.is_secret.get() { Cow::Owned("*".repeat(line.chars().count())) } else { Cow::Borrowed(line) }
    }

    fn highlight_char(&self, _: &str, _: usize, _: CmdKind) -> bool {
        self.is_secret.get()
    }
}

impl Validator for LineHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let continues = context.input().ends_with('\\') && !self.is_secret.get();
        Ok(if continues { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for LineHelper {
    type Hint = String;

    /// Returns no hint. rustyline calls it on each change of the line, which makes it the place to look at the line.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.empty.set(line.is_empty());
        None
    }
}

impl Completer for LineHelper {
    type Candidate = String;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..cursor];
        let matching = COMMANDS.iter().filter(|(name, _)| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, matching.map(|(name, _)| (*name).to_owned()).collect()))
    }
}
