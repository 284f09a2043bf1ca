//! A model whose requests are appended to a file.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::PathBuf;

use goondan_core::host::secret::mask;
use goondan_core::host::{MessageDataExt, ToolItemExt};
use goondan_core::{BoxFuture, Error, ErrorCode, MessageData, ModelInfo, Result, ToolItem};
use goondan_lock::Lock;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::ports::model::{DeltaSink, Model, ModelRequest, ModelResponse, ValueBy};

/// A model that appends every request to a file, one JSON object per line, before it asks another model.
#[derive(Debug)]
pub struct RecordedModel<M> {
    model: M,
    log: RequestLog,
}

impl<M: Model> RecordedModel<M> {
    /// Returns a model that asks `model`, and appends to the file at `path`. The first request opens the file.
    pub fn new(model: M, path: impl Into<PathBuf>) -> Self {
        Self { model, log: RequestLog { path: path.into(), file: Lock::new(None) } }
    }
}

impl<M: Model> Model for RecordedModel<M> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        match self.log.write(&request) {
            Ok(()) => self.model.generate(request, deltas),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }

    fn info(&self) -> ModelInfo {
        self.model.info()
    }

    fn reads_tools_first(&self) -> bool {
        self.model.reads_tools_first()
    }

    fn sends_closed_tools(&self, request: &ModelRequest<'_>) -> bool {
        self.model.sends_closed_tools(request)
    }

    fn value_by(&self, request: &ModelRequest<'_>, schema: &Map<String, Value>) -> ValueBy {
        self.model.value_by(request, schema)
    }
}

/// The file that requests are appended to.
#[derive(Debug)]
struct RequestLog {
    path: PathBuf,
    file: Lock<Option<File>>,
}

/// A line of the file: a request, with secrets masked.
#[derive(Serialize)]
struct RequestLine<'a> {
    system: Option<Cow<'a, str>>,
    messages: Vec<Cow<'a, MessageData>>,
    tools: Vec<Cow<'a, ToolItem>>,
}

fn masked(message: Cow<'_, MessageData>) -> Cow<'_, MessageData> {
    match message.content.masked() {
        Cow::Owned(content) => Cow::Owned(message.with_content(content)),
        Cow::Borrowed(_) => message,
    }
}

impl RequestLog {
    fn write(&self, request: &ModelRequest<'_>) -> Result<()> {
        let request = RequestLine {
            system: request.system().map(mask),
            messages: request.messages().map(masked).collect(),
            tools: request.tools().map(ToolItem::masked).collect(),
        };
        let mut line = serde_json::to_vec(&request)?;
        line.push(b'\n');
        self.append(&line).map_err(|error| {
            Error::new(ErrorCode::MODEL_RECORD, format!("cannot record requests in {}", self.path.display()))
                .suggest("check that the directory exists and can be written, or take `record` out of the model")
                .caused_by(error)
        })
    }

    fn append(&self, line: &[u8]) -> std::io::Result<()> {
        let mut file = self.file.lock();
        let file = match &mut *file {
            Some(file) => file,
            closed => closed.insert(OpenOptions::new().create(true).append(true).open(&self.path)?),
        };
        file.write_all(line)
    }
}
