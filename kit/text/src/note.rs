//! The note that the model reads where a text was cut.

use std::fmt;
use std::path::PathBuf;

/// Where the whole of a text is.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Place {
    /// In a file.
    File(PathBuf),
    /// Its first bytes are in a file, and the rest is lost.
    Beginning(PathBuf, usize),
    /// Nowhere: it could not be written to a file, for this reason.
    Lost(String),
    /// Where the model cannot read it.
    Unreachable,
}

/// The note that replaces what was left out of a text.
#[derive(Clone, Copy, Debug)]
pub struct LeftOut<'a> {
    /// The number of characters that were left out.
    pub characters: usize,
    /// The number of characters in the text.
    pub all: usize,
    /// The first and the last line with an omission, from 1.
    pub lines: [usize; 2],
    /// Where the whole text is.
    pub place: &'a Place,
}

impl fmt::Display for LeftOut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { characters, all, lines: [first, last], place } = self;
        write!(f, "[{characters} of {all} characters are left out here, ")?;
        if first == last { write!(f, "in line {first}.") } else { write!(f, "lines {first} to {last}.") }?;
        // The same limit applies to what the model reads of the file.
        const READ: &str = "read a part of it, or search in it. More than a part would be shortened again";
        match place {
            Place::File(path) => write!(f, " The whole text is in the file {}: {READ}.", path.display()),
            Place::Beginning(path, bytes) => {
                write!(f, " The first {bytes} bytes of the text are in the file {}: {READ}.", path.display())
            }
            Place::Lost(reason) => write!(f, " They could not be written to a file and are lost: {reason}"),
            Place::Unreachable => Ok(()),
        }?;
        f.write_str("]")
    }
}
