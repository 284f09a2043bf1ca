//! Keeps secrets out of cassettes.

use std::collections::BTreeMap;
use std::sync::Arc;

use goondan_core::Result;
use goondan_core::secret::mask;
use http::{HeaderMap, Uri};
use regex::Regex;
use serde_json::{Map, Value};

use super::format::{self, Request};
use super::keys;
use crate::http::Outgoing;

/// The headers that are recorded; others could have keys.
const HEADERS: [&str; 11] = [
    "content-type",
    "content-encoding",
    "anthropic-version",
    "anthropic-beta",
    "openai-version",
    "request-id",
    "x-request-id",
    "x-amzn-errortype",
    "x-amzn-requestid",
    "retry-after",
    "retry-after-ms",
];

/// The replacement of a secret.
const MASK: &str = "***";

/// The texts that are replaced before anything is recorded or compared.
#[derive(Clone)]
pub(super) struct Redaction(Arc<[Regex]>);

impl Redaction {
    /// Returns a redaction that also replaces the matches of the patterns.
    ///
    /// # Errors
    /// `E_MODEL_CASSETTE` when a pattern is no regular expression.
    pub(super) fn new(patterns: &[String]) -> Result<Self> {
        let compile = |pattern: &String| {
            Regex::new(pattern).map_err(|error| {
                let message = format!("`redact` of a cassette has `{pattern}`, which is no regular expression");
                format::refused(message, "correct the expression").caused_by(error)
            })
        };
        Ok(Self(patterns.iter().map(compile).collect::<Result<_>>()?))
    }

    /// Returns a text without secrets.
    pub(super) fn text(&self, text: &str) -> String {
        let masked = mask(text).into_owned();
        self.0.iter().fold(masked, |text, pattern| pattern.replace_all(&text, MASK).into_owned())
    }

    /// Returns the headers that are recorded.
    pub(super) fn headers(&self, headers: &HeaderMap) -> BTreeMap<String, String> {
        let recorded = headers.iter().filter(|(name, _)| HEADERS.contains(&name.as_str()));
        recorded.filter_map(|(name, value)| Some((name.to_string(), self.text(value.to_str().ok()?)))).collect()
    }

    /// Returns the recorded form of a request.
    pub(super) fn request(&self, request: &Outgoing) -> Request {
        let path = request.url.parse::<Uri>().map(|url| url.path().to_owned()).unwrap_or_default();
        let mut body = serde_json::from_slice(&request.body).unwrap_or_default();
        self.json(&mut body);
        Request { path: self.text(&path), headers: self.headers(&request.headers), body }
    }

    fn json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(members) => {
                let changed = |(name, mut value): (String, Value)| {
                    self.json(&mut value);
                    (self.text(&name), value)
                };
                *members = std::mem::take(members).into_iter().map(changed).collect::<Map<_, _>>();
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Returns why a line must not be written, if it still has a likely key.
    pub(super) fn objection(&self, line: &str) -> Option<String> {
        keys::find(line)
    }

    /// Returns why an answer must not be written, if the data of its events have a secret in pieces.
    pub(super) fn objection_to_pieces<'a>(&self, events: impl Iterator<Item = &'a str>) -> Option<String> {
        let mut texts = BTreeMap::new();
        for data in events {
            if let Ok(event) = serde_json::from_str(data) {
                collect(&event, "", &mut texts);
            }
        }
        let secret = texts.into_values().any(|text| self.text(&text) != text || keys::find(&text).is_some());
        secret.then(|| "an answer has a secret in pieces".to_owned())
    }
}

/// Joins the texts at the same place in all events.
fn collect(value: &Value, pointer: &str, texts: &mut BTreeMap<String, String>) {
    match value {
        Value::String(text) => texts.entry(pointer.to_owned()).or_default().push_str(text),
        Value::Array(items) => items.iter().for_each(|item| collect(item, pointer, texts)),
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| collect(value, &format!("{pointer}/{name}"), texts));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
