//! Diagnostics: mistakes in a bundle, each with its place and its remedy.

mod report;
pub use report::Diagnostics;

mod sink;
pub(crate) use sink::Sink;

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use goondan_core::ErrorCode;
use serde::{Serialize, Serializer};

/// A place in a file. Both numbers count from 1; columns count characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The line.
    pub line: u64,
    /// The character in the line.
    pub column: u64,
}

impl Place {
    /// The beginning of a file, for mistakes in its text as a whole.
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

/// The severity of a mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Severity {
    /// The bundle cannot be used.
    Error,
    /// The bundle can be used, but probably not as its author wants.
    Warning,
}

/// The word in reports: `error`, or `hint` for a warning.
impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "hint",
        })
    }
}

/// A mistake in a bundle, with its place and its remedy.
///
/// Displayed, it is a line `<file>:<line>:<column>: error[<code>]: <message>`, or `…: hint: <message>` for a warning,
/// with the remedy indented below. Serialized, it is an object with `message`, `path`, `file`, `line`, `column` and
/// `suggestion`; the object of an error also has `code` and `helpUrl`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Diagnostic {
    /// An error, or a warning, with which the bundle can be used.
    pub severity: Severity,
    /// The stable code of an error; warnings have none.
    pub code: Option<ErrorCode>,
    /// The file or directory, as the caller named it or as it was found below the named one.
    pub file: PathBuf,
    /// The wrong token; `None` when there is no text to point at.
    pub place: Option<Place>,
    /// The field, such as `spec.extensions[0].ref`; empty for the document or the file as a whole.
    pub path: String,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub suggestion: String,
}

impl Diagnostic {
    pub(crate) fn error(
        code: ErrorCode,
        file: &Path,
        place: impl Into<Option<Place>>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Self {
        Self {
            severity: Severity::Error,
            code: Some(code),
            file: file.to_owned(),
            place: place.into(),
            path: String::new(),
            message: message.into(),
            suggestion: suggestion.into(),
        }
    }

    /// An error about a file or directory that is no YAML that can be read.
    pub(crate) fn parse_error(
        file: &Path,
        place: impl Into<Option<Place>>,
        message: impl Into<String>,
        suggestion: impl Into<String>,
    ) -> Self {
        Self::error(ErrorCode::CONFIG_PARSE, file, place, message, suggestion)
    }

    /// An error about a file or directory that the operating system did not let us read.
    pub(crate) fn unreadable(file: &Path, error: &io::Error) -> Self {
        let (message, suggestion) = match error.kind() {
            io::ErrorKind::NotFound => ("there is no such file or directory".to_owned(), "check the path"),
            io::ErrorKind::PermissionDenied => (
                "this may not be read: permission denied".to_owned(),
                "change its permissions, or run as a user who may",
            ),
            _ => (format!("this cannot be read: {error}"), "check the path and the disk"),
        };
        Self::parse_error(file, None, message, suggestion)
    }

    #[doc(hidden)]
    pub fn warning(file: &Path, place: Place, message: String, suggestion: String) -> Self {
        let (severity, file) = (Severity::Warning, file.to_owned());
        Self { severity, code: None, file, place: Some(place), path: String::new(), message, suggestion }
    }

    /// Sets the field that is wrong.
    pub(crate) fn with_path(self, path: &str) -> Self {
        Self { path: path.to_owned(), ..self }
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", location(&self.file, self.place), self.severity)?;
        if let Some(code) = &self.code {
            write!(f, "[{code}]")?;
        }
        write!(f, ": {}\n    help: {}", one_line(&self.message), one_line(&self.suggestion))
    }
}

impl Serialize for Diagnostic {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Row<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            code: Option<&'a str>,
            message: &'a str,
            path: &'a str,
            file: Cow<'a, str>,
            line: Option<u64>,
            column: Option<u64>,
            suggestion: &'a str,
            // An error whose code has no page has the member too, as null.
            #[serde(skip_serializing_if = "Option::is_none")]
            help_url: Option<Option<String>>,
        }
        let row = Row {
            code: self.code.as_ref().map(ErrorCode::as_str),
            message: &self.message,
            path: &self.path,
            file: self.file.to_string_lossy(),
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            suggestion: &self.suggestion,
            help_url: self.code.as_ref().map(ErrorCode::help_url),
        };
        row.serialize(serializer)
    }
}

/// `<file>:<line>:<column>`, or the file alone.
pub(crate) fn location(file: &Path, place: Option<Place>) -> String {
    place.map_or_else(|| file.display().to_string(), |place| format!("{}:{place}", file.display()))
}

/// `text` on one line, with control characters escaped, because they could steer a terminal.
fn one_line(text: &str) -> String {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut line = String::with_capacity(words.len());
    for char in words.chars() {
        if char.is_control() { line.extend(char.escape_default()) } else { line.push(char) }
    }
    line
}
