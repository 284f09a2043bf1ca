//! The port to language models.

mod deltas;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use goondan_core::host::ConversationExt;
use goondan_core::host::{Projection, ToolCatalogExt, text_of};
use goondan_core::{
    AgentEvent, AgentName, BoxFuture, Conversation, InstanceKey, MessageData, ModelFinish, ModelInfo, ModelOptions,
    Part, Result, TextPart, TokenUsage, ToolCallId, ToolCallPart, ToolCatalog, ToolItem, ToolRequest,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use deltas::{DeltaSink, ModelDelta};

/// A language model. Implement it to connect agents to another one.
///
/// ```
/// use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
/// use goondan::{BoxFuture, Result};
///
/// /// Answers with the text of the last message.
/// struct Echo;
///
/// impl Model for Echo {
///     fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
///         Box::pin(async move {
///             let last = request.messages().last().map(|message| message.content.text().into_owned());
///             Ok(ModelResponse::text(last.unwrap_or_default()))
///         })
///     }
/// }
/// ```
pub trait Model: Send + Sync + 'static {
    /// Answers one request, and sends the pieces of the answer to `deltas` as they arrive, if it can. The returned
    /// response is the answer; the pieces are a preview. Dropping the future cancels the request.
    fn generate<'a>(&'a self, request: ModelRequest<'a>, deltas: DeltaSink<'a>)
    -> BoxFuture<'a, Result<ModelResponse>>;

    /// Returns facts about the model. Middlewares read it, for example to compact a conversation in time.
    fn info(&self) -> ModelInfo {
        ModelInfo::default()
    }

    /// Returns whether the model reads the tools before the agent's instructions. The runtime computes by this order
    /// how much of a request the provider's cache of prompts can keep.
    // CACHE-01
    fn reads_tools_first(&self) -> bool {
        false
    }

    /// Returns whether the model is sent [all tools](ModelRequest::all_tools), and told which of them it may not call.
    /// Then tools that layers take out of the catalog of a step, or put back, change nothing in front of the messages.
    // CACHE-01
    fn sends_closed_tools(&self, _request: &ModelRequest<'_>) -> bool {
        false
    }

    /// Returns how the model can be held to a value, whose JSON Schema is one of an object. The answer is checked in
    /// any case.
    // VALUE-01
    fn value_by(&self, _request: &ModelRequest<'_>, _schema: &Map<String, Value>) -> ValueBy {
        ValueBy::Tool
    }
}

/// The way in which a model is held to the value that is expected as its answer.
///
/// ```
/// use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ValueBy};
/// use goondan::{BoxFuture, Map, Result, Value};
///
/// /// A server that generates by grammars.
/// struct Grammars;
///
/// impl Model for Grammars {
///     fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
///         let grammar = request.value_schema().map(|schema| format!("{schema:?}"));
///         Box::pin(async move { Ok(ModelResponse::text(grammar.unwrap_or_default())) })
///     }
///
///     fn value_by(&self, _: &ModelRequest<'_>, _: &Map<String, Value>) -> ValueBy {
///         ValueBy::Schema
///     }
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueBy {
    /// Its text is held to [`ModelRequest::value_schema`].
    Schema,
    /// It must call a tool: one of the step, or one of the runtime that takes the value.
    RequiredTool,
    /// It can call a tool of the runtime that takes the value, and is told to do so.
    Tool,
}

impl<M: Model + ?Sized> Model for Box<M> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        (**self).generate(request, deltas)
    }

    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn reads_tools_first(&self) -> bool {
        (**self).reads_tools_first()
    }

    fn sends_closed_tools(&self, request: &ModelRequest<'_>) -> bool {
        (**self).sends_closed_tools(request)
    }

    fn value_by(&self, request: &ModelRequest<'_>, schema: &Map<String, Value>) -> ValueBy {
        (**self).value_by(request, schema)
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        (**self).generate(request, deltas)
    }

    fn info(&self) -> ModelInfo {
        (**self).info()
    }

    fn reads_tools_first(&self) -> bool {
        (**self).reads_tools_first()
    }

    fn sends_closed_tools(&self, request: &ModelRequest<'_>) -> bool {
        (**self).sends_closed_tools(request)
    }

    fn value_by(&self, request: &ModelRequest<'_>, schema: &Map<String, Value>) -> ValueBy {
        (**self).value_by(request, schema)
    }
}

