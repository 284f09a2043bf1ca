//! The updates of the agents that a turn asks.

use goondan_runtime::TurnStream;

use crate::problem::{Problem, Result};

/// Whether the stream of a turn has the updates of the agents that it asks, too: `?children=true`.
// D-40
#[derive(Clone, Copy)]
pub(crate) struct WithChildren(pub(crate) bool);

impl WithChildren {
    pub(crate) const NAME: &str = "children";
    pub(crate) const DESCRIPTION: &str = "`true`: with the updates of the agents that the turn asks.";

    /// Returns the updates of a turn that begins, or goes on.
    pub(crate) fn stream(self, turn: TurnStream) -> TurnStream {
        if self.0 { turn.with_children() } else { turn }
    }

    /// Reads it in the query of a request.
    pub(crate) fn of(mut query: form_urlencoded::Parse<'_>) -> Result<Self> {
        let wanted = query.find(|(name, _)| name == Self::NAME);
        match wanted.as_ref().map(|(_, value)| &**value) {
            None | Some("false") => Ok(Self(false)),
            Some("true") => Ok(Self(true)),
            Some(_) => Err(Problem::request("`children` is `true` or `false`")),
        }
    }
}
