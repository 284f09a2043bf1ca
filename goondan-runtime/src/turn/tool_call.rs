//! A tool call: the lookup of the tool, the validation of the arguments, the handler. Implements the host behind
//! tool-call contexts.
//!
//! Every call is run here, and therefore passes the tool-call middlewares (DISPATCH-01).

use std::path::Path;
use std::sync::LazyLock;

use goondan_core::host::depth::Unchecked;
use goondan_core::host::directive::ReplyWith;
use goondan_core::host::{Apply, CallHost, CoreRun, Directive, ReplyLimit, RunHost, ToolCallHost, ToolCallResultExt};
use goondan_core::{
    Decision, Effect, Error, ErrorCode, ExtensionName, LayerInfo, Question, QuestionId, Result, RuntimeEvent, Shown,
    Span, ToolCallId, ToolCallResult, ToolError, ToolItem, ToolReply, ToolRequest, TurnInfo, Wait,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::answer::check_arguments;
use super::asking::{Asking, Waiting, undeclared, waiting};
use super::directed::warn_late;
use super::handler::HandlerHost;
use super::journaled::CallJournal;
use super::prepared::PreparedReply;
use super::presented::{Presented, before};
use super::report::Stopwatch;
use super::shared::Shared;
use super::step_calls::StepCalls;
use crate::registry::Tool;
use crate::schema::{Schema, summary};

/// The outcome of a call.
pub(super) struct CallOutcome {
    pub(super) result: ToolCallResult,
    /// The arguments that the handler was called with, if a middleware changed them (D-14).
    pub(super) rewritten: Option<Map<String, Value>>,
    /// The presentation to store, if the tool has a presenter.
    pub(super) presentation: Option<Value>,
    /// Why it has not run, if it waits: the result is not recorded.
    pub(super) waiting: Option<Waiting>,
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
            if self.have_waited {
                call.go_on().await;
            }
            if attempt > 0 {
                call.shared.metadata.insert("attempt".to_owned(), attempt.into());
            }
            let mut outcome = self.generation.registered.tool_call.run(&mut call).await;
            if call.waiting.is_some() {
                return call.into_waiting(outcome);
            }
            if let (Ok(_), Err(error)) = (&outcome, call.check_changes()) {
                outcome = Err(error);
            }
            let error = match outcome {
                Ok(result) => {
                    let presentation = call.report_completed(&result, watch);
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
                    let (result, presentation) = call.report_failed(error, watch);
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
    /// The questions about the call, if there are some.
    asking: Option<Box<Asking>>,
    /// Why the core has not run the call.
    waiting: Option<Waiting>,
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
            asking: None,
            waiting: None,
        }
    }

    /// Takes in the questions about the call, if it has waited.
    #[cold]
    async fn go_on(&mut self) {
        self.asking = self.journal.lock().await.asking(&self.request.id);
        if let Some(edited) = self.asking.as_ref().and_then(|asking| asking.edited()) {
            self.changed_args = Some(edited.clone().into());
        }
    }

    /// Fails unless the call may run now.
    // ASK-01, ASK-03
    #[cold]
    async fn pass_gate(&mut self) -> Result<()> {
        let mut asking = self.asking.take();
        let wait = match &mut asking {
            Some(asking) => {
                asking.after(self.journal.lock().await.decisions());
                asking.wait(self.args(), |args| self.begin_wait(args))
            }
            None => Ok(None),
        };
        // Also for the part after `next`: an extension that has asked is not skipped.
        self.asking = asking;
        let waits = match wait? {
            Some(wait) => Waiting::Asked(wait),
            None if self.step.are_held => {
                Waiting::Held(self.asking.as_ref().and_then(|asking| asking.before()).cloned().map(Box::new))
            }
            None => return Ok(()),
        };
        let error = waiting(&waits);
        self.waiting = Some(waits);
        Err(error)
    }

    fn begin_wait(&self, args: &Map<String, Value>) -> Wait {
        let mut wait = Wait::new(self.request.id.clone(), self.request.name.clone(), args.clone());
        if let Some((_, tool)) = self.step.generation.registered.tools().get(&self.request.name) {
            wait.presentation = before(tool, args);
        }
        wait
    }

    /// Returns the outcome of a call that waits, whatever its layers have made of that.
    #[cold]
    fn into_waiting(self, outcome: Result<ToolCallResult>) -> CallOutcome {
        if let Err(error) = &outcome
            && *error.code() != ErrorCode::TOOL_WAITING
        {
            tracing::warn!(call = %self.request.id, "a layer around a call that waits failed: {}", error.report());
        }
        let held = Waiting::Held(None);
        let result = self.result(Err(waiting(self.waiting.as_ref().unwrap_or(&held))));
        CallOutcome { result, rewritten: None, presentation: None, waiting: self.waiting }
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
        if self.asking.is_some() || self.step.are_held {
            self.pass_gate().await?;
        }
        if let Some(place) = self.step.place.filter(|_| !tool.asks) {
            place.passed();
        }
        self.record_start(tool.effect).await?;
        self.step.reporter.report("tool.called", self.span, |scope| RuntimeEvent::ToolCalled {
            scope,
            call: self.step.reference(self.request),
            presentation: before(tool, self.args()),
        });
        self.step.reporter.deliver().await;
        let asking = self.asking.as_deref();
        let args = self.changed_args.as_deref().unwrap_or_else(|| requested_args(self.request));
        let handler = HandlerHost::new(self.step, self.span, &self.request.id, (name, tool), args, asking);
        let mut reply = handler.run(&mut input).await?;
        let Some(question) = reply.take_question() else { return Ok(reply) };
        drop((reply, handler));
        // Boxed, so that the future of a call stays small, which hardly ever asks.
        Box::pin(self.ask_of_handler(tool, *question)).await
    }

    /// Lets the call wait for the question of its handler, which has not acted.
    // ASK-04
    #[cold]
    async fn ask_of_handler(&mut self, tool: &Tool, question: Question) -> Result<ToolReply> {
        let part = || format!("tool `{}`", self.request.name);
        if !tool.asks {
            return Err(undeclared().at(&tool.extension, part()));
        }
        let checked = question.check().and_then(|()| question.schema.as_ref().map(Schema::compile).transpose());
        checked.map_err(|error| error.at(&tool.extension, part()))?;
        let id = QuestionId::new(tool.extension.clone(), self.request.name.clone(), question.name.clone());
        let mut asking = self.asking.take().unwrap_or_default();
        asking.after(self.journal.lock().await.decisions());
        let wait = asking.wait_of_handler(id, question, self.begin_wait(self.args()));
        self.asking = Some(asking);
        let mut wait = wait.map_err(|error| error.at(&tool.extension, part()))?;
        wait.withdrawn = self.once_started;
        let waits = Waiting::Asked(wait);
        let error = waiting(&waits);
        self.waiting = Some(waits);
        Err(error)
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

    /// Reports that the call has returned a result. Returns the presentation to store.
    fn report_completed(&self, result: &ToolCallResult, watch: Stopwatch) -> Option<Value> {
        let presented = self.presented(result);
        self.step.reporter.report_output(&self.request.id, &presented);
        self.step.reporter.report("tool.completed", self.span, |scope| RuntimeEvent::ToolCompleted {
            scope,
            call: self.step.reference(self.request),
            status: result.status(),
            duration: watch.elapsed(),
            error_message: result.error().map(|error| error.message.clone()),
            prepared_by: result.prepared_by().cloned(),
            presentation: presented.in_event(),
        });
        presented.into_stored()
    }

    /// Reports that the call has failed. Returns the result that says so to the model, and its presentation.
    fn report_failed(&self, error: Error, watch: Stopwatch) -> (ToolCallResult, Option<Value>) {
        let (error_code, error_message) = (Some(error.code().clone()), error.to_string());
        let result = self.result(Err(error));
        let presented = self.presented(&result);
        self.step.reporter.report_output(&self.request.id, &presented);
        self.step.reporter.report("tool.failed", self.span, |scope| RuntimeEvent::ToolFailed {
            scope,
            call: self.step.reference(self.request),
            duration: watch.elapsed(),
            error_code,
            error_message,
            presentation: presented.in_event(),
        });
        let presentation = presented.into_stored();
        (result, presentation)
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
        CallOutcome { result, rewritten, presentation, waiting: None }
    }

    /// Checks the values that middlewares have changed.
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

    // ASK-01
    fn may_skip(&self, by: &ExtensionName) -> bool {
        !self.asking.as_ref().is_some_and(|asking| asking.has_asked(by))
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

    fn ask(&mut self, question: Question, layer: Option<&LayerInfo>) {
        let Some(layer) = layer else { return };
        if self.reached {
            tracing::warn!(extension = %layer.extension, "`ask` changed nothing: it was called after `next`");
            return;
        }
        if let Some(Err(error)) = question.schema.as_ref().map(Schema::compile) {
            return self.shared.refuse(error.at(&layer.extension, layer.part()));
        }
        self.asking.get_or_insert_default().ask(question, layer);
    }

    fn decisions(&self, layer: Option<&LayerInfo>) -> Result<Vec<Decision>> {
        Ok(self.asking.iter().zip(layer).flat_map(|(asking, layer)| asking.decisions_of(layer)).collect())
    }

    fn is_asked(&self) -> bool {
        self.asking.as_ref().is_some_and(|asking| asking.is_asked())
    }

    fn show(&mut self, shown: Shown) {
        if self.reached {
            tracing::warn!(call = %self.request.id, "`show` changed nothing: it was called after `next`");
            return;
        }
        if let Some(asking) = self.asking.as_mut().filter(|asking| asking.is_asked()) {
            asking.show(shown);
        }
    }
}

impl Apply<ReplyWith> for ToolCallRun<'_, '_> {
    fn apply(&mut self, ReplyWith(reply): ReplyWith, by: &ExtensionName) {
        if self.reached {
            return warn_late(ReplyWith::METHOD, by);
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
