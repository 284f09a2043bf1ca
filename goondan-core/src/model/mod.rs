//! The port to language models, and a scripted model for tests and examples.

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

/// A language model. Implement it to connect agents to another one.
///
/// ```
/// use goondan::model::{Model, ModelRequest, ModelResponse};
/// use goondan::{BoxFuture, Result};
///
/// /// Answers with the text of the last message.
/// struct Echo;
///
/// impl Model for Echo {
///     fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
///         Box::pin(async move {
///             let last = request.messages().last().map(|message| message.content.text().into_owned());
///             Ok(ModelResponse::text(last.unwrap_or_default()))
///         })
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers one request. Dropping the future cancels it.
    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>>;

    /// Answers one request, and calls `text` with each piece of the text as it arrives. The default implementation
    /// calls [`generate`](Self::generate), then `text` once with the whole text, if any.
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

/// A request to a model. It borrows the conversation, so nothing is copied for a model call.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    system: Option<&'a str>,
    conversation: &'a Conversation,
    tools: &'a ToolCatalog,
    options: Option<&'a Map<String, Value>>,
}

impl<'a> ModelRequest<'a> {
    /// Returns a request with the current messages of `conversation`.
    pub fn new(system: Option<&'a str>, conversation: &'a Conversation, tools: &'a ToolCatalog) -> Self {
        Self { system, conversation, tools, options: None }
    }

    /// Sets the options for the model.
    #[must_use]
    pub fn with_options(self, options: Option<&'a Map<String, Value>>) -> Self {
        Self { options, ..self }
    }

    /// Returns the options that a step middleware has set under [`MODEL_OPTIONS_KEY`](crate::MODEL_OPTIONS_KEY). The
    /// model defines their names and meaning.
    pub fn options(&self) -> Option<&'a Map<String, Value>> {
        self.options
    }

    /// Returns the agent's instructions (the system prompt).
    // D-19
    pub fn system(&self) -> Option<&'a str> {
        self.system
    }

    /// Iterates over the messages, oldest first. Every tool call has its result among them, and every result its call.
    pub fn messages(&self) -> impl Iterator<Item = Cow<'a, MessageData>> + use<'a> {
        self.conversation.model_input()
    }

    /// Iterates over the tools that the model may call.
    pub fn tools(&self) -> impl Iterator<Item = &'a ToolItem> + use<'a> {
        self.tools.iter()
    }
}

impl fmt::Debug for ModelRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRequest({} messages, {} tools)", self.conversation.len(), self.tools.len())
    }
}

/// The response of a model: text, tool calls, or both.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ModelResponse {
    /// The text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tool calls that the model requests, in its order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tool_calls: Vec<ToolRequest>,
    /// Why the model stopped, if it reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<ModelFinish>,
    /// The tokens that the call used, if the model reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ModelFinish {
    /// The response is complete.
    Stop,
    /// The model requests tool calls.
    ToolCalls,
    /// A limit of tokens was reached.
    Length,
    /// The provider withheld part of the response.
    ContentFilter,
    /// Any other reason.
    #[serde(other)]
    Other,
}

impl ModelResponse {
    /// Returns a response with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: Some(text.into()), ..Self::default() }
    }

    /// Returns a response that requests tool calls.
    pub fn tool_calls(calls: impl IntoIterator<Item = ToolRequest>) -> Self {
        Self { tool_calls: calls.into_iter().collect(), ..Self::default() }
    }

    /// Returns the response with the tokens that the call used.
    #[must_use]
    pub fn with_usage(self, usage: TokenUsage) -> Self {
        Self { usage: Some(usage), ..self }
    }
}
