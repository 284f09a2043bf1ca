//! Records the requests of the model, and answers for it while a test calls a tool.

use std::sync::Arc;

use goondan_core::{BoxFuture, ModelInfo, Result, ToolCallId, ToolRequest};
use goondan_lock::Lock;
use serde_json::{Map, Value};

use super::request::RecordedRequest;
use crate::models::{ScriptItem, ScriptedModel};
use crate::ports::model::{DeltaSink, Model, ModelRequest, ModelResponse, ValueBy};

/// A model whose requests are recorded.
pub(super) struct Recording {
    model: Box<dyn Model>,
    /// Answers instead of `model` while an [`InjectedCall`] exists.
    replacement: Lock<Option<Arc<ScriptedModel>>>,
    requests: Lock<Vec<RecordedRequest>>,
}

/// The model that the agent is built with. It records in a [`Recording`].
pub(super) struct RecordedModel(Arc<Recording>);

/// A tool call that the model makes next. Once this is dropped, the model answers itself again.
pub(super) struct InjectedCall<'a> {
    recording: &'a Recording,
    id: ToolCallId,
}

impl Recording {
    pub(super) fn of(model: Box<dyn Model>) -> Arc<Self> {
        Arc::new(Self { model, replacement: Lock::default(), requests: Lock::default() })
    }

    pub(super) fn requests(&self) -> Vec<RecordedRequest> {
        self.requests.lock().clone()
    }

    /// Makes the model call `tool` next, and then end the turn.
    pub(super) fn call(&self, tool: &str, args: Value) -> InjectedCall<'_> {
        let id = ToolCallId::random();
        let call = ModelResponse::tool_calls([ToolRequest::new(id.clone(), tool, args)]);
        let script = [ScriptItem::raw(call), ScriptItem::say("done").repeat()];
        *self.replacement.lock() = Some(Arc::new(ScriptedModel::new(script)));
        InjectedCall { recording: self, id }
    }

    /// Records a request, and returns the script that answers it instead of the model, if any.
    fn record(&self, request: &ModelRequest<'_>) -> Option<Arc<ScriptedModel>> {
        self.requests.lock().push(RecordedRequest::of(request));
        self.replacement.lock().clone()
    }
}

impl InjectedCall<'_> {
    pub(super) fn id(&self) -> &ToolCallId {
        &self.id
    }
}

impl Drop for InjectedCall<'_> {
    fn drop(&mut self) {
        *self.recording.replacement.lock() = None;
    }
}

impl RecordedModel {
    pub(super) fn new(recording: &Arc<Recording>) -> Self {
        Self(Arc::clone(recording))
    }
}

impl Model for RecordedModel {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        match self.0.record(&request) {
            Some(script) => Box::pin(async move { script.generate(request, deltas).await }),
            None => self.0.model.generate(request, deltas),
        }
    }

    fn info(&self) -> ModelInfo {
        self.0.model.info()
    }

    fn reads_tools_first(&self) -> bool {
        self.0.model.reads_tools_first()
    }

    fn sends_closed_tools(&self, request: &ModelRequest<'_>) -> bool {
        self.0.model.sends_closed_tools(request)
    }

    fn value_by(&self, request: &ModelRequest<'_>, schema: &Map<String, Value>) -> ValueBy {
        self.0.model.value_by(request, schema)
    }
}
