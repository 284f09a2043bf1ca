//! Owns the list of everything that is wrong with a bundle, in the order of its files and their lines.

use std::fmt;

use goondan_core::Error;
use serde::{Serialize, Serializer};

use crate::fault::{Collector, Fault};

/// Everything that is wrong with a bundle: at least one fault. Displayed, it is every fault with its remedy;
/// serialized, a list of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    // In a box, so that the `Err` of a result stays small.
    first: Box<Fault>,
    rest: Vec<Fault>,
}

impl Faults {
    /// What was collected of each file, in the order of the files; faults of files that these name come last.
    pub(crate) fn gather(collectors: impl IntoIterator<Item = Collector>) -> Option<Self> {
        let (mut all, mut elsewhere) = (Vec::new(), Vec::new());
        for collector in collectors {
            let file = collector.file().to_owned();
            let (mut own, other): (Vec<_>, Vec<_>) =
                collector.into_faults().into_iter().partition(|fault| fault.file == file);
            own.sort_by_key(|fault| fault.place);
            all.extend(own);
            elsewhere.extend(other);
        }
        elsewhere.sort_by(|a, b| (&a.file, a.place).cmp(&(&b.file, b.place)));
        // Two models can name one broken script, and that can look like a file of the bundle.
        elsewhere.dedup();
        elsewhere.retain(|fault| !all.contains(fault));
        all.extend(elsewhere);
        Self::of(all)
    }

    /// Faults that were found after reading, in their order.
    pub(crate) fn of(faults: Vec<Fault>) -> Option<Self> {
        let mut faults = faults.into_iter();
        Some(Self { first: Box::new(faults.next()?), rest: faults.collect() })
    }

    /// The fault that stands first.
    pub fn first(&self) -> &Fault {
        &self.first
    }

    /// All faults, in the order of the files and their lines.
    pub fn iter(&self) -> impl Iterator<Item = &Fault> {
        std::iter::once(&*self.first).chain(&self.rest)
    }

    /// How many faults there are: at least one.
    #[expect(clippy::len_without_is_empty, reason = "it is never empty")]
    pub fn len(&self) -> usize {
        1 + self.rest.len()
    }

    /// The first fault as an error whose suggestion says how many more there are.
    pub fn into_error(self) -> Error {
        let mut first = *self.first;
        let more = self.rest.len();
        if more > 0 {
            let faults = if more == 1 { "fault" } else { "faults" };
            first.suggestion.push_str(&format!("; the bundle has {more} more {faults}, which `goondan check` lists"));
        }
        first.into_error()
    }
}

impl From<Fault> for Faults {
    fn from(fault: Fault) -> Self {
        Self { first: Box::new(fault), rest: Vec::new() }
    }
}

impl IntoIterator for Faults {
    type Item = Fault;
    type IntoIter = std::iter::Chain<std::iter::Once<Fault>, std::vec::IntoIter<Fault>>;

    fn into_iter(self) -> Self::IntoIter {
        std::iter::once(*self.first).chain(self.rest)
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.first, f)?;
        self.rest.iter().try_for_each(|fault| write!(f, "\n{fault}"))
    }
}

impl std::error::Error for Faults {}

impl Serialize for Faults {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}
