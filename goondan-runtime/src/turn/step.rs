//! A step: one model call and the tool calls that it asks for. Implements the host behind step contexts.

use std::sync::LazyLock;

use goondan_core::host::{
    AnswerHost, Apply, ConversationExt, ConversationHost, CoreRun, Directive, Mark, MessageHost, ModelCall, Repair,
    ReplySize, Reviewer, RunHost, StepHost, StepResultExt, ToolCallResultExt, Transformer, directive,
};
use goondan_core::{
    AgentsHost, Conversation, Effect, Error, ExtensionName, LayerInfo, Message, MessageEvent, MessageId,
    MiddlewareKind, ModelFinish, ModelInfo, ModelName, ModelOptions, Result, Role, Span, StepResult, ToolCallPart,
    ToolCallResult, ToolCallSummary, ToolCatalog, ToolReply, ToolRequest, TurnInfo, Wait,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::TurnRun;
use super::answer::{Answer, classify, is_half_call};
use super::asking::Waiting;
use super::directed::{Directed, at_layer, warn_late};
use super::journaled::{CallJournal, DECISIONS, JournaledConversation, tool_message};
use super::left_out::take_unusable;
use super::prepared::{PREPARED_BY, unusable};
use super::presented::PRESENTATION;
use super::repeated::{Recorded, RecordedAnswer, failure, result_in};
use super::requests::Requests;
use super::reviewers::{Reviewed, Reviewers};
use super::settings::CallSettings;
use super::step_calls::{Place, SideBySide, StepCalls};
use super::tool_call::CallOutcome;
use super::transformed::Transformers;
use crate::attach::Generation;
use crate::join::join_at_most;
use crate::ports::model::{Model, ValueBy, calls_in};
use crate::ports::store::{Durability, EmittedBy, Reached};

/// One step while it runs.
pub(super) struct StepRun<'a, 't> {
    pub(super) turn: &'a mut TurnRun<'t>,
    /// The generation that the step runs with. A reload changes it between two steps.
    pub(super) generation: &'a Generation,
    pub(super) index: u32,
    pub(super) span: Span,
    pub(super) settings: CallSettings,
    pub(super) requests: Requests<'a>,
    /// The facts that the model reported of its call.
    pub(super) model_call: ModelCall,
    /// Where the conversation ended when the model was asked, and so where its answer is.
    pub(super) answer_from: Option<usize>,
    pub(super) directed: DirectedStep,
    pub(super) transformers: Transformers,
    pub(super) reviewers: Reviewers,
    /// Whether text and calls of the answer are told only when it is judged.
    pub(super) holds: bool,
    /// The way in which the model was asked for a value.
    pub(super) value_by: Option<ValueBy>,
    /// Whether pieces of the answer were told while the model made it.
    pub(super) was_streamed: bool,
    /// The record of the answer, if the step was interrupted after it.
    recorded: Option<Box<Recorded>>,
}

/// Declares the parts of a step that take directives, each with the directive that it takes.
macro_rules! directed {
    ($($name:ident: $part:ty, by $directive:ident;)*) => {
        /// The directives of middlewares.
        #[derive(Default)]
        pub(super) struct DirectedStep {
            $(pub(super) $name: $part,)*
        }

        $(
            impl Apply<directive::$directive> for StepRun<'_, '_> {
                fn apply(&mut self, directive: directive::$directive, by: &ExtensionName) {
                    let reached = self.answer_from.is_some();
                    self.turn.direct(&mut self.directed.$name, directive, by, reached);
                }
            }
        )*
    };
}

directed! {
    held: super::held::HeldStream, by HoldStream;
    projected: super::projected::Projected, by Project;
    prepared: super::prepared::PreparedAnswer, by AnswerWith;
}

impl TurnRun<'_> {
    /// Passes a directive of a step layer to the `part` that takes it, unless the core was `reached`.
    #[inline]
    fn direct<D: Directive>(&mut self, part: &mut impl Directed<D>, directive: D, by: &ExtensionName, reached: bool) {
        if !reached {
            if let Err(error) = part.take(directive, by, &self.journaled.conversation) {
                self.refuse(at_layer(error, by, MiddlewareKind::Step));
            }
        } else if !part.is_done() {
            warn_late(D::METHOD, by);
        }
    }
}

