//! When writes are synced to the disk.

/// When writes are synced to the disk, so that they survive a failure of the machine. They survive the process in any
/// case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Fsync {
    /// At the end of each turn, and before each tool call that may act on the world.
    #[default]
    Turn,
    /// Also before each request to the model, and after its answer.
    Always,
    /// Never: if the machine stops, the newest turns may be lost and files damaged.
    Never,
}

impl Fsync {
    /// Returns the name of the level in bundles and on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Turn => "turn",
            Self::Always => "always",
            Self::Never => "never",
        }
    }
}
