//! A tool call: the lookup of the tool, the validation of the arguments, the handler. Implements the host behind
//! tool-call contexts.
//!
//! Every call is run here, and therefore passes the tool-call middlewares (DISPATCH-01).

use std::path::Path;
use std::pin::pin;

use goondan_core::host::ToolCallResultExt;
use goondan_core::host::depth::Unchecked;
use goondan_core::host::panic::catch_panics;
use goondan_core::host::{AsOf, CallHost, ConversationHost, CoreRun, RunHost, ToolCallHost, ToolHost};
use goondan_core::{
    AgentsHost, Effect, Error, ErrorCode, ExtensionName, LayerInfo, Logger, Message, Result, RuntimeEvent, Span,
    StepRef, ToolCallId, ToolCallRef, ToolCallResult, ToolCatalog, ToolContext, ToolError, ToolItem, ToolName,
    ToolReply, ToolRequest, TurnInfo,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::journaled::CallJournal;
use super::limit::within;
use super::prepared::Prepared;
use super::progress::ProgressLimit;
use super::report::Reporter;
use super::requests::Requests;
use super::warn_too_late;
use super::watchdog::watched;
use super::workdir::Workdir;
use crate::attach::Generation;
use crate::registry::Tool;
use crate::schema::summary;

/// Runs the tool calls of one step.
#[derive(Clone, Copy)]
pub(super) struct Dispatch<'a> {
    pub(super) turn: &'a TurnInfo,
    pub(super) workdir: &'a Workdir,
    pub(super) generation: &'a Generation,
    pub(super) reporter: &'a Reporter<'a>,
    pub(super) requests: Requests<'a>,
    pub(super) catalog: &'a ToolCatalog,
    /// The message that asked for the calls.
    pub(super) message: &'a Message,
    /// The conversation as it was when that message was appended.
    pub(super) conversation: AsOf<'a>,
    pub(super) step_index: u32,
    pub(super) step_span: Span,
}

/// The outcome of a call.
pub(super) struct CallOutcome {
    pub(super) result: ToolCallResult,
    /// The arguments that the handler was called with, if a middleware changed them (D-14).
    pub(super) rewritten: Option<Map<String, Value>>,
}

impl Dispatch<'_> {
    /// Runs one call through the tool-call chain. A failure becomes an error result, which the model reads (F-TOOL).
    /// The start of the call is recorded in `journal`.
    pub(super) async fn run(&self, request: &ToolRequest, journal: &Mutex<CallJournal<'_>>) -> CallOutcome {
        let policy = &self.generation.spec.policy;
        let watch = self.reporter.stopwatch();
        let span = self.step_span.child();
        let mut attempt = 0;
        loop {
            let mut call = ToolCallRun::new(*self, request, span, journal);
            if attempt > 0 {
                call.metadata.insert("attempt".to_owned(), attempt.into());
            }
            let mut outcome = self.generation.registered.tool_call.run(&mut call).await;
            if let (Ok(_), Err(error)) = (&outcome, call.check_changes()) {
                outcome = Err(error);
            }
            let error = match outcome {
                Ok(result) => {
                    self.reporter.report("tool.completed", span, |scope| RuntimeEvent::ToolCompleted {
                        scope,
                        call: self.reference(request),
                        status: result.status(),
                        duration: watch.elapsed(),
                        error_message: result.error().map(|error| error.message.clone()),
                        prepared_by: result.prepared_by().cloned(),
                    });
                    return call.into_outcome(result);
                }
                Err(error) => error,
            };
            match error.retry_delay() {
                Some(delay) if attempt < policy.max_retries && !call.once_started => {
                    attempt += 1;
                    tracing::info!(turn = %self.turn.turn, call = %request.id, attempt, ?delay, "running a tool call again");
                    tokio::time::sleep(delay).await;
                }
                _ => {
                    self.reporter.report("tool.failed", span, |scope| RuntimeEvent::ToolFailed {
                        scope,
                        call: self.reference(request),
                        duration: watch.elapsed(),
                        error_message: error.to_string(),
                    });
                    let result = call.result(Err(error));
                    return call.into_outcome(result);
                }
            }
        }
    }

    fn reference(&self, request: &ToolRequest) -> ToolCallRef {
        let step_id = StepRef::new(&self.turn.turn, self.step_index).step_id;
        ToolCallRef::new(step_id, request.id.clone(), request.name.clone())
    }
}

