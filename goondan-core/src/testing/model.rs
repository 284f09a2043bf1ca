//! Owns the record of what the model is sent, and the answers that take the place of its own.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::{RecordedRequest, lock};
use crate::BoxFuture;
use crate::error::Result;
use crate::model::{Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use crate::name::ToolCallId;
use crate::pipeline::ToolRequest;

/// A model whose requests are recorded.
pub(super) struct Recording {
    model: Box<dyn Model>,
    /// Answers in the place of `model`, while a [`ScriptedCall`] lives.
    instead: Mutex<Option<Arc<ScriptedModel>>>,
    requests: Mutex<Vec<RecordedRequest>>,
}

/// The agent's side of a [`Recording`].
pub(super) struct RecordedModel(Arc<Recording>);

/// One tool call that the model makes; when this is dropped, the model answers for itself again.
pub(super) struct ScriptedCall<'a> {
    recording: &'a Recording,
    id: ToolCallId,
}

impl Recording {
    pub(super) fn of(model: Box<dyn Model>) -> Arc<Self> {
        Arc::new(Self { model, instead: Mutex::default(), requests: Mutex::default() })
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        lock(&self.requests).clone()
    }

    /// Lets the model call `tool`, and then have nothing to do.
    pub(super) fn call(&self, tool: &str, args: Value) -> ScriptedCall<'_> {
        let id = ToolCallId::random();
        let request = ToolRequest { id: id.clone(), name: tool.to_owned(), args };
        let call = ModelResponse { tool_calls: vec![request], ..ModelResponse::default() };
        let script = [ScriptItem::raw(call), ScriptItem::say("done").repeat()];
        *lock(&self.instead) = Some(Arc::new(ScriptedModel::new(script)));
        ScriptedCall { recording: self, id }
    }

    /// Notes a request, and says who answers it in the place of the model.
    fn note(&self, request: &ModelRequest<'_>) -> Option<Arc<ScriptedModel>> {
        lock(&self.requests).push(RecordedRequest::of(request));
        lock(&self.instead).clone()
    }
}

impl ScriptedCall<'_> {
    pub(super) fn id(&self) -> &ToolCallId {
        &self.id
    }
}

impl Drop for ScriptedCall<'_> {
    fn drop(&mut self) {
        *lock(&self.recording.instead) = None;
    }
}

impl RecordedModel {
    pub(super) fn new(recording: &Arc<Recording>) -> Self {
        Self(Arc::clone(recording))
    }
}

impl Model for RecordedModel {
    fn generate<'a>(&'a self, request: ModelRequest<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        match self.0.note(&request) {
            Some(script) => Box::pin(async move { script.generate(request).await }),
            None => self.0.model.generate(request),
        }
    }

    fn stream<'a>(
        &'a self,
        request: ModelRequest<'a>,
        text: &'a (dyn Fn(&str) + Sync),
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        match self.0.note(&request) {
            Some(script) => Box::pin(async move { script.stream(request, text).await }),
            None => self.0.model.stream(request, text),
        }
    }
}
