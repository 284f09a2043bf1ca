//! A request as wires read it.

use std::borrow::Cow;

use goondan_core::{
    FilePart, MessageData, ModelInfo, ModelOptions, Part, ProviderData, ProviderTool, ResponseFormat, Role, TextPart,
    ToolCallPart, ToolItem,
};
use goondan_runtime::ModelRequest;
use serde_json::{Map, Value};

use super::enforced::enforceable;
use super::legal::{digits, substitute};
use crate::answer::{CALLED, NOTES};

/// A request to a model, and the parts of it that may go back to the provider.
#[derive(Debug)]
pub struct Encoding<'a> {
    api: &'static str,
    model: &'a str,
    request: ModelRequest<'a>,
    options: Cow<'a, ModelOptions>,
    messages: Vec<Cow<'a, MessageData>>,
    /// The tools of the step that are tools of the provider, each with the name of the step's.
    provided: Vec<(&'a str, &'a ProviderTool)>,
    with_reasoning: bool,
    with_container: bool,
}

impl<'a> Encoding<'a> {
    /// Returns the request to `model` over the interface `api`. `options` are the model's own, which complete those of
    /// the request.
    pub fn new(api: &'static str, model: &'a str, request: ModelRequest<'a>, options: &'a ModelOptions) -> Self {
        Self {
            api,
            model,
            request,
            options: with_value(&request, merged(&request, options)),
            messages: request.messages().collect(),
            provided: provided(api, request),
            with_reasoning: true,
            with_container: true,
        }
    }

    /// Returns the request with texts in place of the files that the model does not take. A file that a model made is
    /// left to the wires: they know whose it is.
    #[must_use]
    pub fn accepting(mut self, info: &ModelInfo) -> Self {
        if info.accepts.is_none() {
            return self;
        }
        for message in self.messages.iter_mut().filter(|message| message.role != Role::Assistant) {
            let text = |file: &FilePart| (!info.takes(&file.media_type)).then(|| TextPart::new(substitute(file)));
            if let Some(content) = message.content.replace_files(text) {
                message.to_mut().content = content;
            }
        }
        self
    }

    /// Returns the request without the reasoning of earlier answers.
    #[must_use]
    pub fn without_reasoning(self) -> Self {
        Self { with_reasoning: false, ..self }
    }

    /// Returns the request without the container of earlier answers.
    #[must_use]
    pub fn without_container(self) -> Self {
        Self { with_container: false, ..self }
    }

    /// Returns the request without the tools that the model may not call.
    #[must_use]
    pub fn without_closed_tools(self) -> Self {
        let request = self.request.with_registered_tools(None);
        Self { request, provided: provided(self.api, request), ..self }
    }

    /// Returns whether the container of earlier answers, in which a provider runs code, may go back.
    pub fn with_container(&self) -> bool {
        self.with_container
    }

    /// Returns the provider's note of this name about its newest answer that has one.
    pub fn note(&self, name: &str) -> Option<&Value> {
        let parts = self.messages.iter().rev().flat_map(|message| message.content.parts().iter().rev());
        parts.filter_map(|part| self.rest(part)).find_map(|rest| rest.get(NOTES)?.get(name))
    }

    /// Returns the model, as the provider names it.
    pub fn model(&self) -> &str {
        self.model
    }

    /// Returns the instructions, unless they are empty.
    pub fn system(&self) -> Option<&str> {
        self.request.system().filter(|system| !system.is_empty())
    }

