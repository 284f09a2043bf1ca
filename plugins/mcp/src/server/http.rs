//! Requests to a server at a URL.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use goondan::{Error, ErrorCode, Result};
use http::{HeaderName, HeaderValue};
use reqwest::Client;

use super::bearer::Bearer;

/// A server at a URL.
#[derive(Clone)]
pub(crate) struct Endpoint {
    pub(crate) url: String,
    pub(crate) headers: HashMap<HeaderName, HeaderValue>,
    pub(crate) bearer: Option<Bearer>,
}

impl Endpoint {
    /// # Errors
    /// `E_EXT_CONFIG` when the URL or a header cannot be sent.
    // PATTERN-MCP-08
    pub(crate) fn new(url: &str, headers: &BTreeMap<String, String>, bearer: Option<Bearer>) -> Result<Self> {
        let wrong = |what: String| Error::new(ErrorCode::EXT_CONFIG, what);
        if let Err(error) = reqwest::Url::parse(url) {
            return Err(wrong(format!("`transport.endpoint` is not a URL: {error}")));
        }
        let parse = |(name, value): (&String, &String)| {
            let header = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            let (name, mut value) = header.ok_or_else(|| wrong(format!("the header `{name}` cannot be sent")))?;
            // It may be a key.
            value.set_sensitive(true);
            Ok((name, value))
        };
        Ok(Self { url: url.to_owned(), headers: headers.iter().map(parse).collect::<Result<_>>()?, bearer })
    }
}

/// Returns a client for requests.
///
/// # Errors
/// When the root certificates of the system cannot be read.
pub(crate) fn client(connect: Duration) -> Result<Client> {
    // A connection whose response was not read to its end would delay the next request.
    Ok(goondan_http::builder()?.connect_timeout(connect).pool_max_idle_per_host(0).build()?)
}
