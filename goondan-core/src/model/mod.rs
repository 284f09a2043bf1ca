//! Owns the port to language models, and the scripted model that comes with it.

mod scripted;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::BoxFuture;
use crate::conversation::{Conversation, MessageData};
use crate::error::Result;
use crate::pipeline::ToolRequest;
use crate::tool::{ToolCatalog, ToolItem};

pub use scripted::{ScriptItem, ScriptedModel};

/// A language model: implement it to let agents talk to another one.
///
/// ```
/// use goondan_core::{BoxFuture, Model, ModelRequest, ModelResponse, Result};
///
/// /// Says what it heard last.
/// struct Echo;
///
/// impl Model for Echo {
///     fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
///         Box::pin(async move {
///             let heard = request.messages().last().map(|message| message.content.text().into_owned());
///             Ok(ModelResponse::text(heard.unwrap_or_default()))
///         })
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers one request. Dropping the future cancels it.
    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>>;
}

/// What a model is asked. It borrows the conversation: nothing is copied on the way to the model.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    system: Option<&'a str>,
    conversation: &'a Conversation,
    tools: &'a ToolCatalog,
}

impl<'a> ModelRequest<'a> {
    /// A request over `conversation` as it is now.
    pub fn new(system: Option<&'a str>, conversation: &'a Conversation, tools: &'a ToolCatalog) -> Self {
        Self { system, conversation, tools }
    }

    /// The standing instructions of the agent (D-19).
    pub fn system(&self) -> Option<&'a str> {
        self.system
    }

    /// The messages, oldest first. Every tool call has its result here, and every result its call (PAIR-01).
    pub fn messages(&self) -> impl Iterator<Item = Cow<'a, MessageData>> + use<'a> {
        self.conversation.model_input()
    }

    /// The tools that the model may call.
    pub fn tools(&self) -> impl Iterator<Item = &'a ToolItem> + use<'a> {
        self.tools.iter()
    }
}

impl fmt::Debug for ModelRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRequest({} messages, {} tools)", self.conversation.len(), self.tools.len())
    }
}

/// What a model answers: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ModelResponse {
    /// What the model says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tools that it asks for, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolRequest>,
}

impl ModelResponse {
    /// An answer in text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}
