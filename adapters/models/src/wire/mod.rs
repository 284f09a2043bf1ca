//! The interfaces of providers.

#[cfg(feature = "anthropic")]
mod alternating;
#[cfg(feature = "anthropic")]
mod anthropic;
#[cfg(feature = "anthropic")]
mod arguments;
#[cfg(feature = "chat")]
mod chat;
#[cfg(any(feature = "chat", feature = "openai"))]
mod closed;
#[cfg(feature = "bedrock")]
mod converse;
mod doubled;
mod encoding;
mod enforced;
#[cfg(any(feature = "chat", feature = "gemini"))]
mod few;
#[cfg(feature = "gemini")]
mod gemini;
#[cfg_attr(not(all(feature = "anthropic", feature = "chat")), allow(dead_code, reason = "others use a part of it"))]
mod legal;
mod maybe;
#[cfg(feature = "openai")]
mod responses;
mod settings;
mod text;
#[cfg(any(feature = "anthropic", feature = "gemini", feature = "openai"))]
#[cfg_attr(not(feature = "openai"), allow(dead_code, reason = "others use a part of it"))]
mod tool;

use std::borrow::Cow;

use goondan_core::{Error, ErrorCode, ModelOptions, Result};
use http::{HeaderMap, StatusCode};

use crate::answer::Answer;
use crate::http::Failure;

#[cfg(feature = "anthropic")]
pub use anthropic::Anthropic;
#[cfg(feature = "chat")]
pub use chat::{Chat, Dialect};
#[cfg(feature = "bedrock")]
pub use converse::Converse;
pub use encoding::Encoding;
pub(crate) use encoding::merged;
pub(crate) use enforced::enforceable;
#[cfg(feature = "gemini")]
pub use gemini::Gemini;
#[cfg(feature = "openai")]
pub use responses::Responses;
pub use settings::Settings;
#[doc(hidden)]
pub use text::Text;

/// An interface of a provider: how a request becomes bytes, and how events become an answer. It does no input and
/// output, and keeps no state between events: all that must be remembered is in the [`Answer`].
///
/// # Requests
/// [`encode`](Self::encode) writes JSON straight from the borrowed request: views of its messages that implement
/// `Serialize`, and no copy of the history as `Value`. [`Encoding`] has the messages, the tools and the options,
/// already merged, and answers which members of a part may go back to this provider. The members of the body beside
/// the messages and the tools are few, and are collected in [`Settings`], into which `options.provider` is merged
/// last.
///
/// An option that the interface cannot express is `E_MODEL_OPTION`, and never dropped silently. [`check`](Self::check)
/// does that, and runs when a bundle is checked as well as before each request.
///
/// Rules for the parts that go back, for each message:
/// - Text and tool calls always go back. [`Encoding::rest`] returns the members to add, if the part was made over the
///   same interface.
/// - Reasoning, and blocks of the provider, go back if [`Encoding::replays`] says so: the same interface and the same
///   model made them. [`Encoding::with_reasoning`] is false if the provider has refused reasoning of this conversation.
/// - Neighbours of one role are merged where the interface wants roles to alternate. A message without content is left
///   out.
/// - A part `Other`, and an output `Other`, goes as text or not at all; never as something that the provider refuses.
///
/// # Answers
/// [`event`](Self::event) is called with each server-sent event, and tells the [`Answer`]. It deserializes borrowed
/// structs of the members that it needs; only members for the rest of a part become `Value`. Kinds of events,
/// blocks and pieces that do not exist yet must not fail: unknown events are skipped, unknown blocks are kept by
/// [`Answer::open_block`], unknown members by the rest.
pub trait Wire: Send + Sync + 'static {
    /// The name of the interface, which is stored with the parts that it makes. It never changes.
    const API: &'static str;

    /// Whether models read the tools before the instructions.
    // CACHE-01
    const TOOLS_FIRST: bool = false;

    /// Returns the path that is added to the base URL, beginning with `/`.
    fn path(&self, model: &str) -> Cow<'static, str>;

    /// Returns the headers of all requests, besides `content-type` and `accept`.
    fn headers(&self) -> &'static [(&'static str, &'static str)] {
        &[]
    }

    /// Returns the name and the value of the header that carries the key.
    fn key_header(&self, key: &str) -> (&'static str, String) {
        ("authorization", format!("Bearer {key}"))
    }

    /// Checks that the interface has the options of `model`.
    ///
    /// # Errors
    /// `E_MODEL_OPTION`: see [`refuse_option`].
    fn check(&self, model: &str, options: &ModelOptions) -> Result<()>;

    /// Returns whether a provider at `host` can be told, in a request with these options and this number of tools, that
    /// the model may not call some of them. Then [`Encoding::all_tools`] has the tools that are closed, so that the
    /// provider's cache keeps the part after the tools.
    // CACHE-01
    fn closes_tools(&self, _host: &str, _tools: usize, _options: &ModelOptions) -> bool {
        false
    }

    /// Returns whether the provider can hold the text of an answer of `model` to a schema, in a request with these
    /// options, and with tools or without.
    // VALUE-01
    fn holds_to_schema(&self, _model: &str, _options: &ModelOptions, _with_tools: bool) -> bool {
        false
    }

    /// Returns whether the provider can require `model` to call one tool or more.
    // VALUE-01
    fn requires_tools(&self, _model: &str, _options: &ModelOptions) -> bool {
        false
    }

    /// Returns the body of a request. The options have been checked.
    ///
    /// # Errors
    /// `E_MODEL_OPTION` for faults that depend on the messages or the tools.
    fn encode(&self, request: &Encoding<'_>) -> Result<Vec<u8>>;

    /// Reads one event: its name, which is empty if it has none, and its data.
    ///
    /// # Errors
    /// When the event cannot be read ([`Failure::unreadable`]), or reports a failure ([`Failure::from_event`]). The
    /// request is then sent again, if that may help.
    fn event(&self, name: &str, data: &str, answer: &mut Answer<'_>) -> Result<(), Failure>;

    /// Reads the end of a response in which [`event`](Self::event) found no end of the answer.
    fn closed(&self, _answer: &mut Answer<'_>) {}

    /// Returns the failure that a response without an answer reports. The beginning of its body is enough.
    fn failure(&self, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
        Failure::from_response(status, headers, body)
    }
}

/// Returns the error for an option that an interface cannot honour. `option` is its path in the options, such as
/// `reasoning/summary`, which is also the detail `option` of the error.
pub fn refuse_option(api: &str, option: &str, why: &str) -> Error {
    let message = format!("the interface `{api}` cannot do what the option `{option}` says: {why}");
    Error::new(ErrorCode::MODEL_OPTION, message)
        .with_detail("option", option)
        .suggest("leave the option out, or use another model; `provider` takes what only one provider knows")
}
