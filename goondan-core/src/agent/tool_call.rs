//! Owns a running tool call: the guard, the validation, the handler, and the host behind tool-call contexts.
//!
//! Every call passes here, and so every call passes the tool-call middlewares (DISPATCH-01).

use serde_json::{Map, Value};

use super::Policy;
use super::registration::Registered;
use crate::BoxFuture;
use crate::context::host::{RunHost, ToolCallHost, TurnScope};
use crate::error::{Error, ErrorCode, Result};
use crate::name::ToolCallId;
use crate::pipeline::{ToolCallResult, ToolError, ToolRequest, catch_panics};
use crate::schema::summary;
use crate::tool::{ToolCatalog, ToolContext};

/// The tool calls of one step: the one way from a request to its result.
#[derive(Clone, Copy)]
pub(super) struct Dispatch<'a> {
    pub(super) scope: &'a TurnScope,
    pub(super) registered: &'a Registered,
    pub(super) catalog: &'a ToolCatalog,
    pub(super) step_index: u32,
    pub(super) policy: Policy,
}

impl Dispatch<'_> {
    /// Runs one call through the tool-call chain. Whatever fails becomes an error result: the model reads it and goes on
    /// (F-TOOL).
    pub(super) async fn run(&self, request: &ToolRequest) -> ToolCallResult {
        let mut attempt = 0;
        loop {
            let mut call = ToolCallRun::new(*self, request);
            if attempt > 0 {
                call.metadata.insert("attempt".to_owned(), attempt.into());
            }
            let error = match self.registered.tool_call.run(&mut call).await {
                Ok(result) => return result,
                Err(error) => error,
            };
            match error.retry_delay() {
                // A tool that has run may have acted already: it is not run again.
                Some(delay) if attempt < self.policy.max_retries && !call.handler_started => {
                    attempt += 1;
                    tracing::info!(turn = %self.scope.turn, call = %request.id, attempt, ?delay, "running a tool call again");
                    tokio::time::sleep(delay).await;
                }
                _ => return call.result(Err(error)),
            }
        }
    }
}

/// One tool call while it runs.
struct ToolCallRun<'a> {
    step: Dispatch<'a>,
    request: &'a ToolRequest,
    args: Map<String, Value>,
    /// Whether the model wrote an object as arguments. If not, the middlewares see an empty one and the call is refused.
    args_are_object: bool,
    /// The call's own map (D-15).
    metadata: Map<String, Value>,
    handler_started: bool,
}

impl<'a> ToolCallRun<'a> {
    fn new(step: Dispatch<'a>, request: &'a ToolRequest) -> Self {
        Self {
            step,
            request,
            args: request.args.as_object().cloned().unwrap_or_default(),
            args_are_object: request.args.is_object(),
            metadata: Map::new(),
            handler_started: false,
        }
    }

    /// What the handler answers; an error here is one that the model may read.
    async fn answer(&mut self) -> Result<Value> {
        let name = &self.request.name;
        if self.step.catalog.get(name).is_none() {
            let shown: Vec<_> = self.step.catalog.iter().map(|item| item.name.as_str()).collect();
            let shown = if shown.is_empty() { "no tool".to_owned() } else { shown.join(", ") };
            return Err(Error::new(ErrorCode::TOOL_NOT_IN_CATALOG, format!("there is no tool `{name}` in this step"))
                .suggest(format!("this step offers: {shown}")));
        }
        let Some((name, tool)) = self.step.registered.tools.get(name) else {
            return Err(Error::new(ErrorCode::TOOL_NOT_FOUND, format!("the tool `{name}` has no handler"))
                .suggest("use another tool"));
        };
        if !self.args_are_object {
            return Err(invalid_args(format!("the arguments of `{name}` must be a JSON object")));
        }
        let input = Value::Object(self.args.clone());
        let violations = tool.schema.as_ref().map(|schema| schema.violations(&input)).unwrap_or_default();
        if !violations.is_empty() {
            return Err(invalid_args(format!("the arguments of `{name}` do not fit: {}", summary(&violations))));
        }
        self.handler_started = true;
        let ctx = ToolContext { scope: self.step.scope, call_id: &self.request.id, tool_name: name };
        let limit = self.step.policy.tool_timeout;
        match tokio::time::timeout(limit, catch_panics(tool.handler.call(&ctx, input))).await {
            Ok(answer) => answer?,
            Err(_) => Err(Error::new(ErrorCode::TOOL_TIMEOUT, format!("`{name}` took longer than {limit:?}"))
                .suggest("ask for less at once, or use another tool")),
        }
    }

    fn result(&self, outcome: Result<Value>) -> ToolCallResult {
        let outcome = outcome.map_err(|error| ToolError::from(&error));
        ToolCallResult::new(self.request.id.clone(), self.request.name.clone(), outcome)
    }
}

fn invalid_args(message: String) -> Error {
    Error::new(ErrorCode::TOOL_INVALID_ARGS, message)
        .suggest("call the tool again with arguments that fit its parameters")
}

impl RunHost for ToolCallRun<'_> {
    fn scope(&self) -> &TurnScope {
        self.step.scope
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }
}

impl ToolCallHost for ToolCallRun<'_> {
    fn step_index(&self) -> u32 {
        self.step.step_index
    }

    fn call_id(&self) -> &ToolCallId {
        &self.request.id
    }

    fn tool_name(&self) -> &str {
        &self.request.name
    }

    fn args(&self) -> &Map<String, Value> {
        &self.args
    }

    fn args_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.args
    }

    fn run_core(&mut self) -> BoxFuture<'_, Result<ToolCallResult>> {
        Box::pin(async move {
            let outcome = self.answer().await;
            Ok(self.result(outcome))
        })
    }
}
