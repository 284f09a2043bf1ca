//! Owns what is wrong with a bundle: one fault, its place and its remedy, and how it is told.

use std::cell::RefCell;
use std::fmt;
use std::path::{Path, PathBuf};

use goondan_core::{Error, ErrorCode};
use serde::{Serialize, Serializer};

/// A place in a file; both numbers count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl Place {
    /// Where a file begins, for faults of its text as a whole.
    pub(crate) const START: Self = Self { line: 1, column: 1 };
}

impl From<serde_saphyr::Location> for Place {
    fn from(location: serde_saphyr::Location) -> Self {
        Self { line: location.line(), column: location.column() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// One thing that is wrong with a bundle. Displayed, it is a line `<file>:<line>:<column>: error[<code>]: <message>`
/// and the remedy indented below; serialized, an object with `code`, `message`, `path`, `file`, `line`, `column`,
/// `suggestion` and `helpUrl` (F-REF).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Fault {
    /// The file, or the directory, as it was named or found.
    pub file: PathBuf,
    /// The wrong token; `None` when there is no text to point at.
    pub place: Option<Place>,
    /// The field, such as `spec.extensions[0].ref`; empty when it is the document or the file.
    pub path: String,
    /// The stable code.
    pub code: ErrorCode,
    /// What is wrong.
    pub message: String,
    /// What the author can do about it.
    pub suggestion: String,
}

impl Fault {
    /// The fault as an error: `<file>:<line>:<column>: <message>`.
    pub fn into_error(self) -> Error {
        let at = at(&self.file, self.place);
        Error::new(self.code, format!("{at}: {}", self.message)).suggest(self.suggestion)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = at(&self.file, self.place);
        write!(f, "{at}: error[{}]: {}\n    help: {}", self.code, line(&self.message), line(&self.suggestion))
    }
}

impl Serialize for Fault {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Row<'a> {
            code: &'a str,
            message: &'a str,
            path: &'a str,
            file: std::borrow::Cow<'a, str>,
            line: Option<u64>,
            column: Option<u64>,
            suggestion: &'a str,
            help_url: Option<String>,
        }
        let row = Row {
            code: self.code.as_str(),
            message: &self.message,
            path: &self.path,
            file: self.file.to_string_lossy(),
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            suggestion: &self.suggestion,
            help_url: self.code.help_url(),
        };
        row.serialize(serializer)
    }
}

/// A fault of a text of which the reader does not know the file.
#[derive(Debug)]
pub(crate) struct Flaw {
    pub(crate) code: ErrorCode,
    pub(crate) place: Option<Place>,
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) suggestion: String,
}

impl Flaw {
    pub(crate) fn new(
        code: ErrorCode,
        place: impl Into<Option<Place>>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Self {
        let (message, suggestion) = (message.into(), suggestion.into());
        Self { code, place: place.into(), path: String::new(), message, suggestion }
    }

    pub(crate) fn under(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }

    pub(crate) fn of(self, file: &Path) -> Fault {
        let Self { code, place, path, message, suggestion } = self;
        Fault { file: file.to_owned(), place, path, code, message, suggestion }
    }
}

/// Collects the faults of one file. Reading goes on after a fault, so that all are known in the end.
#[derive(Debug)]
pub(crate) struct Collector {
    file: PathBuf,
    faults: RefCell<Vec<Fault>>,
}

impl Collector {
    pub(crate) fn new(file: PathBuf) -> Self {
        Self { file, faults: RefCell::default() }
    }

    pub(crate) fn file(&self) -> &Path {
        &self.file
    }

    pub(crate) fn report(&self, flaw: Flaw) {
        self.report_elsewhere(flaw.of(&self.file));
    }

    /// Reports a fault that may have been reported already.
    pub(crate) fn report_once(&self, flaw: Flaw) {
        let fault = flaw.of(&self.file);
        if !self.faults.borrow().contains(&fault) {
            self.report_elsewhere(fault);
        }
    }

    /// Reports a fault of a file that this one names.
    pub(crate) fn report_elsewhere(&self, fault: Fault) {
        self.faults.borrow_mut().push(fault);
    }

    pub(crate) fn into_faults(self) -> Vec<Fault> {
        self.faults.into_inner()
    }
}

/// `<file>:<line>:<column>`, or the file alone.
pub(crate) fn at(file: &Path, place: Option<Place>) -> String {
    place.map_or_else(|| file.display().to_string(), |place| format!("{}:{place}", file.display()))
}

/// `text` on one line, and without characters that would steer a terminal.
pub(crate) fn line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = String::with_capacity(words.len());
    for char in words.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}
