//! The report on a bundle that cannot be used: all errors, in the order of its files and their lines.

use std::fmt;

use goondan_core::{Error, ErrorCode};
use serde::{Serialize, Serializer};

use super::{Diagnostic, Sink, location};

/// Everything that keeps a bundle from being used: at least one error. Displayed, it is every error with its remedy;
/// serialized, a list of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostics {
    // Boxed to keep the `Err` of results small.
    first: Box<Diagnostic>,
    rest: Vec<Diagnostic>,
}

impl Diagnostics {
    /// The diagnostics of each file, in the order of the sinks. Those of other files, which the files of the sinks
    /// name, come last.
    pub(crate) fn gather(sinks: impl IntoIterator<Item = Sink>) -> Option<Self> {
        let (mut all, mut elsewhere) = (Vec::new(), Vec::new());
        for sink in sinks {
            let file = sink.file().to_owned();
            let (mut own, other): (Vec<_>, Vec<_>) =
                sink.into_diagnostics().into_iter().partition(|diagnostic| diagnostic.file == file);
            own.sort_by_key(|diagnostic| diagnostic.place);
            all.extend(own);
            elsewhere.extend(other);
        }
        elsewhere.sort_by(|a, b| (&a.file, a.place).cmp(&(&b.file, b.place)));
        // Two models can name one broken script, and the script can also be read as a file of the bundle.
        elsewhere.dedup();
        elsewhere.retain(|diagnostic| !all.contains(diagnostic));
        all.extend(elsewhere);
        Self::new(all)
    }

    /// The diagnostics in this order; `None` if there are none.
    pub(crate) fn new(diagnostics: Vec<Diagnostic>) -> Option<Self> {
        let mut diagnostics = diagnostics.into_iter();
        Some(Self { first: Box::new(diagnostics.next()?), rest: diagnostics.collect() })
    }

    /// Returns the first diagnostic.
    pub fn first(&self) -> &Diagnostic {
        &self.first
    }

    /// Returns all diagnostics, in the order of the files and their lines.
    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        std::iter::once(&*self.first).chain(&self.rest)
    }

    /// Returns the number of diagnostics: at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// Returns the first diagnostic as an error with the message `<file>:<line>:<column>: <message>`. Its
    /// suggestion also says how many more there are.
    pub fn into_error(self) -> Error {
        let Diagnostic { code, file, place, message, mut suggestion, .. } = *self.first;
        let more = self.rest.len();
        if more > 0 {
            let faults = if more == 1 { "fault" } else { "faults" };
            suggestion.push_str(&format!("; the bundle has {more} more {faults}, which `goondan check` lists"));
        }
        let code = code.unwrap_or(ErrorCode::CONFIG_SCHEMA);
        Error::new(code, format!("{}: {message}", location(&file, place))).suggest(suggestion)
    }
}

impl From<Diagnostic> for Diagnostics {
    fn from(diagnostic: Diagnostic) -> Self {
        Self { first: Box::new(diagnostic), rest: Vec::new() }
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::iter::Chain<std::iter::Once<Diagnostic>, std::vec::IntoIter<Diagnostic>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(*self.first).chain(self.rest)
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.first, f)?;
        self.rest.iter().try_for_each(|diagnostic| write!(f, "\n{diagnostic}"))
    }
}

impl std::error::Error for Diagnostics {}

impl Serialize for Diagnostics {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
