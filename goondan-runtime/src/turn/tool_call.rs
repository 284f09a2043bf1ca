//! A tool call: the lookup of the tool, the validation of the arguments, the handler. Implements the host behind
//! tool-call contexts.
//!
//! Every call is run here, and therefore passes the tool-call middlewares (DISPATCH-01).

use std::path::Path;
use std::sync::LazyLock;

use goondan_core::host::depth::Unchecked;
use goondan_core::host::directive::ReplyWith;
use goondan_core::host::{Apply, CallHost, CoreRun, ReplyLimit, RunHost, ToolCallHost, ToolCallResultExt};
use goondan_core::{
    Effect, Error, ErrorCode, ExtensionName, LayerInfo, Result, RuntimeEvent, Span, ToolCallId, ToolCallResult,
    ToolError, ToolItem, ToolReply, ToolRequest, TurnInfo,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::answer::check_arguments;
use super::directed::warn_too_late;
use super::handler::HandlerHost;
use super::journaled::CallJournal;
use super::prepared::PreparedReply;
use super::presented::{Presented, before};
use super::shared::Shared;
use super::step_calls::StepCalls;
use crate::schema::summary;

/// The outcome of a call.
pub(super) struct CallOutcome {
    pub(super) result: ToolCallResult,
    /// The arguments that the handler was called with, if a middleware changed them (D-14).
    pub(super) rewritten: Option<Map<String, Value>>,
    /// The presentation to store, if the tool has a presenter.
    pub(super) presentation: Option<Value>,
}

impl StepCalls<'_> {
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
                call.shared.metadata.insert("attempt".to_owned(), attempt.into());
            }
            let mut outcome = self.generation.registered.tool_call.run(&mut call).await;
            if let (Ok(_), Err(error)) = (&outcome, call.check_changes()) {
                outcome = Err(error);
            }
            let error = match outcome {
                Ok(result) => {
                    let presented = call.presented(&result);
                    self.reporter.report_output(&request.id, &presented);
                    self.reporter.report("tool.completed", span, |scope| RuntimeEvent::ToolCompleted {
                        scope,
                        call: self.reference(request),
                        status: result.status(),
                        duration: watch.elapsed(),
                        error_message: result.error().map(|error| error.message.clone()),
                        prepared_by: result.prepared_by().cloned(),
                        presentation: presented.in_event(),
                    });
                    let presentation = presented.into_stored();
                    return call.into_outcome(result, presentation);
                }
                Err(error) => error,
            };
            match error.retry_delay() {
                Some(delay) if attempt < policy.max_retries && !call.once_started => {
                    attempt += 1;
                    let turn = &self.turn.turn;
                    tracing::info!(%turn, call = %request.id, attempt, ?delay, "running a tool call again");
                    tokio::time::sleep(delay).await;
                }
                _ => {
                    let (error_code, error_message) = (Some(error.code().clone()), error.to_string());
                    let result = call.result(Err(error));
                    let presented = call.presented(&result);
                    self.reporter.report_output(&request.id, &presented);
                    self.reporter.report("tool.failed", span, |scope| RuntimeEvent::ToolFailed {
                        scope,
                        call: self.reference(request),
                        duration: watch.elapsed(),
                        error_code,
                        error_message,
                        presentation: presented.in_event(),
                    });
                    let presentation = presented.into_stored();
                    return call.into_outcome(result, presentation);
                }
            }
        }
    }
}

/// One tool call while it runs.
struct ToolCallRun<'a, 'l> {
    step: StepCalls<'a>,
    journal: &'a Mutex<CallJournal<'l>>,
    request: &'a ToolRequest,
    span: Span,
    /// The arguments, once a middleware may have changed them.
    changed_args: Option<Unchecked>,
    shared: Shared,
    /// Whether a handler that must not run twice has started (EFFECT-01).
    once_started: bool,
    prepared: PreparedReply,
    /// Whether the layers have reached the core, after which a directive comes too late.
    reached: bool,
}

