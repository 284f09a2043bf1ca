//! A step: one model call and the tool calls that it asks for. Implements the host behind step contexts.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock};

use goondan_core::host::{
    AnswerHost, ConversationHost, CoreRun, IdSet, Mark, MessageHost, ModelCall, RunHost, StepHost, StreamHost,
};
use goondan_core::host::{ConversationExt, ModelOptionsExt, PartExt, StepResultExt, ToolCatalogExt, answer_content};
use goondan_core::{
    AgentsHost, Content, Conversation, Effect, Error, ErrorCode, ExtensionName, LayerInfo, LlmInputMessage, Message,
    MessageEvent, ModelInfo, ModelName, ModelOptions, Part, Result, Role, RuntimeEvent, Source, Span, StepRef,
    StepResult, ToolCallId, ToolCallResult, ToolCallSummary, ToolCatalog, ToolRequest, TurnInfo,
};
use serde_json::{Map, Value};
use tokio::sync::Mutex;

use super::TurnRun;
use super::answer::{Answer, classify, correction};
use super::journaled::{CallJournal, JournaledConversation, tool_message};
use super::limit::within;
use super::prepared::{Prepared, unusable};
use super::projected::Edit;
use super::requests::Requests;
use super::stream::TurnUpdate;
use super::tool_call::{CallOutcome, Dispatch};
use crate::attach::Generation;
use crate::join::join;
use crate::ports::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, calls_in, whole};
use crate::ports::store::Durability;

/// The metadata key of a message whose content an extension has prepared.
const PREPARED_BY: &str = "preparedBy";

/// One step while it runs.
pub(super) struct StepRun<'a, 't> {
    pub(super) turn: &'a mut TurnRun<'t>,
    /// What the step runs with. A reload changes it between two steps.
    generation: &'a Generation,
    pub(super) index: u32,
    pub(super) span: Span,
    catalog: ToolCatalog,
    /// The model that a middleware chose.
    model: Option<ModelName>,
    /// The options that middlewares have set; boxed, because few steps have any.
    options: Option<Box<ModelOptions>>,
    requests: Requests<'a>,
    /// What the model reported of its call.
    pub(super) model_call: ModelCall,
    /// Whether a middleware holds the pieces of the answer.
    pub(super) held: bool,
    /// Where the conversation ended when the model was asked, and so where its answer is.
    pub(super) answer_from: Option<usize>,
    /// The answer that a middleware has prepared.
    pub(super) prepared: Option<Box<Prepared<Vec<Part>>>>,
    /// The edits of what the model is sent.
    pub(super) edits: Vec<Edit>,
}

impl<'a, 't> StepRun<'a, 't> {
    pub(super) fn new(turn: &'a mut TurnRun<'t>, generation: &'a Generation, index: u32, span: Span) -> Self {
        // F-TOOL: every step starts with all tools.
        let catalog = generation.registered.tools().catalog();
        let requests = turn.requests.in_step(&generation.spec, span.id);
        let model_call = ModelCall::default();
        Self {
            turn,
            generation,
            index,
            span,
            catalog,
            model: None,
            options: None,
            requests,
            model_call,
            held: false,
            answer_from: None,
            prepared: None,
            edits: Vec::new(),
        }
    }

    async fn call_model_and_tools(&mut self) -> Result<StepResult> {
        self.turn.check_metadata()?;
        self.check_catalog()?;
        self.check_options()?;
        let after_tool_results =
            self.turn.journaled.conversation.newest().is_some_and(|message| message.role() == Role::Tool);
        let content = self.call_model().await?;
        let another = match classify(&content, self.model_call.finish_reason, after_tool_results) {
            Answer::Usable => false,
            Answer::Paused => true,
            Answer::NothingToAdd => return Ok(StepResult::from_parts(Vec::new(), Vec::new(), &self.model_call)),
            Answer::Malformed(problem) => {
                content.into_iter().for_each(Part::discard);
                let problem = &*problem;
                if let Some(by) = &self.model_call.prepared_by {
                    return Err(unusable(problem, by));
                }
                tracing::warn!(turn = %self.turn.info.turn, step = self.index, problem, "malformed answer of the model");
                self.turn.append(Message::new(Role::User, correction(problem), Source::System));
                return Ok(StepResult::repair(problem, &self.model_call));
            }
            Answer::Refused(error) => return Err(error),
        };
        let requests: Vec<_> = calls_in(&content).map(ToolRequest::from).collect();
        let step_id = StepRef::new(&self.turn.info.turn, self.index).step_id;
        let mut message = Message::new(Role::Assistant, answer_content(content), Source::Assistant { step_id });
        if let Some(by) = &self.model_call.prepared_by {
            message = message.with_metadata(PREPARED_BY, by.as_str());
        }
        let message = Arc::new(message);
        self.turn.append(Arc::clone(&message));
        let results = self.call_tools(&requests, &message).await?;
        // What happens next may take long, such as a retry that waits. The results survive the process by then.
        self.turn.journaled.flush(Durability::Flushed).await?;
        let mut result = StepResult::from_parts(requests, results, &self.model_call);
        if another {
            result.set_has_tool_calls(true);
        }
        Ok(result)
    }

