//! The kinds of resources.

use std::fmt;

/// The kinds of resources that this version reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Model,
    Extension,
    Agent,
    Swarm,
    Server,
}

impl Kind {
    pub(crate) const ALL: [Self; 5] = [Self::Model, Self::Extension, Self::Agent, Self::Swarm, Self::Server];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Model => "Model",
            Self::Extension => "Extension",
            Self::Agent => "Agent",
            Self::Swarm => "Swarm",
            Self::Server => "Server",
        }
    }

    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().map(Self::as_str)
    }

    pub(crate) fn with_article(self) -> String {
        let article = if matches!(self, Self::Agent | Self::Extension) { "an" } else { "a" };
        format!("{article} {self}")
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
