//! Owns the port to language models, and the scripted model that comes with it.

mod scripted;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::BoxFuture;
use crate::conversation::{Conversation, MessageData};
use crate::error::Result;
use crate::event::TokenUsage;
use crate::pipeline::ToolRequest;
use crate::tool::{ToolCatalog, ToolItem};

pub use scripted::{ScriptItem, ScriptedModel};

/// A language model: implement it to let agents talk to another one.
///
/// ```
/// use goondan::{BoxFuture, Model, ModelRequest, ModelResponse, Result};
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

    /// Answers one request, and hands the text to `text` piece by piece as it comes. A model that cannot do that hands it
    /// over as a whole.
    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        text: &'a (dyn Fn(&str) + Sync),
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let response = self.generate(request).await?;
            if let Some(whole) = &response.text {
                text(whole);
            }
            Ok(response)
        })
    }
}

/// What a model is asked. It borrows the conversation: nothing is copied on the way to the model.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    system: Option<&'a str>,
    conversation: &'a Conversation,
    tools: &'a ToolCatalog,
    options: Option<&'a Map<String, Value>>,
}

impl<'a> ModelRequest<'a> {
    /// A request over `conversation` as it is now.
    pub fn new(system: Option<&'a str>, conversation: &'a Conversation, tools: &'a ToolCatalog) -> Self {
        Self { system, conversation, tools, options: None }
    }

    /// The same request with options for the model.
    #[must_use]
    pub fn with_options(self, options: Option<&'a Map<String, Value>>) -> Self {
        Self { options, ..self }
    }

    /// What a step middleware asked of the model, by [`MODEL_OPTIONS_KEY`](crate::MODEL_OPTIONS_KEY) (API-11). What the names
    /// mean is the model's business.
    pub fn options(&self) -> Option<&'a Map<String, Value>> {
        self.options
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
    /// Why the model stopped, if it says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<ModelFinish>,
    /// What the answer cost, if the model says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelFinish {
    /// It said what it had to say.
    Stop,
    /// It waits for tools.
    ToolCalls,
    /// It reached a limit of tokens.
    Length,
    /// The provider kept part of the answer back.
    ContentFilter,
    /// Something else.
    #[serde(other)]
    Other,
}

impl ModelResponse {
    /// An answer in text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }
}