    /// Checks the tools that middlewares have changed.
    fn check_catalog(&mut self) -> Result<()> {
        if self.generation.registered.tools().offers(&self.catalog) {
            return Ok(());
        }
        std::mem::take(&mut self.catalog).checked().map(|catalog| self.catalog = catalog)
    }

    /// Checks the options that middlewares have set.
    fn check_options(&mut self) -> Result<()> {
        if let Some(options) = self.options.take() {
            self.options = Some(Box::new(options.checked()?));
        }
        Ok(())
    }

    /// Calls the model, unless an answer was prepared, and returns the content of the answer. What else is known of it
    /// is in `model_call`.
    async fn call_model(&mut self) -> Result<Vec<Part>> {
        self.turn.settle(Durability::Flushed).await?;
        self.turn.journaled.partial.start(self.index);
        let agent = &self.generation.spec;
        self.turn.journaled.report_orphans(&self.turn.info.turn);
        let conversation = &self.turn.journaled.conversation;
        self.answer_from = Some(conversation.end());
        if let Some(prepared) = self.prepared.take() {
            return self.take_prepared(*prepared);
        }
        let projection = self.projection()?;
        let request = ModelRequest::new(agent.system.as_deref(), conversation, &self.catalog)
            .with_options(self.options.as_deref())
            .with_instance(&self.turn.info.agent, &self.turn.info.instance)
            .with_projection(projection.as_deref());
        self.turn.reporter.report("step.started", self.span, |scope| RuntimeEvent::StepStarted {
            scope,
            step: StepRef::new(&self.turn.info.turn, self.index),
            llm_input_messages: agent
                .policy
                .report_model_input
                .then(|| request.messages().map(|message| LlmInputMessage::from(&*message)).collect()),
        });
        let model = self.model()?;
        let limit = agent.policy.model_timeout;
        let (reporter, partial, index) = (self.turn.reporter, &self.turn.journaled.partial, self.index);
        let (span, held) = (self.span, self.held);
        let sent = AtomicBool::new(false);
        let send = |delta: ModelDelta<'_>| {
            // A held answer is not kept as partial either: no layer has approved it yet.
            if !held {
                sent.store(true, Ordering::Relaxed);
                partial.add(delta);
                reporter.update(|| TurnUpdate::of_delta(index, delta));
            }
            if let ModelDelta::Restart { reason, wait: Some(wait) } = delta {
                reporter.report_retry(index, span, reason, wait);
            }
        };
        let answer = model.generate(request, DeltaSink::to(&send));
        let mut response = match within(limit, answer).await {
            Some(response) => response?,
            None => {
                let message = format!("the model did not answer within {limit:?}");
                return Err(Error::new(ErrorCode::MODEL_TIMEOUT, message).retryable(true));
            }
        };
        give_unique_ids(&mut response.content, &self.turn.journaled.conversation);
        if reporter.streams() && !held && !sent.load(Ordering::Relaxed) {
            // The model does not stream: each part is sent whole.
            whole(&response.content).for_each(|delta| reporter.update(|| TurnUpdate::of_delta(index, delta)));
        }
        self.turn.journaled.partial.clear();
        if let Some(usage) = response.usage {
            // The next request has no edits of this one.
            if projection.is_none() {
                self.turn.journaled.estimate.measured(usage, &self.turn.journaled.conversation);
            }
            *self.turn.usage.get_or_insert_default() += usage;
        }
        let ModelResponse { content, usage, finish_reason, model, .. } = response;
        self.model_call = ModelCall { usage, finish_reason, model, prepared_by: None };
        Ok(content)
    }

    /// Returns the model of this step: the agent's, unless a middleware chose another one (API-11).
    fn model(&self) -> Result<&'a dyn Model> {
        let agent = &self.generation.spec;
        match &self.model {
            None => Ok(&*agent.model),
            Some(name) => agent.named_model(name.as_str()),
        }
    }

    /// Runs the calls: concurrently if all of them only read (D-06), else one after another. Their results are appended
    /// in the order of the requests (D-12).
    async fn call_tools(&mut self, requests: &[ToolRequest], message: &Message) -> Result<Vec<ToolCallResult>> {
        let tools = self.generation.registered.tools();
        let only_reads =
            |request: &ToolRequest| tools.get(&request.name).is_none_or(|(_, tool)| tool.effect == Effect::Read);
        let asked = self.turn.journaled.conversation.mark();
        let mut results = Vec::with_capacity(requests.len());
        if requests.len() > 1 && requests.iter().all(only_reads) {
            self.turn.settle(Durability::Flushed).await?;
            let (dispatch, journal) = self.dispatch(message, asked);
            let journal = Mutex::new(journal);
            let calls = requests.iter().map(|request| dispatch.run(request, &journal)).collect();
            for (request, outcome) in requests.iter().zip(join(calls).await) {
                results.push(self.record_result(request, outcome));
            }
        } else {
            for request in requests {
                self.turn.settle(Durability::Flushed).await?;
                let (dispatch, journal) = self.dispatch(message, asked);
                // Boxed, so that the future of the step stays small for steps without calls.
                let outcome = Box::pin(dispatch.run(request, &Mutex::new(journal))).await;
                results.push(self.record_result(request, outcome));
            }
        }
        Ok(results)
    }

    /// Returns what runs tool calls, and the journal in which their starts are recorded.
    fn dispatch<'s>(&'s mut self, message: &'s Message, asked: Mark) -> (Dispatch<'s>, CallJournal<'s>) {
        let (conversation, journal) = self.turn.journaled.for_calls();
        let dispatch = Dispatch {
            turn: self.turn.info,
            workdir: self.turn.workdir,
            generation: self.generation,
            reporter: self.turn.reporter,
            requests: self.requests,
            catalog: &self.catalog,
            message,
            conversation: conversation.as_of(asked),
            step_index: self.index,
            step_span: self.span,
        };
        (dispatch, journal)
    }

    /// Appends the message with the result of a call, and returns the result.
    fn record_result(&mut self, request: &ToolRequest, outcome: CallOutcome) -> ToolCallResult {
        let CallOutcome { result, rewritten } = outcome;
        let mut answer = tool_message(&result);
        if let Some(rewritten) = rewritten {
            // D-14: the message with the request keeps the arguments of the model.
            answer = answer.with_metadata("rewrittenArgs", rewritten);
        }
        if let Some(by) = result.prepared_by() {
            answer = answer.with_metadata(PREPARED_BY, by.as_str());
        }
        self.turn.append(answer);
        let summary = ToolCallSummary::new(request.id.clone(), request.name.clone(), result.status());
        self.turn.tool_calls.push(summary);
        result
    }
}