/// A request to a model. It borrows the conversation, so nothing is copied for a model call.
#[derive(Clone, Copy)]
pub struct ModelRequest<'a> {
    system: Option<&'a str>,
    conversation: &'a Conversation,
    tools: &'a ToolCatalog,
    /// The tools of the step before layers changed them, if they have.
    registered: Option<&'a ToolCatalog>,
    options: Option<&'a ModelOptions>,
    instance: Option<(&'a AgentName, &'a InstanceKey)>,
    projection: Option<&'a Projection>,
    value_schema: Option<&'a Map<String, Value>>,
}

impl<'a> ModelRequest<'a> {
    /// Returns a request with the current messages of `conversation`.
    pub fn new(system: Option<&'a str>, conversation: &'a Conversation, tools: &'a ToolCatalog) -> Self {
        Self {
            system,
            conversation,
            tools,
            registered: None,
            options: None,
            instance: None,
            projection: None,
            value_schema: None,
        }
    }

    /// Sets the options of the call.
    #[must_use]
    pub fn with_options(self, options: Option<&'a ModelOptions>) -> Self {
        Self { options, ..self }
    }

    /// Sets the tools of the step before its layers changed them.
    #[must_use]
    pub fn with_registered_tools(self, registered: Option<&'a ToolCatalog>) -> Self {
        Self { registered: registered.filter(|registered| !registered.is_shared_with(self.tools)), ..self }
    }

    /// Sets the edits of the messages for this request alone.
    #[must_use]
    pub(crate) fn with_projection(self, projection: Option<&'a Projection>) -> Self {
        Self { projection, ..self }
    }

    /// Returns the options that step middlewares have set for this call. They go before those that the model was made
    /// with: see [`ModelOptions::or`].
    pub fn options(&self) -> Option<&'a ModelOptions> {
        self.options
    }

    /// Sets the JSON Schema that the text of the answer is held to.
    #[must_use]
    pub fn with_value_schema(self, schema: Option<&'a Map<String, Value>>) -> Self {
        Self { value_schema: schema, ..self }
    }

    /// Returns the JSON Schema of the value that the text of the answer must be, if the model is held to one:
    /// [`ValueBy::Schema`].
    // VALUE-01
    pub fn value_schema(&self) -> Option<&'a Map<String, Value>> {
        self.value_schema
    }

    /// Sets the instance whose conversation it is.
    #[must_use]
    pub fn with_instance(self, agent: &'a AgentName, key: &'a InstanceKey) -> Self {
        Self { instance: Some((agent, key)), ..self }
    }

    /// Returns the agent and the key of the instance whose conversation it is, if there is one. They are the same for
    /// all requests of a conversation. Keys may name people, so send no more than a digest of them.
    pub fn instance(&self) -> Option<(&'a AgentName, &'a InstanceKey)> {
        self.instance
    }

    /// Returns whether a message of the conversation has a call with this id. The ids of new calls must differ: the
    /// runtime replaces those that do not, so a model that sends pieces of calls replaces them first.
    // D-12
    pub fn has_call(&self, id: &ToolCallId) -> bool {
        self.conversation.has_tool_call(id)
    }

    /// Returns the agent's instructions (the system prompt).
    // D-19
    pub fn system(&self) -> Option<&'a str> {
        self.system
    }

    /// Iterates over the messages, oldest first. Every tool call has its result among them, and every result its call.
    pub fn messages(&self) -> impl Iterator<Item = Cow<'a, MessageData>> + use<'a> {
        self.conversation.projected_input(self.projection)
    }

    /// Iterates over the tools that the model may call.
    pub fn tools(&self) -> impl Iterator<Item = &'a ToolItem> + use<'a> {
        self.tools.iter()
    }

    /// Iterates over the tools that the model may call, and the *closed* ones: tools of extensions that layers have
    /// taken out of the catalog of this step. Their order does not depend on which are closed. A call of a closed tool
    /// is refused as one of an unknown tool.
    // CACHE-01
    pub fn all_tools(&self) -> impl Iterator<Item = &'a ToolItem> + use<'a> {
        let (tools, registered) = (self.tools, self.registered);
        let as_they_are = registered.is_none().then(|| tools.iter());
        as_they_are.into_iter().flatten().chain(registered.into_iter().flat_map(|registered| tools.beside(registered)))
    }

    /// Returns whether a tool is closed: see [`all_tools`](Self::all_tools).
    pub fn is_closed(&self, name: &str) -> bool {
        self.tools.get(name).is_none() && self.registered.is_some_and(|registered| registered.get(name).is_some())
    }
}

impl fmt::Debug for ModelRequest<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelRequest({} messages, {} tools)", self.conversation.len(), self.tools.len())
    }
}