impl<'a, 't> StepRun<'a, 't> {
    pub(super) fn new(
        turn: &'a mut TurnRun<'t>,
        generation: &'a Generation,
        index: u32,
        span: Span,
        recorded: Option<Box<Recorded>>,
    ) -> Self {
        let requests = turn.requests.in_step(&generation.spec, index, span.id);
        let mut directed = DirectedStep::default();
        for asked in &turn.corrections {
            asked
                .messages(turn.awaited.as_deref())
                .for_each(|message| directed.projected.add(message, asked.by.as_ref()));
        }
        Self {
            turn,
            generation,
            index,
            span,
            settings: CallSettings::new(generation),
            requests,
            model_call: ModelCall::default(),
            answer_from: None,
            directed,
            transformers: Transformers::default(),
            reviewers: Reviewers::default(),
            holds: false,
            value_by: None,
            was_streamed: false,
            recorded,
        }
    }

    /// Returns the conversation as the layers of the step see it.
    fn seen(&self) -> &Conversation {
        let repeated = self.turn.repetition.as_ref().and_then(|repetition| repetition.in_step());
        repeated.unwrap_or(&self.turn.journaled.conversation)
    }

    /// Returns where the answer is that a middleware holds back from the stream, if it does.
    pub(super) fn held_from(&self) -> Option<usize> {
        self.answer_from.filter(|_| self.directed.held.is_held())
    }

    async fn call_model_and_tools(&mut self) -> Result<StepResult> {
        self.turn.shared.check_metadata()?;
        self.settings.check(self.generation)?;
        self.record_core()?;
        if let Some(recorded) = self.recorded.take() {
            // Boxed, so that the future of other steps stays small.
            return Box::pin(self.go_on_with(recorded)).await;
        }
        let after_tool_results =
            self.turn.journaled.conversation.newest().is_some_and(|message| message.role() == Role::Tool);
        let mut content = self.call_model().await?;
        let finish = self.model_call.finish_reason;
        let (mut another, mut is_nothing) = (false, false);
        match classify(&content, finish, after_tool_results) {
            Answer::Usable => {}
            Answer::Paused => another = true,
            Answer::NothingToAdd => is_nothing = true,
            Answer::Malformed(problem) => return self.repair(content, &problem),
            Answer::Refused(error) => return Err(error),
        }
        let unusable_files = take_unusable(&mut content);
        if finish == Some(ModelFinish::Length) {
            // Half a call must not run.
            content.retain(|part| !is_half_call(part, finish));
        }
        let (mut replaced_by, mut is_value) = (None, false);
        if !self.reviewers.is_empty() {
            // Boxed, so that the future of other steps stays small.
            match Box::pin(self.review(content)).await? {
                Reviewed::Used(used, by) => (content, replaced_by) = (used, by),
                Reviewed::Again(asked) => return self.ask_again(asked),
            }
        }
        if let Some(awaited) = &self.turn.awaited
            && !another
            && calls_in(&content).next().is_none()
        {
            match awaited.check(&mut content, finish) {
                Ok(None) => (is_nothing, is_value) = (false, true),
                Ok(Some(asked)) => match &self.model_call.prepared_by {
                    Some(by) => return Err(unusable(&asked.words, by)),
                    None => return self.ask_again(asked),
                },
                Err(error) => return Err(self.retract(error)),
            }
        }
        if self.holds || replaced_by.is_some() {
            self.tell_judged(&content, replaced_by.as_ref());
        }
        if is_nothing && replaced_by.is_none() {
            return Ok(StepResult::from_parts(Vec::new(), Vec::new(), &self.model_call));
        }
        let requests: Vec<_> = calls_in(&content).map(ToolRequest::from).collect();
        if finish.is_some() {
            self.turn.journaled.reached(Reached::answer(finish, None))?;
        }
        let message = self.append_answer(content, unusable_files, replaced_by.as_ref(), is_value);
        self.turn.corrections.clear();
        let asked = self.turn.journaled.conversation.mark();
        let results = self.call_tools(&requests, &message, asked, Vec::new()).await?;
        self.finish(requests, results, another).await
    }

    /// Records that the step has reached its core, unless the record has it already.
    fn record_core(&mut self) -> Result<()> {
        let is_recorded = self.turn.repetition.as_mut().is_some_and(|repetition| repetition.step_core());
        if is_recorded { Ok(()) } else { self.turn.journaled.reached(Reached::StepCore(self.index)) }
    }

