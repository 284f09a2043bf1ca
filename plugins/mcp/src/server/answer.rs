//! The answers of a server, independently of the crate that speaks the protocol.

use goondan::conversation::FilePart;
use goondan::{Map, Value};

/// A tool of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    /// For people.
    pub(crate) title: Option<String>,
    pub(crate) description: Option<String>,
    pub(crate) parameters: Map<String, Value>,
    /// The server says that the tool changes nothing.
    pub(crate) read_only: bool,
    /// The server says that two calls have the effect of one.
    pub(crate) idempotent: bool,
    /// The whole text of the server, with characters that a reader would not see.
    pub(crate) digest: String,
}

/// A resource of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Resource {
    pub(crate) uri: String,
    pub(crate) name: String,
    pub(crate) description: Option<String>,
    pub(crate) media_type: Option<String>,
}

/// The answer to a call.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) blocks: Vec<Block>,
    pub(crate) structured: Option<Value>,
    pub(crate) is_error: bool,
}

/// A part of an answer.
#[derive(Debug)]
pub(crate) enum Block {
    Text(String),
    File(FilePart),
}