/// One tool call while it runs.
struct ToolCallRun<'a, 'l> {
    step: Dispatch<'a>,
    journal: &'a Mutex<CallJournal<'l>>,
    request: &'a ToolRequest,
    span: Span,
    args: Unchecked,
    /// The call's own map (D-15).
    metadata: Unchecked,
    /// The first error of [`RunHost::refuse`].
    fault: Option<Error>,
    /// Whether a handler that must not run twice has started (EFFECT-01).
    once_started: bool,
    /// The reply that a middleware has prepared.
    prepared: Option<Box<Prepared<ToolReply>>>,
    /// The extension whose reply was taken.
    prepared_by: Option<ExtensionName>,
    /// Whether the layers have reached the core, after which nothing is prepared any more.
    reached: bool,
}

impl<'a, 'l> ToolCallRun<'a, 'l> {
    fn new(step: Dispatch<'a>, request: &'a ToolRequest, span: Span, journal: &'a Mutex<CallJournal<'l>>) -> Self {
        let args = request.args.as_object().cloned().unwrap_or_default().into();
        Self {
            step,
            journal,
            request,
            span,
            args,
            metadata: Unchecked::default(),
            fault: None,
            once_started: false,
            prepared: None,
            prepared_by: None,
            reached: false,
        }
    }

    /// Runs the handler, after all checks, and returns its reply, or the one that a middleware has prepared. The model
    /// reads an error.
    async fn call_handler(&mut self) -> Result<ToolReply> {
        let name = &self.request.name;
        if self.step.catalog.get(name).is_none() {
            let shown: Vec<_> = self.step.catalog.iter().map(|item| item.name.as_str()).collect();
            let shown = if shown.is_empty() { "no tool".to_owned() } else { shown.join(", ") };
            return Err(Error::new(ErrorCode::TOOL_NOT_IN_CATALOG, format!("there is no tool `{name}` in this step"))
                .suggest(format!("this step offers: {shown}")));
        }
        let tools = self.step.generation.registered.tools();
        let Some((name, tool)) = tools.get(name) else {
            return Err(Error::new(ErrorCode::TOOL_NOT_FOUND, format!("the tool `{name}` has no handler"))
                .suggest("use another tool"));
        };
        let input = Value::Object((*self.args).clone());
        let violations = tool.schema.as_ref().map(|schema| schema.violations(&input)).unwrap_or_default();
        if !violations.is_empty() {
            let message = format!("the arguments of `{name}` do not fit: {}", summary(&violations));
            return Err(Error::new(ErrorCode::TOOL_INVALID_ARGS, message)
                .suggest("call the tool again with arguments that fit its parameters"));
        }
        if let Some(prepared) = self.prepared.take() {
            // PREP-01: the call does not start.
            let Prepared { answer, by } = *prepared;
            self.prepared_by = Some(by);
            return Ok(answer);
        }
        self.record_start(tool.effect).await?;
        self.step.reporter.report("tool.called", self.span, |scope| RuntimeEvent::ToolCalled {
            scope,
            call: self.step.reference(self.request),
        });
        self.step.reporter.deliver().await;
        let host = HandlerHost {
            step: self.step,
            id: &self.request.id,
            name,
            tool,
            requests: self.step.requests.within(self.span.id).of_tool(&tool.extension),
            progress: ProgressLimit::default(),
        };
        let ctx = ToolContext::new(&host);
        let limit = tool.timeout.unwrap_or(self.step.generation.spec.policy.tool_timeout);
        // Pinned here, because each future around it would store it twice.
        let handler = pin!(catch_panics(&tool.extension, async { tool.handler.call(&ctx, input).await }));
        match within(limit, watched(name, handler)).await {
            Some(answer) => {
                let answer = answer.unwrap_or_else(|text| Err(Error::panicked(&text)));
                let answer = answer.and_then(ToolReply::checked);
                answer.map_err(|error| error.at(&tool.extension, format!("tool `{name}`")))
            }
            None => Err(Error::new(ErrorCode::TOOL_TIMEOUT, format!("`{name}` took longer than {limit:?}")).suggest(
                match tool.effect {
                    Effect::Read | Effect::Idempotent => "ask for less at once, or use another tool",
                    _ => "whether it did its work is unknown: check before calling it again",
                },
            )),
        }
    }

