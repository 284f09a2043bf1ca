//! Owns hints: what is legal in a bundle, but probably not what its author wants.

use std::fmt;
use std::path::PathBuf;

use serde::{Serialize, Serializer};

use crate::fault::{Place, at, line};
use crate::field::Field;

/// What is probably not meant; it never keeps a bundle from running. Displayed, it is a line
/// `<file>:<line>:<column>: hint: <message>` and the remedy indented below; serialized, an object with `message`,
/// `path`, `file`, `line`, `column` and `suggestion`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Hint {
    /// The file.
    pub file: PathBuf,
    /// What is meant.
    pub place: Place,
    /// The field, such as `metadata.name`.
    pub path: String,
    /// What seems to be wrong.
    pub message: String,
    /// What the author can do about it.
    pub suggestion: String,
}

impl Hint {
    pub(crate) fn new(field: &Field<'_>, message: String, suggestion: String) -> Self {
        let file = field.faults().file().to_owned();
        Self { file, place: field.place(), path: field.path().to_owned(), message, suggestion }
    }
}

impl fmt::Display for Hint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = at(&self.file, Some(self.place));
        write!(f, "{at}: hint: {}\n    help: {}", line(&self.message), line(&self.suggestion))
    }
}

impl Serialize for Hint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Row<'a> {
            message: &'a str,
            path: &'a str,
            file: std::borrow::Cow<'a, str>,
            line: u64,
            column: u64,
            suggestion: &'a str,
        }
        let Self { place: Place { line, column }, path, message, suggestion, .. } = self;
        Row { message, path, file: self.file.to_string_lossy(), line: *line, column: *column, suggestion }
            .serialize(serializer)
    }
}
