//! Owns the line editor: a thread of its own that reads one input whenever it is asked to.

use std::cell::Cell;
use std::sync::mpsc;
use std::thread;

use goondan::{Error, ErrorCode, Result};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, Config, Context, Helper};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::command::COMMANDS;
use super::recall::{KEPT, Recall};
use super::terminal::{Style, Terminal};
use crate::output;

const PROMPT: &str = "> ";

/// What came of asking for an input.
pub(crate) enum Typed {
    Input(String),
    /// Ctrl-C; what was typed is gone.
    Interrupted {
        /// Whether nothing was typed.
        empty: bool,
    },
    /// Ctrl-D, or the terminal went away.
    End,
}

/// The line editor. It asks the terminal only after [`Editor::ask`], so that a running turn has the terminal for itself.
pub(crate) struct Editor {
    ask: mpsc::Sender<()>,
    typed: UnboundedReceiver<Result<Typed>>,
}

impl Editor {
    pub(crate) fn start(terminal: &Terminal, recall: Recall) -> Result<Self> {
        let (ask, asked) = mpsc::channel();
        let (sender, typed) = unbounded_channel();
        let mut lines = LineEditor::new(terminal, recall)?;
        thread::Builder::new().name("editor".to_owned()).spawn(move || {
            while asked.recv().is_ok() {
                // When nobody waits for it the process is about to end.
                if sender.send(lines.read()).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { ask, typed })
    }

    /// Shows the prompt.
    pub(crate) fn ask(&self) {
        // A thread that is gone shows itself in `typed`.
        _ = self.ask.send(());
    }

    /// What was typed since it was asked for.
    pub(crate) async fn typed(&mut self) -> Result<Typed> {
        self.typed.recv().await.unwrap_or(Ok(Typed::End))
    }
}

struct LineEditor {
    editor: rustyline::Editor<Typing, MemHistory>,
    prompt: (&'static str, String),
    recall: Recall,
}

impl LineEditor {
    fn new(terminal: &Terminal, recall: Recall) -> Result<Self> {
        let colours = if terminal.colours { ColorMode::Enabled } else { ColorMode::Disabled };
        let config = Config::builder().color_mode(colours).max_history_size(KEPT).map_err(unusable)?.build();
        let history = MemHistory::with_config(&config);
        let mut editor = rustyline::Editor::with_history(config, history).map_err(unusable)?;
        editor.set_helper(Some(Typing::default()));
        let mut lines = Self { editor, prompt: (PROMPT, terminal.paint(Style::Cyan, PROMPT)), recall };
        lines.offer()?;
        Ok(lines)
    }

    /// Lets the editor find what was typed earlier.
    fn offer(&mut self) -> Result<()> {
        self.editor.clear_history().map_err(unusable)?;
        for input in self.recall.inputs() {
            self.editor.add_history_entry(input).map_err(unusable)?;
        }
        Ok(())
    }

    fn read(&mut self) -> Result<Typed> {
        loop {
            if let Some(typing) = self.editor.helper() {
                typing.empty.set(true);
            }
            match self.editor.readline(&self.prompt) {
                Ok(input) => return self.typed(&input),
                Err(ReadlineError::Interrupted) => {
                    let empty = self.editor.helper().is_none_or(|typing| typing.empty.get());
                    return Ok(Typed::Interrupted { empty });
                }
                // The window got another size before the first key.
                Err(ReadlineError::Signal(_)) => {}
                // A terminal that went away cannot be read.
                Err(ReadlineError::Eof | ReadlineError::Io(_) | ReadlineError::Errno(_)) => return Ok(Typed::End),
                Err(error) => return Err(unusable(error)),
            }
        }
    }

    fn typed(&mut self, input: &str) -> Result<Typed> {
        let input = input.replace("\\\n", "\n");
        if !input.trim().is_empty() {
            if let Err(error) = self.recall.add(&input) {
                let error = Error::new(ErrorCode::IO, "what was typed cannot be kept for later").caused_by(error);
                output::report(&error);
            }
            self.offer()?;
        }
        Ok(Typed::Input(input))
    }
}

fn unusable(error: ReadlineError) -> Error {
    Error::new(ErrorCode::IO, "cannot edit lines on this terminal").suggest("try TERM=dumb").caused_by(error)
}

/// What is known of the line while it is typed.
#[derive(Default)]
struct Typing {
    empty: Cell<bool>,
}

impl Helper for Typing {}

impl Highlighter for Typing {}

impl Validator for Typing {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        let goes_on = context.input().ends_with('\\');
        Ok(if goes_on { ValidationResult::Incomplete } else { ValidationResult::Valid(None) })
    }
}

impl Hinter for Typing {
    type Hint = String;

    /// Hints at nothing: it is called for each change of the line.
    fn hint(&self, line: &str, _: usize, _: &Context<'_>) -> Option<String> {
        self.empty.set(line.is_empty());
        None
    }
}

impl Completer for Typing {
    type Candidate = String;

    fn complete(&self, line: &str, cursor: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let typed = &line[..cursor];
        let fitting = COMMANDS.iter().filter(|(name, _)| typed.starts_with('/') && name.starts_with(typed));
        Ok((0, fitting.map(|(name, _)| (*name).to_owned()).collect()))
    }
}
