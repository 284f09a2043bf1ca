//! The generated content of Gemini.

mod arguments;
mod calls;
mod decode;
mod encode;
mod options;
mod parts;
mod texts;

use std::borrow::Cow;

use goondan_core::{ModelOptions, Result};
use serde_json::{Map, Value};

use super::doubled::once;
use super::{Encoding, Wire};
use crate::answer::Answer;
use crate::http::Failure;

/// The interface of Gemini: `POST /v1beta/models/{model}:streamGenerateContent`.
///
/// # Parts
/// An answer is a list of parts, which have no index. An event has whole parts; texts that follow each other are one
/// text that grows. Where one of them has members of its own, such as `thoughtSignature`, they go back apart, even if
/// it is empty: the signature must return on the part on which it came.
///
/// The rest of a part has the members of the provider's part, and:
///
/// - `candidate`: the notes of the provider about the answer up to there, such as its citations. It does not go back.
/// - `id`: the provider's id of a call, if it is not the call's. `null` if the provider gave it none: then its result
///   is found by its name and its order.
/// - `texts`: where the provider's parts of a text end, except for the newest, and their members.
/// - `functionCall`, `inlineData`, `fileData`: the members of these that have no field.
#[derive(Clone, Copy, Debug, Default)]
pub struct Gemini;

impl Wire for Gemini {
    const API: &'static str = "gemini";

    fn path(&self, model: &str) -> Cow<'static, str> {
        // Tuned models have a folder of their own: `tunedModels/…`.
        let folder = if model.contains('/') { "" } else { "models/" };
        format!("/v1beta/{folder}{model}:streamGenerateContent?alt=sse").into()
    }

    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("x-goog-api-key", key.to_owned())
    }

    fn check(&self, model: &str, options: &ModelOptions) -> Result<()> {
        options::check(model, options)
    }

    fn holds_to_schema(&self, model: &str, _: &ModelOptions, with_tools: bool) -> bool {
        // Earlier models refuse a schema beside tools.
        !with_tools || !is_earlier(model)
    }

    fn requires_tools(&self, _: &str, _: &ModelOptions) -> bool {
        true
    }

    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>> {
        encode::encode(request)
    }

    fn event(&self, _: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
        once(data, |data| decode::event(data, answer))
    }
}

/// The members of a part in which goondan keeps a call or a file, and the members of the rest that never go back.
const CALL: &str = "functionCall";
const INLINE: &str = "inlineData";
const LINKED: &str = "fileData";
const SIGNATURE: &str = "thoughtSignature";
const THOUGHT: &str = "thought";
const CANDIDATE: &str = "candidate";
const TEXTS: &str = "texts";
const OWN_ID: &str = "id";

/// The models before the third version: they take a budget for reasoning instead of a level, want files beside the
/// results of tools instead of in them, and do not demand that calls are signed.
const EARLIER: [&str; 4] = ["gemini-1", "gemini-2", "gemini-robotics-er-1", "gemma"];

fn is_earlier(model: &str) -> bool {
    EARLIER.iter().any(|name| model.contains(name))
}

fn take_text(members: &mut Map<String, Value>, name: &str) -> String {
    match members.shift_remove(name) {
        Some(Value::String(text)) => text,
        _ => String::new(),
    }
}

/// Removes an empty object.
fn drop_empty(rest: &mut Map<String, Value>, member: &str) {
    if rest.get(member).and_then(Value::as_object).is_some_and(Map::is_empty) {
        rest.shift_remove(member);
    }
}
