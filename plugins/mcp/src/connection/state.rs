//! Messages for the user about a connection.

use std::fmt;
use std::time::Duration;

/// The state of a connection.
pub(crate) enum State {
    /// It was not made yet.
    New,
    /// The server starts.
    Starts,
    /// It is open.
    Works,
    /// It is opened for each call, as it was for the last one.
    WorksForEachCall,
    /// It ended, or could not be made.
    Broken { reason: String },
}

/// Describes a connection in one line.
pub(crate) struct Status {
    pub(crate) state: State,
    /// The name of the server, if it is known.
    pub(crate) server: Option<String>,
    /// The number of tools that the server has offered.
    pub(crate) tools: usize,
    /// The time that the server is left alone.
    pub(crate) pause: Option<Duration>,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.server {
            Some(name) => write!(f, "MCP server {name}: ")?,
            None => write!(f, "MCP server: ")?,
        }
        match (&self.state, self.pause) {
            (State::New, _) => write!(f, "not connected yet"),
            (State::Starts, _) => write!(f, "is being connected"),
            (State::Works, _) => write!(f, "connected, {} tools", self.tools),
            (State::WorksForEachCall, _) => write!(f, "connected for each call, {} tools", self.tools),
            (State::Broken { reason }, pause) => {
                write!(f, "not connected; {}", reason.lines().next().unwrap_or_default())?;
                match pause {
                    Some(pause) => write!(f, "; left alone for {} s", pause.as_secs() + 1),
                    None => Ok(()),
                }
            }
        }
    }
}