    /// Returns the request that this is made of.
    pub(crate) fn request(&self) -> ModelRequest<'a> {
        self.request
    }

    /// Returns the messages, oldest first. Every tool call has its result among them, and every result its call.
    pub fn messages(&self) -> &[Cow<'a, MessageData>] {
        &self.messages
    }

    /// Returns the tools that the model may call.
    pub fn tools(&self) -> impl Iterator<Item = &ToolItem> {
        self.request.tools()
    }

    /// Returns the tools that the model may call, and those that are closed: see [`Wire::closes_tools`]. Their order
    /// does not depend on which are closed.
    ///
    /// [`Wire::closes_tools`]: super::Wire::closes_tools
    pub fn all_tools(&self) -> impl Iterator<Item = &ToolItem> {
        self.request.all_tools()
    }

    /// Returns whether some of [`all_tools`](Self::all_tools) are closed.
    pub fn has_closed_tools(&self) -> bool {
        self.all_tools().any(|tool| self.request.is_closed(tool.name.as_str()))
    }

    /// Returns the tool of the provider that a tool of the step is.
    pub fn provider_tool(&self, name: &str) -> Option<&'a ProviderTool> {
        self.provided.iter().find(|(of_step, _)| *of_step == name).map(|(_, tool)| *tool)
    }

    /// Returns the name by which the model knows the tool of a call, if that is another one than the tool's own: the
    /// name that the provider's tool has now, or had when the model called it.
    pub fn provider_name<'p>(&self, call: &'p ToolCallPart, part: &'p Part) -> Option<&'p str>
    where
        'a: 'p,
    {
        let now = self.provider_tool(&call.tool_name).map(|tool| &*tool.name);
        now.or_else(|| self.rest(part)?.get(CALLED)?.as_str())
    }

    /// Returns the options.
    pub fn options(&self) -> &ModelOptions {
        &self.options
    }

    /// Returns a digest of the instance, the same for all requests of a conversation.
    pub fn instance_digest(&self) -> Option<String> {
        let (agent, key) = self.request.instance()?;
        // The name of an agent has no line break, so different instances are different texts.
        Some(digits(&format!("{agent}\n{key}")))
    }

    /// Returns whether the reasoning of earlier answers may go back at all.
    pub fn with_reasoning(&self) -> bool {
        self.with_reasoning
    }

    /// Returns whether the same interface and the same model made a part: only then may its reasoning, or a block of a
    /// type that goondan does not know, go back. Signatures belong to a model.
    pub fn replays(&self, data: &ProviderData) -> bool {
        data.api() == self.api && data.model() == self.model
    }

    /// Returns the members that a text, a call or a file has beside its own, if the same interface made it.
    pub fn rest<'p>(&self, part: &'p Part) -> Option<&'p Map<String, Value>> {
        part.provider().filter(|data| data.api() == self.api).map(ProviderData::rest)
    }

    /// Returns the index of the first message of the running turn: the newest of the user.
    pub fn turn_start(&self) -> usize {
        self.messages.iter().rposition(|message| message.role == Role::User).unwrap_or_default()
    }
}

/// Returns the options of a request, which those of the model complete.
pub(crate) fn merged<'a>(request: &ModelRequest<'a>, of_model: &'a ModelOptions) -> Cow<'a, ModelOptions> {
    match request.options() {
        Some(of_step) => Cow::Owned(of_step.clone().or(of_model)),
        None => Cow::Borrowed(of_model),
    }
}

/// Returns the options with the schema that the answer is held to.
fn with_value<'a>(request: &ModelRequest<'_>, mut options: Cow<'a, ModelOptions>) -> Cow<'a, ModelOptions> {
    if let Some(schema) = request.value_schema().and_then(enforceable) {
        options.to_mut().response_format = Some(ResponseFormat::new("answer", schema));
    }
    options
}

/// Returns the tools of the step that are tools of the provider. Of several that would have the same name there, the
/// first one is, and the others are functions.
fn provided<'a>(api: &str, request: ModelRequest<'a>) -> Vec<(&'a str, &'a ProviderTool)> {
    let mut provided: Vec<(&str, &ProviderTool)> = Vec::new();
    for item in request.all_tools() {
        if let Some(tool) = item.provider_tool_of(api)
            && !provided.iter().any(|(_, known)| known.name == tool.name)
        {
            provided.push((item.name.as_str(), tool));
        }
    }
    provided
}
