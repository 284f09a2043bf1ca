//! The reply about a response, for the model.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;

use goondan::secret::mask;
use goondan::tool::ToolContext;
use goondan::{Error, Result};
use goondan_text::NumberedFile;
use reqwest::header::{CONNECTION, CONTENT_ENCODING, CONTENT_TYPE, HeaderMap};
use reqwest::{Method, Response};
use serde::Serialize;

use crate::failure::{ENCODING, failed};
use crate::request::is_hop_by_hop;

/// A response.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Fetched {
    /// Where it came from, after redirects.
    url: String,
    method: String,
    status: u16,
    status_text: &'static str,
    headers: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    /// The file with a body that is no text.
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<PathBuf>,
    /// Whether the body is longer than what was read.
    truncated: bool,
    duration_ms: u64,
}

impl Fetched {
    /// Reads a response, and not more of its body than `max_bytes`.
    ///
    /// # Errors
    /// `E_HTTP_ENCODING` when the body is in an encoding; when the connection ends before the body does, or a body that
    /// is no text cannot be written to a file.
    pub(crate) async fn read(
        ctx: &ToolContext<'_>,
        method: Method,
        mut response: Response,
        max_bytes: usize,
        started: Instant,
    ) -> Result<Self> {
        let status = response.status();
        let url = response.url().to_string();
        if let Some(encoding) = encoding(response.headers()) {
            let message = format!("the answer is in the encoding `{encoding}`, although none was asked for");
            return Err(Error::new(ENCODING, message).suggest("use another URL, which has the content as it is"));
        }
        let mut headers = BTreeMap::<String, String>::new();
        let named = named_by_connection(response.headers());
        for (name, value) in response.headers() {
            if is_hop_by_hop(name) || named.contains(name.as_str()) {
                continue;
            }
            // Some sites answer with what they were sent, tokens included.
            let value = mask(&String::from_utf8_lossy(value.as_bytes())).into_owned();
            let all = headers.entry(name.to_string()).or_default();
            *all = if all.is_empty() { value } else { format!("{all}, {value}") };
        }
        let says_text = response.headers().get(CONTENT_TYPE).is_some_and(|value| is_text(value.as_bytes()));

        let (mut bytes, mut truncated) = (Vec::new(), false);
        while let Some(piece) = response.chunk().await.map_err(|error| failed(&error))? {
            let room = piece.len().min(max_bytes - bytes.len());
            bytes.extend_from_slice(&piece[..room]);
            truncated = room < piece.len();
            if truncated {
                break;
            }
        }
        let (body, file) = match text(bytes, says_text, truncated) {
            // Most bodies have no secret, and some are large.
            Ok(text) => (Some(masked(text)), None),
            Err(bytes) => {
                let file = NumberedFile::new(ctx.workdir()?, ["http", ctx.call_id().as_str()], "bin");
                (None, Some(file.within(ctx.max_output_bytes()).write(&bytes)?))
            }
        };
        let status_text = status.canonical_reason().unwrap_or_default();
        let (method, duration_ms) = (method.to_string(), started.elapsed().as_millis().try_into()?);
        Ok(Self { url, method, status: status.as_u16(), status_text, headers, body, file, truncated, duration_ms })
    }
}

/// Returns the encoding of a body, if it has one.
fn encoding(headers: &HeaderMap) -> Option<String> {
    let encodings = headers.get_all(CONTENT_ENCODING).into_iter();
    let encodings = encodings.map(|value| String::from_utf8_lossy(value.as_bytes()).trim().to_owned());
    encodings.into_iter().find(|encoding| !encoding.is_empty() && !encoding.eq_ignore_ascii_case("identity"))
}

/// Returns the headers that are about the connection because `connection` names them.
fn named_by_connection(headers: &HeaderMap) -> BTreeSet<String> {
    let values = headers.get_all(CONNECTION).into_iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
    values.flat_map(|value| value.split(',').map(|name| name.trim().to_ascii_lowercase()).collect::<Vec<_>>()).collect()
}

/// Returns whether this type of content is text in any encoding.
fn is_text(content_type: &[u8]) -> bool {
    let content_type = String::from_utf8_lossy(content_type).to_ascii_lowercase();
    let essence = content_type.split(';').next().unwrap_or_default().trim();
    essence.starts_with("text/") || ["json", "xml", "javascript"].iter().any(|end| essence.ends_with(end))
}

/// Returns a text without secrets, which is the same one if it has none.
fn masked(text: String) -> String {
    match mask(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(masked) => masked,
    }
}

/// Returns a body as text, or as it is if it is none.
fn text(bytes: Vec<u8>, says_text: bool, truncated: bool) -> Result<String, Vec<u8>> {
    match String::from_utf8(bytes) {
        Ok(text) => Ok(text),
        // The limit cut a character.
        Err(error) if truncated && error.utf8_error().error_len().is_none() => {
            let end = error.utf8_error().valid_up_to();
            Ok(String::from_utf8_lossy(&error.as_bytes()[..end]).into_owned())
        }
        Err(error) if says_text => Ok(String::from_utf8_lossy(error.as_bytes()).into_owned()),
        Err(error) => Err(error.into_bytes()),
    }
}
