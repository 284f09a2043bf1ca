//! Conversations, requests, and what watchers of an answer are told.

use std::sync::{Arc, Mutex};

use goondan_core::{Conversation, Message, ModelOptions, Result, Role, Source, ToolCatalog, ToolItem};
use goondan_runtime::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use serde_json::{Value, json};

/// Returns a conversation with the messages of a JSON list: `{"role", "content"}`, as a model sees them.
pub(crate) fn conversation(messages: &Value) -> Conversation {
    let message = |message: &Value| {
        let role: Role = serde_json::from_value(message["role"].clone()).unwrap();
        let content: goondan_core::Content = serde_json::from_value(message["content"].clone()).unwrap();
        let step_id = "turn-1:0".to_owned();
        let source = if role == Role::Assistant { Source::Assistant { step_id } } else { Source::User };
        Arc::new(Message::new(role, content, source))
    };
    let messages: Vec<_> = messages.as_array().unwrap().iter().map(message).collect();
    Conversation::from_base(messages).0
}

/// A request as tests write it.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    pub(crate) system: Option<&'static str>,
    pub(crate) messages: Value,
    pub(crate) tools: Vec<ToolItem>,
    /// The tools before layers changed them, if they have.
    pub(crate) registered: Vec<ToolItem>,
    pub(crate) options: Option<ModelOptions>,
}

impl Default for Asked {
    fn default() -> Self {
        let messages = json!([{ "role": "user", "content": "hello" }]);
        Self { system: None, messages, tools: Vec::new(), registered: Vec::new(), options: None }
    }
}

impl Asked {
    pub(crate) fn messages(messages: Value) -> Self {
        Self { messages, ..Self::default() }
    }

    pub(crate) fn options(self, options: Value) -> Self {
        Self { options: Some(serde_json::from_value(options).unwrap()), ..self }
    }

    pub(crate) async fn of(&self, model: &dyn Model, deltas: DeltaSink<'_>) -> Result<ModelResponse> {
        let conversation = conversation(&self.messages);
        let tools: ToolCatalog = self.tools.iter().cloned().collect();
        let registered: ToolCatalog = self.registered.iter().cloned().collect();
        let request = ModelRequest::new(self.system, &conversation, &tools)
            .with_registered_tools((!registered.is_empty()).then_some(&registered))
            .with_options(self.options.as_ref());
        model.generate(request, deltas).await
    }
}

/// Asks a model for an answer to `hello`.
pub(crate) async fn ask(model: &dyn Model) -> Result<ModelResponse> {
    Asked::default().of(model, DeltaSink::none()).await
}

/// Asks a model, and returns its answer with the pieces that a watcher was told, as short texts.
pub(crate) async fn told(model: &dyn Model, asked: &Asked) -> (Result<ModelResponse>, Vec<String>) {
    let told = Mutex::new(Vec::new());
    let tell = |delta: ModelDelta<'_>| {
        let line = match delta {
            ModelDelta::Text { part, text } => format!("{part} text {text}"),
            ModelDelta::Reasoning { part, text } => format!("{part} reasoning {text}"),
            ModelDelta::ToolCall { part, id, name } => format!("{part} call {id} {name}"),
            ModelDelta::Arguments { part, json } => format!("{part} arguments {json}"),
            ModelDelta::Restart { reason, wait: Some(_) } => format!("restart {reason}"),
            ModelDelta::Restart { reason, wait: None } => format!("restart by itself: {reason}"),
            other => format!("{other:?}"),
        };
        told.lock().unwrap().push(line);
    };
    let answer = asked.of(model, DeltaSink::to(&tell)).await;
    (answer, told.into_inner().unwrap())
}