    /// Goes on with the answer that is recorded: the model is not asked again, and only calls without a result run.
    // RESUME-01
    #[cold]
    async fn go_on_with(&mut self, recorded: Box<Recorded>) -> Result<StepResult> {
        let recorded = match *recorded {
            Recorded::Answer(recorded) => recorded,
            Recorded::AskedAgain(asked) => {
                self.turn.shared.check_refused()?;
                self.report_start(None);
                return Ok(self.asked_again(asked));
            }
        };
        let RecordedAnswer { message, later, finish_reason, problem, .. } = recorded;
        if !self.directed.held.is_held() {
            self.turn.journaled.release_messages();
        }
        self.turn.shared.check_refused()?;
        self.report_start(None);
        let prepared_by = message.metadata().get(PREPARED_BY).and_then(Value::as_str);
        let prepared_by = prepared_by.and_then(|by| ExtensionName::new(by).ok());
        self.model_call = ModelCall { finish_reason, prepared_by, ..ModelCall::default() };
        if let Some(problem) = problem {
            return Ok(StepResult::repair(Repair::malformed(&problem), &self.model_call));
        }
        self.turn.corrections.clear();
        let content = message.content().parts();
        let conversation = &self.turn.journaled.conversation;
        let asked = match later.iter().all(|event| event.appended().is_some()) {
            true => conversation.mark_before(later.len()),
            false => conversation.mark(),
        };
        self.answer_from = conversation.position(message.id());
        self.send_whole(content, |_| true);
        let requests: Vec<_> = calls_in(content).map(ToolRequest::from).collect();
        let results: Vec<_> = later.iter().filter_map(|event| self.recorded_result(event.appended()?)).collect();
        let results = self.call_tools(&requests, &message, asked, results).await?;
        self.finish(requests, results, finish_reason == Some(ModelFinish::Pause)).await
    }

    /// Returns the result in the message of a tool.
    fn recorded_result(&self, message: &Message) -> Option<ToolCallResult> {
        let part = result_in(message)?;
        let outcome = match failure(self.turn.journaled, &part.tool_call_id) {
            Some(error) => Err(error.clone()),
            None => Ok(ToolReply::recorded(part)),
        };
        let mut result = ToolCallResult::from_parts(part.tool_call_id.clone(), part.tool_name.clone(), outcome);
        let prepared_by = message.metadata().get(PREPARED_BY).and_then(Value::as_str);
        if let Some(by) = prepared_by.and_then(|by| ExtensionName::new(by).ok()) {
            result.set_prepared_by(by);
        }
        Some(result)
    }

    /// Returns the result of the step, whose calls have run.
    async fn finish(
        &mut self,
        requests: Vec<ToolRequest>,
        results: Vec<ToolCallResult>,
        another: bool,
    ) -> Result<StepResult> {
        // The next thing may take long, such as a retry that waits. The results survive the process by then.
        self.turn.journaled.flush(Durability::Flushed).await?;
        if self.turn.journaled.is_suspending() {
            return Ok(StepResult::suspended(requests, results, &self.model_call));
        }
        let mut result = StepResult::from_parts(requests, results, &self.model_call);
        if another {
            result.set_continues(true);
        }
        Ok(result)
    }