impl<'a, 'l> ToolCallRun<'a, 'l> {
    fn new(step: StepCalls<'a>, request: &'a ToolRequest, span: Span, journal: &'a Mutex<CallJournal<'l>>) -> Self {
        Self {
            step,
            journal,
            request,
            span,
            changed_args: None,
            shared: Shared::new(Unchecked::default()),
            once_started: false,
            prepared: PreparedReply::default(),
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
        let mut input = Value::Object(self.args().clone());
        let violations = tool.schema.as_ref().map(|schema| schema.violations(&input)).unwrap_or_default();
        if !violations.is_empty() {
            let message = format!("the arguments of `{name}` do not fit: {}", summary(&violations));
            return Err(Error::new(ErrorCode::TOOL_INVALID_ARGS, message)
                .suggest("call the tool again with arguments that fit its parameters"));
        }
        if let Some(reply) = self.prepared.use_up() {
            // PREP-01: the call does not start.
            return Ok(reply);
        }
        self.record_start(tool.effect).await?;
        self.step.reporter.report("tool.called", self.span, |scope| RuntimeEvent::ToolCalled {
            scope,
            call: self.step.reference(self.request),
            presentation: before(tool, self.args()),
        });
        self.step.reporter.deliver().await;
        HandlerHost::new(self.step, self.span, &self.request.id, (name, tool)).run(&mut input).await
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

    /// Returns the presentation of the call, which has ended.
    fn presented<'r>(&'r self, result: &'r ToolCallResult) -> Presented<'r> {
        let tools = self.step.generation.registered.tools();
        let tool = tools.get(&self.request.name).map(|(_, tool)| tool);
        // DEPTH-01: arguments that are too deep reach no presenter.
        let changed = self.changed_args.as_ref().filter(|args| args.is_accepted());
        let args = changed.map_or_else(|| requested_args(self.request), |args| &**args);
        Presented::new(tool, args, result)
    }

    fn into_outcome(self, mut result: ToolCallResult, presentation: Option<Value>) -> CallOutcome {
        let workdir = || self.step.workdir.path();
        result.keep_within(&ReplyLimit {
            size: self.step.max_reply,
            tool: &self.request.name,
            call: &self.request.id,
            workdir: &workdir,
            max_output: &|| self.step.max_output(),
        });
        // Comparing recurses no deeper than the arguments of the model.
        let rewritten = self.changed_args.filter(|args| **args != *requested_args(self.request));
        // Arguments that were refused were not passed to the handler.
        let rewritten = rewritten.and_then(|args| args.into_checked().ok());
        CallOutcome { result, rewritten, presentation }
    }

    /// Checks what middlewares have changed.
    fn check_changes(&mut self) -> Result<()> {
        self.shared.check_refused()?;
        // Those of the model were checked with its answer.
        if let Some(args) = &self.changed_args {
            args.check("an argument")?;
            check_arguments(args).map_err(|problem| {
                Error::new(ErrorCode::TOOL_INVALID_ARGS, problem).suggest("pass the name of a file, or less at once")
            })?;
        }
        self.shared.check_metadata()
    }
}

/// Returns the arguments of the model. A call without any was not run.
fn requested_args(request: &ToolRequest) -> &Map<String, Value> {
    static NONE: LazyLock<Map<String, Value>> = LazyLock::new(Map::new);
    request.args.as_object().unwrap_or(&NONE)
}

impl RunHost for ToolCallRun<'_, '_> {
    fn scope(&self) -> &TurnInfo {
        self.step.turn
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.shared.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.shared.metadata
    }

    fn refuse(&mut self, error: Error) {
        self.shared.refuse(error);
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

    fn max_output(&self) -> u64 {
        self.step.max_output()
    }
}

impl Apply<ReplyWith> for ToolCallRun<'_, '_> {
    fn apply(&mut self, ReplyWith(reply): ReplyWith, by: &ExtensionName) {
        if self.reached {
            return warn_too_late::<ReplyWith>(by);
        }
        self.prepared.set(reply, by);
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
        self.changed_args.as_deref().unwrap_or_else(|| requested_args(self.request))
    }

    fn args_mut(&mut self) -> &mut Map<String, Value> {
        self.changed_args.get_or_insert_with(|| requested_args(self.request).clone().into())
    }

    fn run_core(&mut self) -> CoreRun<'_, ToolCallResult> {
        CoreRun::local(async move {
            self.check_changes()?;
            self.reached = true;
            let outcome = self.call_handler().await;
            let mut result = self.result(outcome);
            if let Some(by) = self.prepared.take_user() {
                result.set_prepared_by(by);
            }
            Ok(result)
        })
    }
}
