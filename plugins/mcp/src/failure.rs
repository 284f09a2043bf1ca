//! The errors of the extension. `docs/mcp.md` has a section for each code.

use std::fmt::Display;

use goondan::Error;

/// The server could not be started, or ended before it could be asked.
pub(crate) const START: &str = "E_MCP_START";
/// The server took too long to start, or to list its offers.
pub(crate) const TIMEOUT: &str = "E_MCP_TIMEOUT";
/// The connection ended during a call.
pub(crate) const GONE: &str = "E_MCP_GONE";
/// The server failed too often in a row.
pub(crate) const DOWN: &str = "E_MCP_DOWN";
/// The answer of the server is too large, or cannot be read.
pub(crate) const ANSWER: &str = "E_MCP_ANSWER";
/// The server refused a request.
pub(crate) const REFUSED: &str = "E_MCP_REFUSED";
/// The server answered with something that is not supported.
pub(crate) const UNSUPPORTED: &str = "E_MCP_UNSUPPORTED";

/// The detail of an error that says that a person has to sign in first.
pub(crate) const SIGN_IN: &str = "signIn";

/// Why a server gave no answer.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The connection ended.
    Gone,
    /// The server answered with an error, which is about the call and not about the server.
    Answered(Error),
    /// The server sent an answer that cannot be read; the text describes it.
    Unreadable(String),
}

/// Returns the error for an answer that cannot be read. `asked` names the server and what it was asked.
pub(crate) fn unreadable(asked: impl Display, reason: &str) -> Error {
    let message = format!("the answer of the MCP server {asked} {reason}");
    Error::new(ANSWER, message).suggest("ask the server for less at once")
}

/// Returns the error for a call whose connection ended; `reason` says how.
pub(crate) fn gone(reason: &str) -> Error {
    Error::new(GONE, format!("the MCP server was gone before it answered: {reason}")).suggest(
        "it is unknown whether the call had an effect: check that before you call again; the next call starts the server",
    )
}