    /// Runs the calls: side by side if each of them only reads or says that it may (D-06, D-45), not more than the
    /// policy allows at a time, else one after another. Their results are appended in the order of the requests (D-12).
    /// Calls that have a result among `recorded` do not run again.
    async fn call_tools(
        &mut self,
        requests: &[ToolRequest],
        message: &Message,
        asked: Mark,
        recorded: Vec<ToolCallResult>,
    ) -> Result<Vec<ToolCallResult>> {
        let tools = self.generation.registered.tools();
        let have_waited = self.turn.journaled.have_waited();
        let is_parallel = |request: &ToolRequest| tools.get(&request.name).is_none_or(|(_, tool)| tool.parallel);
        let max_reply = self.generation.spec.policy.max_reply().of_each(requests.len());
        let (mut results, mut waits) = (recorded, None);
        // Results are recorded in the order of the requests.
        let left = &requests[results.len().min(requests.len())..];
        if left.len() > 1 && requests.iter().all(is_parallel) {
            self.turn.settle(Durability::Flushed).await?;
            let most = self.generation.spec.policy.parallel_calls();
            let interrupted = |request: &ToolRequest| {
                self.turn.journaled.has_started(&request.id).then(|| self.interrupted_call(request))
            };
            let interrupted: Vec<_> = left.iter().map(interrupted).collect();
            let side_by_side = SideBySide::new(left.len());
            let (calls, journal) = self.calls(message, asked, max_reply);
            let (calls, journal) = (StepCalls { have_waited, ..calls }, Mutex::new(journal));
            let mut running = Vec::with_capacity(left.len());
            for (index, (request, interrupted)) in left.iter().zip(interrupted).enumerate() {
                let place = Place { calls: &side_by_side, index };
                running.push(run_beside(calls, place, request, interrupted, &journal));
            }
            for (request, outcome) in left.iter().zip(join_at_most(most, running).await) {
                results.push(self.take_result(request, outcome, &mut waits)?);
            }
        } else {
            for request in left {
                self.turn.settle(Durability::Flushed).await?;
                let outcome = if self.turn.journaled.has_started(&request.id) {
                    self.interrupted_call(request)
                } else {
                    let (calls, journal) = self.calls(message, asked, max_reply);
                    let calls = StepCalls { have_waited, are_held: waits.is_some(), ..calls };
                    // Boxed, so that the future of the step stays small for steps without calls.
                    Box::pin(calls.run(request, &Mutex::new(journal))).await
                };
                results.push(self.take_result(request, outcome, &mut waits)?);
            }
        }
        if let Some(waits) = waits {
            // A failure of the store is no wait.
            self.turn.journaled.check_available()?;
            self.turn.journaled.wait_for(waits);
        }
        Ok(results)
    }

    /// Appends the message with the result of a call, unless that one or a call before it waits. Returns the result.
    fn take_result(
        &mut self,
        request: &ToolRequest,
        mut outcome: CallOutcome,
        waits: &mut Option<Vec<Wait>>,
    ) -> Result<ToolCallResult> {
        match outcome.waiting.take() {
            Some(Waiting::Asked(wait) | Waiting::Held(Some(wait))) => waits.get_or_insert_default().push(*wait),
            Some(Waiting::Held(None)) => {}
            None if waits.is_none() => return self.record_result(request, outcome),
            // It only reads, and runs again.
            None => {}
        }
        Ok(outcome.result)
    }

    /// Returns the outcome of a call that had started when the turn was interrupted, and must not run twice.
    // EFFECT-01
    #[cold]
    fn interrupted_call(&self, request: &ToolRequest) -> CallOutcome {
        let call = ToolCallPart::new(request.id.clone(), request.name.clone(), request.args.clone());
        let result = self.turn.journaled.interrupted_call(call);
        CallOutcome { result, rewritten: None, presentation: None, waiting: None }
    }

    /// Returns the part that the tool calls share, and the journal in which their starts are recorded.
    fn calls<'s>(
        &'s mut self,
        message: &'s Message,
        asked: Mark,
        max_reply: ReplySize,
    ) -> (StepCalls<'s>, CallJournal<'s>) {
        let (conversation, journal) = self.turn.journaled.for_calls();
        let calls = StepCalls {
            turn: self.turn.info,
            workdir: self.turn.workdir,
            generation: self.generation,
            reporter: self.turn.reporter,
            requests: self.requests,
            catalog: &self.settings.catalog,
            message,
            conversation: conversation.as_of(asked),
            step_index: self.index,
            step_span: self.span,
            are_held: false,
            place: None,
            have_waited: false,
            max_reply,
        };
        (calls, journal)
    }

    /// Appends the message with the result of a call, and returns the result.
    fn record_result(&mut self, request: &ToolRequest, outcome: CallOutcome) -> Result<ToolCallResult> {
        let CallOutcome { result, rewritten, presentation, .. } = outcome;
        let mut answer = tool_message(&result);
        if let Some(rewritten) = rewritten {
            // D-14: the message with the request keeps the arguments of the model.
            answer = answer.with_metadata("rewrittenArgs", rewritten);
        }
        if let Some(by) = result.prepared_by() {
            answer = answer.with_metadata(PREPARED_BY, by.as_str());
        }
        if let Some(presentation) = presentation {
            answer = answer.with_metadata(PRESENTATION, presentation);
        }
        if let Some(decisions) = self.turn.journaled.decisions_about(&request.id) {
            answer = answer.with_metadata(DECISIONS, decisions);
        }
        // A failure of the store is no result of a call.
        self.turn.journaled.check_available()?;
        if let Some(error) = result.error().filter(|_| !result.has_failed_reply()) {
            self.turn.journaled.reached(Reached::failed(request.id.clone(), error.clone()))?;
        }
        self.turn.append(answer);
        let summary = ToolCallSummary::new(request.id.clone(), request.name.clone(), result.status());
        self.turn.tool_calls.push(summary);
        Ok(result)
    }
}