/// The response of a model: the parts of its message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", from = "ResponseFields")]
#[non_exhaustive]
pub struct ModelResponse {
    /// Text, reasoning, tool calls and other parts, in the model's order.
    pub content: Vec<Part>,
    /// Why the model stopped, if it reports that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finish_reason: Option<ModelFinish>,
    /// The tokens that the call used, if the model reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// The model that answered, if the provider reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The provider's id of the request, for its support.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
}

/// A response as it is written in scripts: `text` and `toolCalls` are short forms of parts, which follow `content`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ResponseFields {
    #[serde(default)]
    content: Vec<Part>,
    text: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolRequest>,
    finish_reason: Option<ModelFinish>,
    usage: Option<TokenUsage>,
    model: Option<String>,
    request_id: Option<String>,
}

impl From<ResponseFields> for ModelResponse {
    fn from(fields: ResponseFields) -> Self {
        let ResponseFields { mut content, text, tool_calls, finish_reason, usage, model, request_id } = fields;
        content.extend(text.map(|text| TextPart::new(text).into()));
        content.extend(tool_calls.into_iter().map(call_part));
        Self { content, finish_reason, usage, model, request_id }
    }
}

fn call_part(call: ToolRequest) -> Part {
    ToolCallPart::new(call.id, call.name, call.args).into()
}

impl ModelResponse {
    /// Returns a response with these parts.
    pub fn content(parts: impl IntoIterator<Item = Part>) -> Self {
        Self { content: parts.into_iter().collect(), ..Self::default() }
    }

    /// Returns a response with a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::content([TextPart::new(text).into()])
    }

    /// Returns a response that requests tool calls.
    pub fn tool_calls(calls: impl IntoIterator<Item = ToolRequest>) -> Self {
        Self::content(calls.into_iter().map(call_part))
    }

    /// Returns the response with the tokens that the call used.
    #[must_use]
    pub fn with_usage(self, usage: TokenUsage) -> Self {
        Self { usage: Some(usage), ..self }
    }

    /// Returns the response with the reason why the model stopped.
    #[must_use]
    pub fn with_finish_reason(self, reason: ModelFinish) -> Self {
        Self { finish_reason: Some(reason), ..self }
    }

    /// Iterates over the tool calls that the model requests, in its order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCallPart> {
        calls_in(&self.content)
    }

    /// Returns all text of the response; several parts are joined by newlines.
    pub fn to_text(&self) -> Cow<'_, str> {
        text_of(&self.content)
    }

    /// Returns whether the response has text.
    pub fn has_text(&self) -> bool {
        self.content.iter().any(|part| matches!(part, Part::Text(part) if !part.text.is_empty()))
    }
}

/// Returns the tool calls among the parts of an answer.
pub(crate) fn calls_in(content: &[Part]) -> impl Iterator<Item = &ToolCallPart> {
    content.iter().filter_map(|part| match part {
        Part::ToolCall(call) => Some(&**call),
        _ => None,
    })
}

/// Returns the pieces of an answer that was not streamed: its texts and reasoning, whole, and its tool calls.
pub(crate) fn whole(parts: &[Part]) -> impl Iterator<Item = ModelDelta<'_>> {
    (0..).zip(parts).filter_map(|(part, content)| match content {
        Part::Text(text) if !text.text.is_empty() => Some(ModelDelta::Text { part, text: &text.text }),
        Part::Reasoning(reasoning) if !reasoning.text().is_empty() => {
            Some(ModelDelta::Reasoning { part, text: reasoning.text() })
        }
        Part::ToolCall(call) => {
            Some(ModelDelta::ToolCall { part, id: call.tool_call_id.as_str(), name: &call.tool_name })
        }
        _ => None,
    })
}

/// Checks that the model takes the files of an input.
// REFUSED-01
pub(crate) fn check_files(event: &AgentEvent, model: &dyn Model) -> Result<()> {
    let files = event.content.iter().filter_map(|part| if let Part::File(file) = part { Some(file) } else { None });
    let mut files = files.peekable();
    if files.peek().is_none() {
        return Ok(());
    }
    let info = model.info();
    match files.find(|file| !info.takes(&file.media_type)) {
        None => Ok(()),
        Some(file) => {
            let accepted = info.accepts.unwrap_or_default().join(", ");
            let accepted = if accepted.is_empty() { "no files" } else { &accepted };
            Err(file.unusable(&format!("the model takes {accepted}")).suggest("convert the file, or use another model"))
        }
    }
}