    /// Makes the call durable, and its start if it must not run twice, before the handler has an effect.
    async fn record_start(&mut self, effect: Effect) -> Result<()> {
        match effect {
            Effect::Read => Ok(()),
            Effect::Idempotent => self.journal.lock().await.sync().await,
            // As `Once`: an effect that is not known must not happen twice.
            _ => {
                self.journal.lock().await.start_call(&self.request.id).await?;
                self.once_started = true;
                Ok(())
            }
        }
    }

    fn result(&self, outcome: Result<ToolReply>) -> ToolCallResult {
        let (id, name) = (self.request.id.clone(), self.request.name.clone());
        let mut result = ToolCallResult::from_parts(id, name, outcome.map_err(ToolError::from));
        result.cut_error(self.step.generation.spec.policy.error_message_limit);
        result
    }

    fn into_outcome(self, result: ToolCallResult) -> CallOutcome {
        // Comparing recurses no deeper than the arguments of the model.
        let rewritten = self.request.args.as_object().is_none_or(|args| *args != *self.args);
        // Arguments that were refused were not passed to the handler.
        let rewritten = rewritten.then(|| self.args.into_checked().ok()).flatten();
        CallOutcome { result, rewritten }
    }

    /// Checks what middlewares have changed.
    fn check_changes(&mut self) -> Result<()> {
        self.fault.take().map_or(Ok(()), Err)?;
        self.args.check("an argument")?;
        self.metadata.check("a value in the metadata")
    }
}

impl RunHost for ToolCallRun<'_, '_> {
    fn scope(&self) -> &TurnInfo {
        self.step.turn
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }

    fn refuse(&mut self, error: Error) {
        self.fault.get_or_insert(error);
    }

    fn report_skipped(&self, layer: &LayerInfo, after_next: bool, error: &Error) {
        self.step.reporter.report_skipped(self.span, layer, after_next, error);
    }
}

impl CallHost for ToolCallRun<'_, '_> {
    fn tool(&self) -> Option<&ToolItem> {
        self.step.catalog.get(&self.request.name)
    }

    fn workdir(&self) -> Result<&Path> {
        self.step.workdir.path()
    }

    fn reply_with(&mut self, reply: ToolReply, by: &ExtensionName) {
        if self.reached {
            return warn_too_late("answer_with", by);
        }
        self.prepared = Some(Box::new(Prepared { answer: reply, by: by.clone() }));
    }
}

impl ToolCallHost for ToolCallRun<'_, '_> {
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

    fn run_core(&mut self) -> CoreRun<'_, ToolCallResult> {
        CoreRun::local(async move {
            self.check_changes()?;
            self.reached = true;
            let outcome = self.call_handler().await;
            let mut result = self.result(outcome);
            if let Some(by) = self.prepared_by.take() {
                result.set_prepared_by(by);
            }
            Ok(result)
        })
    }
}

/// Behind the [`ToolContext`] of one call.
struct HandlerHost<'a> {
    step: Dispatch<'a>,
    id: &'a ToolCallId,
    name: &'a ToolName,
    tool: &'a Tool,
    requests: Requests<'a>,
    progress: ProgressLimit,
}

impl ToolHost for HandlerHost<'_> {
    fn scope(&self) -> &TurnInfo {
        self.step.turn
    }

    fn call_id(&self) -> &ToolCallId {
        self.id
    }

    fn tool_name(&self) -> &ToolName {
        self.name
    }

    fn message(&self) -> &Message {
        self.step.message
    }

    fn conversation(&self) -> &dyn ConversationHost {
        &self.step.conversation
    }

    fn workdir(&self) -> Result<&Path> {
        self.step.workdir.path()
    }

    fn logger(&self) -> Logger<'_> {
        Logger::new(&*self.tool.log)
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.requests
    }

    fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        self.progress.tell(self.step.reporter, self.id, self.name, done, total, text);
    }
}