/// Runs a call beside others, unless it had started when the turn was interrupted.
// D-45
async fn run_beside(
    calls: StepCalls<'_>,
    place: Place<'_>,
    request: &ToolRequest,
    interrupted: Option<CallOutcome>,
    journal: &Mutex<CallJournal<'_>>,
) -> CallOutcome {
    if let Some(outcome) = interrupted {
        place.ended(false);
        return outcome;
    }
    let only_reads =
        calls.generation.registered.tools().get(&request.name).is_none_or(|(_, tool)| tool.effect == Effect::Read);
    let are_held = !only_reads && place.turn_comes().await;
    let outcome = StepCalls { are_held, place: Some(place), ..calls }.run(request, journal).await;
    place.ended(outcome.waiting.is_some());
    outcome
}

impl RunHost for StepRun<'_, '_> {
    fn scope(&self) -> &TurnInfo {
        self.turn.scope()
    }

    fn metadata(&self) -> &Map<String, Value> {
        self.turn.metadata()
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.turn.metadata_mut()
    }

    fn refuse(&mut self, error: Error) {
        self.turn.refuse(error);
    }

    fn report_skipped(&self, layer: &LayerInfo, after_next: bool, error: &Error) {
        self.turn.reporter.report_skipped(self.span, layer, after_next, error);
    }

    fn changing(&mut self, field: &'static str, by: &ExtensionName) {
        if field == "tool_catalog" {
            self.turn.journaled.prefixes.changing_tools(by, &self.settings.catalog);
        }
    }
}

impl MessageHost for StepRun<'_, '_> {
    fn conversation(&self) -> &dyn ConversationHost {
        self.seen()
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.requests
    }

    fn is_repeated(&self) -> bool {
        self.turn.repetition.as_ref().is_some_and(|repetition| repetition.in_step().is_some())
    }

    fn emit(&mut self, event: MessageEvent, by: Option<&ExtensionName>) {
        self.turn.emit(event, by.cloned().map(EmittedBy::Step));
    }
}

impl AnswerHost for StepRun<'_, '_> {
    fn review(&mut self, reviewer: Reviewer, layer: &LayerInfo) {
        match self.answer_from {
            None => self.reviewers.add(reviewer, layer),
            Some(_) => warn_late("review_answer", &layer.extension),
        }
    }

    fn transform(&mut self, transformer: Transformer, layer: &LayerInfo) {
        match self.answer_from {
            None => self.transformers.add(transformer, layer),
            Some(_) => warn_late("transform_pieces", &layer.extension),
        }
    }
}

impl StepHost for StepRun<'_, '_> {
    fn step_index(&self) -> u32 {
        self.index
    }

    fn tool_catalog(&self) -> &ToolCatalog {
        &self.settings.catalog
    }

    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        &mut self.settings.catalog
    }

    fn model_name(&self) -> &Option<ModelName> {
        &self.settings.model
    }

    fn model_name_mut(&mut self) -> &mut Option<ModelName> {
        &mut self.settings.model
    }

    fn model_options(&self) -> &ModelOptions {
        static NONE: LazyLock<ModelOptions> = LazyLock::new(ModelOptions::default);
        self.settings.options.as_deref().unwrap_or(&NONE)
    }

    fn model_options_mut(&mut self) -> &mut ModelOptions {
        self.settings.options.get_or_insert_default()
    }

    fn joined_inputs(&self) -> Vec<MessageId> {
        self.turn.joined.messages.clone()
    }

    fn model_info(&self) -> ModelInfo {
        self.settings.model(self.generation).map(Model::info).unwrap_or_default()
    }

    fn token_estimate(&self) -> u64 {
        let system = self.generation.spec.system.as_deref();
        let (JournaledConversation { estimate, .. }, conversation) = (&*self.turn.journaled, self.seen());
        match self.projection() {
            Ok(Some(projection)) => {
                estimate.projected_tokens(system, conversation, &self.settings.catalog, &projection)
            }
            // An edit that cannot be applied fails the step before the model is called.
            _ => estimate.tokens(system, conversation, &self.settings.catalog),
        }
    }

    fn run_core(&mut self) -> CoreRun<'_, StepResult> {
        CoreRun::local(self.call_model_and_tools())
    }
}
