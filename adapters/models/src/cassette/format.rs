//! The file of a cassette: lines of JSON, the first about the file, and one for each exchange.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind};
use std::path::Path;

use goondan_core::{BundleFile, BundleFileError, Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::{Failure, FailureKind};

/// The version of the format.
const VERSION: u32 = 1;

/// The most bytes that a file has.
const LARGEST: u64 = 256 << 20;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Head<'a> {
    cassette: u32,
    /// The version that recorded, for readers of a difference.
    #[serde(borrow)]
    goondan: Cow<'a, str>,
}

/// Returns the first line of a file.
pub(super) fn head() -> String {
    let head = Head { cassette: VERSION, goondan: env!("CARGO_PKG_VERSION").into() };
    // A number and a text.
    serde_json::to_string(&head).unwrap_or_default() + "\n"
}

/// A request and its response, without secrets.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exchange {
    pub(super) request: Request,
    pub(super) response: Response,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Request {
    /// The path of the address. The host may be another one.
    pub(super) path: String,
    pub(super) headers: BTreeMap<String, String>,
    pub(super) body: Value,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Response {
    pub(super) status: u16,
    pub(super) headers: BTreeMap<String, String>,
    #[serde(flatten)]
    pub(super) content: Content,
    /// Why the response did not come to its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) broken: Option<String>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Content {
    /// Server-sent events: the milliseconds since the one before, or since the request; the name, and the data.
    Events(Vec<(u64, String, String)>),
    /// Any other body.
    Body(String),
}

/// The content of a file.
#[derive(Default)]
pub(super) struct Recorded {
    pub(super) exchanges: Vec<Exchange>,
    /// The lines, each with its end.
    pub(super) text: String,
}

fn is_absent(error: &BundleFileError) -> bool {
    matches!(error, BundleFileError::Io(error) if error.kind() == ErrorKind::NotFound)
}

/// Reads a file. One that does not exist has nothing, unless it is `needed`.
///
/// # Errors
/// `E_MODEL_CASSETTE` when it cannot be read or is no cassette.
pub(super) fn read(path: &Path, needed: bool) -> Result<Recorded> {
    let shown = path.display();
    let read = BundleFile::open(path).and_then(|file| file.read_whole(LARGEST));
    let text = match read.and_then(|bytes| String::from_utf8(bytes).map_err(|error| io::Error::other(error).into())) {
        Ok(text) => text,
        Err(error) if is_absent(&error) && !needed => return Ok(Recorded::default()),
        Err(error) if is_absent(&error) => {
            let message = format!("there is no cassette `{shown}`");
            return Err(refused(message, "record one: `goondan run --cassettes record`"));
        }
        Err(error) => {
            let message = format!("the cassette `{shown}` cannot be read: {error}");
            return Err(refused(message, "check the file and its permissions"));
        }
    };
    let (first, rest) = text.split_once('\n').unwrap_or((&text, ""));
    let Ok(Head { cassette, goondan }) = serde_json::from_str(first) else {
        return Err(refused(format!("the file `{shown}` is no cassette"), "name another file"));
    };
    if cassette != VERSION {
        let message = format!("the cassette `{shown}` has version {cassette}, and this program reads {VERSION}");
        let message = format!("{message}: goondan {goondan} recorded it");
        return Err(refused(message, "record the conversation anew, or use that version"));
    }
    let mut recorded = Recorded { exchanges: Vec::new(), text: format!("{first}\n") };
    for (index, line) in rest.split_inclusive('\n').enumerate() {
        match serde_json::from_str(line) {
            Ok(exchange) => recorded.exchanges.push(exchange),
            // The process was killed while it wrote the line.
            Err(_) if !line.ends_with('\n') => break,
            Err(error) => {
                let message = format!("line {} of the cassette `{shown}` is no exchange: {error}", index + 2);
                return Err(refused(message, "remove the line, or record the conversation anew"));
            }
        }
        recorded.text.push_str(line.trim_end_matches('\n'));
        recorded.text.push('\n');
    }
    Ok(recorded)
}

pub(super) fn refused(message: String, remedy: &'static str) -> Error {
    Error::new(ErrorCode::MODEL_CASSETTE, message).suggest(remedy)
}

/// Returns the failure of a request with a cassette.
pub(super) fn failure(path: &Path, why: impl std::fmt::Display) -> Failure {
    Failure::new(FailureKind::Cassette, format!("the cassette `{}`: {why}", path.display()))
}
