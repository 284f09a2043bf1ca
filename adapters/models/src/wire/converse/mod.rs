//! Converse of Amazon Bedrock.

mod blocks;
mod decode;
mod encode;
mod files;
mod options;

use std::borrow::Cow;

use goondan_core::{ModelOptions, Result};
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::anthropic::options::may_think;
use super::doubled::once;
use super::{Encoding, Wire};
use crate::answer::Answer;
use crate::aws::encoded;
use crate::http::Failure;

/// The interface of Amazon Bedrock for models of all makers: `POST /model/{model}/converse-stream`.
///
/// An event is a JSON object with one member, which is named after its type: the form in which AWS documents it. On the
/// connection, events are frames, which the transport of [`providers::BEDROCK`](crate::providers::BEDROCK) turns into
/// this form.
#[derive(Clone, Copy, Debug, Default)]
pub struct Converse;

impl Wire for Converse {
    const API: &'static str = "converse";
    const TOOLS_FIRST: bool = true;

    fn path(&self, model: &str) -> Cow<'static, str> {
        // Some models are named by an ARN, with slashes.
        format!("/model/{}/converse-stream", encoded(model, |_| false)).into()
    }

    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[("accept", "application/vnd.amazon.eventstream")]
    }

    fn check(&self, model: &str, options: &ModelOptions) -> Result<()> {
        options::check(model, options)
    }

    fn requires_tools(&self, model: &str, options: &ModelOptions) -> bool {
        match Maker::of(model) {
            Maker::Anthropic => !may_think(model, options),
            Maker::Amazon => options.reasoning.effort.is_none(),
            Maker::OpenAi | Maker::Other => false,
        }
    }

    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>> {
        encode::encode(request)
    }

    fn event(&self, _: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
        once(data, |data| decode::event(data, answer))
    }

    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        let json: Value = serde_json::from_slice(body).unwrap_or_default();
        let header = headers.get("x-amzn-errortype").and_then(|kind| kind.to_str().ok());
        let kind = header.or_else(|| json.get("__type")?.as_str());
        let message = ["message", "Message"].into_iter().find_map(|name| json.get(name)?.as_str());
        if kind.is_none() && message.is_none() {
            return Failure::from_response(status, headers, body);
        }
        // `ThrottlingException:http://…`, or `namespace#ThrottlingException`.
        let kind = kind.map(|kind| kind.split(':').next().unwrap_or(kind)).map(|kind| kind.rsplit('#').next());
        let report = json!({ "error": { "type": kind, "message": message } });
        Failure::from_response(status, headers, report.to_string().as_bytes())
    }
}

/// The makers of models, each of them with members of its own where Converse has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Maker {
    Anthropic,
    Amazon,
    OpenAi,
    /// Another one, or one that the name does not tell, such as an ARN of an inference profile.
    Other,
}

impl Maker {
    fn of(model: &str) -> Self {
        match () {
            () if model.contains("anthropic.") || model.contains("claude") => Self::Anthropic,
            () if model.contains("amazon.nova") => Self::Amazon,
            () if model.contains("openai.") => Self::OpenAi,
            () => Self::Other,
        }
    }
}
