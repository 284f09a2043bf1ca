//! Owns the faults of one file: what is wrong, where, and the remedy; and how the first one becomes an error.

use std::cell::RefCell;
use std::fmt;
use std::path::Path;

use goondan_core::{Error, ErrorCode};

/// A place in a file; both numbers count from 1, columns in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: u64,
    pub(crate) column: u64,
}

impl Place {
    /// Where a file begins, for faults of the file as a whole.
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

/// One thing that is wrong with a file.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) code: ErrorCode,
    pub(crate) place: Place,
    pub(crate) message: String,
    /// What the author can do about it.
    pub(crate) remedy: String,
}

impl Fault {
    pub(crate) fn new(code: ErrorCode, place: Place, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { code, place, message: message.into(), remedy: remedy.into() }
    }

    /// The fault as the error that leaves the crate: `<file>:<line>:<column>: <message>`.
    pub(crate) fn into_error(self, file: &Path) -> Error {
        let Self { code, place, message, remedy } = self;
        Error::new(code, format!("{}:{place}: {message}", file.display())).suggest(remedy)
    }
}

/// Collects the faults of one file. Reading goes on after a fault, so that the first one in the order of the file is
/// known, whatever the order of the checks.
#[derive(Debug, Default)]
pub(crate) struct Faults(RefCell<Vec<Fault>>);

impl Faults {
    pub(crate) fn report(&self, fault: Fault) {
        self.0.borrow_mut().push(fault);
    }

    /// The fault that stands first in the file.
    pub(crate) fn into_first(self) -> Option<Fault> {
        self.0.into_inner().into_iter().min_by_key(|fault| fault.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_fault_is_the_first_in_the_file() {
        let faults = Faults::default();
        for (line, column) in [(3, 1), (2, 9), (2, 4), (4, 1)] {
            faults.report(Fault::new(ErrorCode::CONFIG_SCHEMA, Place { line, column }, "wrong", "right it"));
        }
        let error = faults.into_first().unwrap().into_error(Path::new("a/b.yaml"));
        assert_eq!(error.message(), "a/b.yaml:2:4: wrong");
        assert_eq!(error.suggestion(), Some("right it"));
    }
}
