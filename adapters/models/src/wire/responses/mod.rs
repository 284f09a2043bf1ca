//! The responses of OpenAI.

mod decode;
mod encode;
mod items;
mod options;
mod provided;

use std::borrow::Cow;

use goondan_core::{ModelOptions, Result};

use super::doubled::once;
use super::{Encoding, Wire, closed};
use crate::answer::Answer;
use crate::http::Failure;

/// The interface of OpenAI: `POST /v1/responses`.
///
/// # Items and parts
/// A response is a list of items, and some items are lists themselves: a message has texts and refusals, reasoning has
/// summaries. Each entry of such a list is a part of its own. The rest of the part has the entry, under the name of the
/// list, and the rest of the first part also has the other members of the item:
///
/// ```json
/// { "id": "msg_1", "status": "completed", "content": { "type": "output_text", "annotations": [] } }
/// ```
///
/// In the next request, neighbours with the same `id` become one item again. A call is one part, and so is an image
/// that the model made, and an item of any other type, such as a search that ran at the provider.
///
/// Nothing is stored at the provider: its reasoning comes encrypted, and goes back so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Responses;

impl Wire for Responses {
    const API: &'static str = "openai";

    fn path(&self, _: &str) -> Cow<'static, str> {
        "/responses".into()
    }

    fn check(&self, model: &str, options: &ModelOptions) -> Result<()> {
        options::check(model, options)
    }

    fn closes_tools(&self, host: &str, tools: usize, options: &ModelOptions) -> bool {
        closed::closes_tools(host, tools, options, options::entry)
    }

    fn holds_to_schema(&self, _: &str, _: &ModelOptions, _: bool) -> bool {
        true
    }

    fn requires_tools(&self, _: &str, _: &ModelOptions) -> bool {
        true
    }

    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>> {
        encode::encode(request)
    }

    fn event(&self, name: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure> {
        once(data, |data| decode::event(name, data, answer))
    }
}

/// A kind of items whose entries are parts.
#[derive(Debug)]
struct Listed {
    kind: &'static str,
    /// The members with the entries, in the order of the parts.
    lists: &'static [&'static str],
}

const MESSAGE: Listed = Listed { kind: "message", lists: &["content"] };
const REASONING: Listed = Listed { kind: "reasoning", lists: &["summary", "content"] };

/// The type of an item with an image that the model made.
const IMAGE: &str = "image_generation_call";

/// Returns the member with the text of an entry. An entry of another type is kept as it is.
fn text_member(entry: &str) -> Option<&'static str> {
    match entry {
        "output_text" | "summary_text" | "reasoning_text" => Some("text"),
        "refusal" => Some("refusal"),
        _ => None,
    }
}
