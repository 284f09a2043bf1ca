//! The request of the model.

use std::collections::BTreeMap;
use std::time::Duration;

use goondan::{Error, Map, Result, Value, json};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Url};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::failure::REQUEST;

/// Headers that are not for the model. `host` would reach another site at the address that was checked, and an answer
/// in an encoding is not read.
const OURS: [&str; 3] = ["accept-encoding", "content-length", "host"];

/// Returns whether a header is about the connection, and ends with it: RFC 9110, 7.6.1.
pub(crate) fn is_hop_by_hop(name: &HeaderName) -> bool {
    const NAMES: [&str; 6] = ["connection", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"];
    NAMES.contains(&name.as_str()) || name.as_str().starts_with("proxy-")
}

/// The input of `http-fetch__get`, and a part of the other tools' input.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Target {
    /// The URL, which begins with `http://` or `https://`.
    url: String,
    /// Headers of the request. They are not sent on to other sites by a redirect.
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// How long everything may take, in milliseconds. Defaults to 30000.
    #[serde(default = "timeout_ms")]
    #[schemars(range(min = 1, max = 600_000))]
    timeout_ms: u64,
    /// How many bytes of the body to read at most. Defaults to 500000, which is a lot for you to read.
    #[serde(default = "max_bytes")]
    #[schemars(range(min = 1, max = 10_000_000))]
    max_bytes: usize,
}

fn timeout_ms() -> u64 {
    30_000
}

fn max_bytes() -> usize {
    500_000
}

/// The data that is sent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Data {
    /// The body, as JSON.
    body: Option<Map<String, Value>>,
    /// The body as text, if it is not a JSON object. Say what it is by the header `content-type`.
    body_string: Option<String>,
}

/// The input of `http-fetch__get`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Get {
    #[serde(flatten)]
    pub(crate) target: Target,
}

/// The input of `http-fetch__post`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Post {
    #[serde(flatten)]
    pub(crate) target: Target,
    #[serde(flatten)]
    pub(crate) data: Data,
}

/// The input of `http-fetch__request`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Any {
    /// The method.
    pub(crate) method: Verb,
    #[serde(flatten)]
    pub(crate) target: Target,
    #[serde(flatten)]
    pub(crate) data: Data,
}

/// A method of HTTP.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum Verb {
    Get,
    Head,
    Post,
    Put,
    Patch,
    Delete,
    Options,
}

impl From<Verb> for Method {
    fn from(verb: Verb) -> Self {
        match verb {
            Verb::Get => Self::GET,
            Verb::Head => Self::HEAD,
            Verb::Post => Self::POST,
            Verb::Put => Self::PUT,
            Verb::Patch => Self::PATCH,
            Verb::Delete => Self::DELETE,
            Verb::Options => Self::OPTIONS,
        }
    }
}

/// A request that can be sent.
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<String>,
    pub(crate) timeout: Duration,
    pub(crate) max_bytes: usize,
}

impl Request {
    /// # Errors
    /// `E_HTTP_REQUEST` when the URL or a header cannot be sent.
    pub(crate) fn new(method: Method, target: Target) -> Result<Self> {
        let Target { url, headers, timeout_ms, max_bytes } = target;
        let url = Url::parse(&url).map_err(|error| wrong(format!("`{url}` is no URL: {error}")))?;
        let parse = |(name, value): (&String, &String)| {
            let parsed = HeaderName::try_from(name).ok().zip(HeaderValue::try_from(value).ok());
            parsed
                .filter(|(name, _)| !OURS.contains(&name.as_str()) && !is_hop_by_hop(name))
                .ok_or_else(|| wrong(format!("the header `{name}` cannot be sent")))
        };
        let headers = headers.iter().map(parse).collect::<Result<_>>()?;
        Ok(Self { method, url, headers, body: None, timeout: Duration::from_millis(timeout_ms), max_bytes })
    }

    /// Adds what is sent.
    ///
    /// # Errors
    /// `E_HTTP_REQUEST` when there are two bodies.
    pub(crate) fn with(mut self, data: Data) -> Result<Self> {
        let (body, content_type) = match data {
            Data { body: None, body_string: None } => return Ok(self),
            Data { body: Some(body), body_string: None } => (json::to_string(&body)?, "application/json"),
            Data { body: None, body_string: Some(text) } => (text, "text/plain; charset=utf-8"),
            Data { body: Some(_), body_string: Some(_) } => {
                return Err(wrong("there are both `body` and `bodyString`".to_owned()));
            }
        };
        self.body = Some(body);
        self.headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(content_type));
        Ok(self)
    }
}

fn wrong(message: String) -> Error {
    Error::new(REQUEST, message).suggest("correct the arguments")
}