/// Replaces ids of calls that are empty, or that another call of the answer or of the conversation has: results refer
/// to their calls by id.
// D-12
pub(super) fn give_unique_ids(content: &mut [Part], conversation: &Conversation) {
    // Most answers have one call, for which a set would cost more than the rest.
    let mut ids = (calls_in(content).nth(1).is_some()).then(IdSet::default);
    let calls = content.iter_mut().filter_map(|part| match part {
        Part::ToolCall(call) => Some(&mut call.tool_call_id),
        _ => None,
    });
    for id in calls {
        let blank = id.as_str().chars().all(char::is_whitespace);
        if blank || conversation.has_tool_call(id) || ids.as_mut().is_some_and(|ids| !ids.insert(id.clone())) {
            *id = ToolCallId::random();
        }
    }
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
}

impl MessageHost for StepRun<'_, '_> {
    fn conversation(&self) -> &dyn ConversationHost {
        self.turn.conversation()
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.requests
    }

    fn emit(&mut self, event: MessageEvent) {
        self.turn.emit(event);
    }
}

impl StreamHost for StepRun<'_, '_> {
    fn hold_stream(&mut self) {
        if self.answer_from.is_none() {
            self.held = true;
        } else if !self.held {
            let turn = &self.turn.info.turn;
            tracing::warn!(%turn, step = self.index, "the stream was not held: `hold_stream` was called after `next`");
        }
    }
}

impl AnswerHost for StepRun<'_, '_> {
    fn project(&mut self, event: MessageEvent, by: &ExtensionName) {
        self.edit(event, by);
    }

    fn answer_with(&mut self, content: Content, by: &ExtensionName) {
        self.prepare(content, by);
    }
}

impl StepHost for StepRun<'_, '_> {
    fn step_index(&self) -> u32 {
        self.index
    }

    fn tool_catalog(&self) -> &ToolCatalog {
        &self.catalog
    }

    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        &mut self.catalog
    }

    fn model_name(&self) -> &Option<ModelName> {
        &self.model
    }

    fn model_name_mut(&mut self) -> &mut Option<ModelName> {
        &mut self.model
    }

    fn model_options(&self) -> &ModelOptions {
        static NONE: LazyLock<ModelOptions> = LazyLock::new(ModelOptions::default);
        self.options.as_deref().unwrap_or(&NONE)
    }

    fn model_options_mut(&mut self) -> &mut ModelOptions {
        self.options.get_or_insert_default()
    }

    fn model_info(&self) -> ModelInfo {
        self.model().map(Model::info).unwrap_or_default()
    }

    fn token_estimate(&self) -> u64 {
        let system = self.generation.spec.system.as_deref();
        let JournaledConversation { estimate, conversation, .. } = &*self.turn.journaled;
        match self.projection() {
            Ok(Some(projection)) => estimate.projected_tokens(system, conversation, &self.catalog, &projection),
            // An edit that cannot be applied fails the step before the model is called.
            _ => estimate.tokens(system, conversation, &self.catalog),
        }
    }

    fn run_core(&mut self) -> CoreRun<'_, StepResult> {
        CoreRun::local(self.call_model_and_tools())
    }
}
