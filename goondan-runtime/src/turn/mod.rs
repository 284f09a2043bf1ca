//! A turn: the driver of the turn machine, and the host behind turn contexts.
//!
//! `machine` decides which step comes next and does no IO; [`TurnRun`] is its only driver. `step` calls the model
//! (`model_call`), and runs the tool calls through `tool_call`. The orders of middlewares are in `held`, `projected`
//! and `prepared`. A turn changes the conversation through `journaled`, and reports events through `report`.

mod answer;
mod answered;
mod asking;
mod directed;
mod estimate;
mod first_piece;
mod handler;
mod held;
mod journaled;
mod left_out;
mod machine;
mod model_call;
mod partial;
mod pieces;
mod prefix;
mod prepared;
mod presented;
mod progress;
mod projected;
mod repeated;
mod report;
mod requests;
mod reviewed;
mod reviewers;
mod settings;
mod shared;
mod steering;
mod step;
mod step_answer;
mod step_calls;
mod stream;
mod telling;
mod tool_call;
mod transformed;
mod valued;
mod watch;
mod watchdog;
mod workdir;

pub use journaled::Rewound;
pub(super) use journaled::{Back, JournaledConversation, Standing, rewind_event, suspended};
pub(super) use report::Reporter;
pub(super) use requests::{RequestUsage, Requests};
pub(super) use steering::Steering;
pub(super) use stream::Cancel;
pub use stream::TurnStream;
pub(super) use watch::{Observers, Watch};
pub(super) use workdir::Workdir;

use std::sync::Arc;
use std::time::Duration;

use goondan_core::host::{ConversationExt, MessageExt, StepResultExt, TurnResultExt};
use goondan_core::host::{ConversationHost, CoreRun, MessageHost, ModelCall, RunHost, TurnHost};
use goondan_core::{
    AgentEvent, AgentsHost, Error, ErrorCode, ExtensionName, FailedTurn, FinishReason, LayerInfo, Message,
    MessageEvent, MessageId, ModelFinish, Result, Role, RuntimeEvent, Source, Span, StepRef, StepResult, StepStatus,
    TokenUsage, ToolCallSummary, TurnInfo, TurnResult, Wait,
};
use serde_json::{Map, Value};
use tracing::Instrument;

use crate::attach::StepGenerations;
use crate::awaited::AwaitedValue;
use crate::live::within;
use crate::ports::model::{check_files, whole};
use crate::ports::store::{AskedAgain, Durability, EmittedBy, Reached};
use answered::{TurnAnswer, answer_of_step};
use first_piece::FirstPiece;
use machine::{StepEnd, TurnAction, TurnMachine};
use repeated::{Recorded, Repetition, answered_calls, corrections};
use report::{Stopwatch, error_code, error_message};
use shared::Shared;
use step::StepRun;

/// One turn while it runs.
pub(crate) struct TurnRun<'a> {
    /// The generations that the turn and its steps run with. The limits of the first stay to the end, and its layers
    /// are running.
    generations: StepGenerations<'a>,
    workdir: &'a Workdir,
    journaled: &'a mut JournaledConversation,
    info: &'a Arc<TurnInfo>,
    reporter: &'a Reporter<'a>,
    requests: Requests<'a>,
    /// Shared by the middlewares of the turn and of its steps (D-15).
    shared: Shared,
    machine: TurnMachine,
    tool_calls: Vec<ToolCallSummary>,
    /// The token usage of all steps, if the model reports it.
    usage: Option<TokenUsage>,
    answer: TurnAnswer,
    /// The records of the turn, if it was interrupted and goes on.
    repetition: Option<Box<Repetition>>,
    /// The value that the turn is to answer with.
    awaited: Option<Arc<AwaitedValue>>,
    /// The texts of reviewers for the model in the next step.
    corrections: Vec<AskedAgain>,
    /// The inputs that may join the turn.
    steering: &'a Steering,
    /// The messages of those that have joined it for the step that runs.
    joined: Joined,
    watch: Stopwatch,
}

/// The messages of inputs that have joined a turn for a step.
#[derive(Default)]
struct Joined {
    step: u32,
    messages: Vec<MessageId>,
}

impl<'a> TurnRun<'a> {
    pub(crate) fn new(
        generations: StepGenerations<'a>,
        workdir: &'a Workdir,
        journaled: &'a mut JournaledConversation,
        requests: Requests<'a>,
        steering: &'a Steering,
        awaited: Option<Arc<AwaitedValue>>,
    ) -> Self {
        let answer = TurnAnswer::new(&journaled.conversation);
        let spec = &generations.first.spec;
        let goes_on = requests.caller.turn.resumption > 0;
        Self {
            repetition: goes_on.then(|| Box::new(Repetition::find(journaled))),
            tool_calls: if goes_on { answered_calls(journaled) } else { Vec::new() },
            corrections: if goes_on { corrections(journaled) } else { Vec::new() },
            shared: Shared::new(spec.hints.clone().into()),
            machine: TurnMachine::new(spec.policy),
            generations,
            workdir,
            journaled,
            info: requests.caller.turn,
            reporter: requests.reporter,
            watch: requests.reporter.stopwatch(),
            requests,
            usage: None,
            awaited,
            answer,
            steering,
            joined: Joined::default(),
        }
    }

    /// Runs the turn: the input, the turn chain, and in its core the steps.
    pub(crate) async fn run(&mut self) -> Result<TurnResult> {
        let span = self.reporter.span;
        match self.info.resumption {
            0 => self.reporter.report("turn.started", span, |scope| RuntimeEvent::TurnStarted { scope }),
            number => {
                self.reporter.report("turn.resumed", span, |scope| RuntimeEvent::TurnResumed { scope, number });
                // Whether the layers of a step hold its answer is not known yet.
                let answer = self.repetition.as_ref().and_then(|repetition| repetition.answer_at());
                self.journaled.tell_again(answer);
            }
        }
        // A model that answers at once would keep what was told so far.
        self.reporter.deliver().await;
        let limit = self.generations.first.spec.policy.turn_timeout;
        let clock = self.requests.caller.asks.clock;
        let outcome = match within(limit, Some(clock), self.run_chain()).await {
            Some(outcome) => outcome,
            None => Err(Error::new(ErrorCode::TURN_TIMEOUT, format!("the turn took longer than {limit:?}"))
                .suggest("raise the turn's time limit, or look for what hangs: the last step and call are in the log")),
        };
        let duration = self.watch.elapsed();
        if self.journaled.is_suspending() {
            self.requests.used.asked.end().await;
            // ASK-01: the result of layers is not used.
            return Ok(self.suspended(outcome));
        }
        if outcome.is_ok() {
            // A layer recovered from the failure of a model call.
            self.journaled.partial.clear();
        }
        // The turn is not over: it goes on when the store is back, and those that it waits for with it.
        self.journaled.check_available()?;
        self.requests.used.asked.end().await;
        match &outcome {
            Ok(_) => self.reporter.report("turn.completed", self.reporter.span, |scope| RuntimeEvent::TurnCompleted {
                scope,
                step_count: self.machine.steps(),
                duration,
                token_usage: self.requests.total(self.usage),
                whole_usage: self.requests.whole(self.usage),
            }),
            Err(error) => self.report_failed(duration, error),
        }
        outcome
    }

    /// Returns the result of a turn whose calls wait, and reports that.
    #[cold]
    fn suspended(&self, outcome: Result<TurnResult>) -> TurnResult {
        if let Err(error) = &outcome {
            let turn = &self.info.turn;
            tracing::warn!(%turn, "a layer around a turn that waits for decisions failed: {}", error.report());
        }
        let waits = self.journaled.suspending();
        self.reporter.report("turn.suspended", self.reporter.span, |scope| RuntimeEvent::TurnSuspended {
            scope,
            waits: waits.iter().map(Wait::masked).collect(),
        });
        let mut result = TurnResult::suspended(self.info.turn.clone(), waits);
        result.set_usage(self.requests.total(self.usage), self.requests.whole(self.usage));
        result
    }

    fn report_failed(&self, duration: Duration, error: &Error) {
        self.reporter.report("turn.failed", self.reporter.span, |scope| RuntimeEvent::TurnFailed {
            scope,
            duration,
            error_code: Some(error.code().clone()),
            error_message: error.to_string(),
            token_usage: self.requests.total(self.usage),
            whole_usage: self.requests.whole(self.usage),
        });
    }

    /// Returns how far the turn came, also if it did not fail.
    pub(crate) fn end(self) -> FailedTurn {
        FailedTurn::new(self.info.turn.clone(), self.machine.steps(), self.tool_calls)
    }

    /// Reports that the turn was cancelled, and returns the error for that.
    pub(crate) async fn cancelled(&self) -> Error {
        self.requests.used.asked.end().await;
        let error = cancelled();
        self.report_failed(self.watch.elapsed(), &error);
        error
    }

    /// Takes in that the instance belongs to another process, and returns the error for that. The turn is not over: it
    /// goes on there.
    pub(crate) fn lost(&mut self) -> Error {
        self.journaled.lose()
    }

    async fn run_chain(&mut self) -> Result<TurnResult> {
        // D-13: before the chain runs, so that middlewares that count messages include this one.
        if self.journaled.facts.newest == 0
            && let Some(content) = self.info.input.to_content()
        {
            self.append(Message::user(content));
        }
        let chain = &self.generations.first.registered.turn;
        if chain.layers().next().is_some() {
            // Layers may wait long before the first step, such as for a summary. The input survives the process by
            // then.
            self.journaled.flush(Durability::Flushed).await?;
        }
        let mut result = chain.run(self).await?;
        self.shared.check_refused()?;
        self.shared.check_metadata()?;
        result.set_usage(self.requests.total(self.usage), self.requests.whole(self.usage));
        Ok(result)
    }

    async fn run_steps(&mut self) -> Result<TurnResult> {
        let is_recorded = self.repetition.as_mut().is_some_and(|repetition| repetition.turn_core());
        if !is_recorded {
            self.journaled.reached(Reached::TurnCore)?;
        }
        let interrupted = self.repetition.as_ref().and_then(|repetition| repetition.step.as_ref());
        let mut action = match interrupted {
            Some(step) => self.machine.go_on(step.index, step.repairs),
            None => self.machine.start(),
        };
        loop {
            match action {
                TurnAction::Step { index, attempt, delay } => {
                    // Models and tools that are never pending would keep the thread, also from signals and reloads.
                    tokio::task::coop::consume_budget().await;
                    if attempt > 0 {
                        tracing::info!(turn = %self.info.turn, step = index, attempt, ?delay, "running a step again");
                        self.shared.metadata.insert("attempt".to_owned(), attempt.into());
                        tokio::time::sleep(delay).await;
                    } else if !self.shared.metadata.is_empty() {
                        self.shared.metadata.remove("attempt");
                    }
                    let outcome = self.step(index).await;
                    // Also if a layer has recovered from that, or wants another attempt: the turn goes on when the
                    // store is back.
                    self.journaled.check_available()?;
                    if self.journaled.is_suspending() {
                        if let Err(error) = &outcome {
                            let turn = &self.info.turn;
                            tracing::warn!(%turn, "a layer around a step that waits for decisions failed: {}", error.report());
                        }
                        return Ok(self.result(FinishReason::Suspended, None));
                    }
                    action = self.machine.step_ended(outcome.map(|result| step_end(&result)));
                }
                TurnAction::Finish(reason) => {
                    self.answer.find(&self.journaled.conversation);
                    return Ok(self.result(reason, self.answer_or_notice(reason)));
                }
                TurnAction::Fail(error) => return Err(error),
            }
        }
    }

    /// Records that a step begins, unless it goes on. Returns its answer then, if that is recorded.
    async fn begin_step(&mut self, index: u32) -> Result<Option<Box<Recorded>>> {
        if self.joined.step != index {
            self.joined = Joined { step: index, messages: Vec::new() };
        }
        if let Some(repetition) = &mut self.repetition {
            self.joined.messages.extend(repetition.joined(index));
            if let Some(answer) = repetition.step_begins(index) {
                return Ok(answer);
            }
        }
        // F-AGENTS: answers that have arrived are appended before the step starts. A step that goes on may have asked
        // the model already.
        for answer in self.requests.caller.inbox.take() {
            self.append(answer);
        }
        for event in self.steering.take() {
            self.join(&event).await?;
        }
        self.journaled.reached(Reached::Step(index))?;
        Ok(None)
    }

    /// Lets the input of an event join the turn, unless it is one that was sent before, has files that the model does
    /// not take, or is refused by a masker: its caller gets the answer or the error then.
    // STEER-01
    #[cold]
    async fn join(&mut self, event: &AgentEvent) -> Result<()> {
        let mut event = event.clone();
        if check_files(&event, &*self.generations.first.spec.model).is_err()
            || self.generations.first.registered.mask(&mut event).is_err()
        {
            return Ok(());
        }
        if let Some(message) = self.journaled.join(&event).await? {
            self.joined.messages.push(message.id().clone());
            let event_id = event.id.clone();
            self.reporter
                .report("input.joined", self.reporter.span, |scope| RuntimeEvent::InputJoined { scope, event_id });
        }
        Ok(())
    }

    async fn step(&mut self, index: u32) -> Result<StepResult> {
        let replaced = self.generations.next().await;
        let generation = replaced.as_deref().unwrap_or(self.generations.first);
        let recorded = self.begin_step(index).await?;
        let watch = self.reporter.stopwatch();
        let span = self.reporter.span.child();
        self.journaled.prefixes.step_started();
        self.journaled.first_piece = FirstPiece::default();
        let mut step = StepRun::new(self, generation, index, span, recorded);
        let in_step = tracing::info_span!("step", step = index);
        let mut outcome = generation.registered.step.run(&mut step).instrument(in_step).await;
        if let Some(error) = outcome.as_ref().ok().and_then(|result| result.check_metadata().err()) {
            outcome = Err(error);
        }
        let held_from = step.held_from();
        let provider = step.provider();
        let ModelCall { usage: token_usage, model, finish_reason, prepared_by } = step.model_call;
        if let (Ok(result), Some(start)) = (&outcome, held_from)
            // If a layer recovered or could not replace the answer, the layer that holds it may not have approved it.
            && result.status() == StepStatus::Completed
            && !self.shared.has_refused()
        {
            self.send_held(index, span, start);
        }
        self.journaled.release_messages();
        if self.journaled.is_suspending() {
            // The step has not ended.
            return outcome;
        }
        let (duration, step) = (watch.elapsed(), || StepRef::new(&self.info.turn, index));
        match &outcome {
            Ok(result) => self.reporter.report("step.completed", span, |scope| RuntimeEvent::StepCompleted {
                scope,
                step: step(),
                tool_call_count: u32::try_from(result.tool_calls().len()).unwrap_or(u32::MAX),
                duration,
                token_usage,
                provider,
                model,
                time_to_first_piece: self.journaled.first_piece.time(),
                finish_reason,
                prepared_by,
                kept_prefix: self.journaled.prefixes.kept.clone(),
            }),
            Err(_) => self.reporter.report("step.failed", span, |scope| RuntimeEvent::StepFailed {
                scope,
                step: step(),
                duration,
                error_code: error_code(&outcome),
                error_message: error_message(&outcome),
            }),
        }
        outcome
    }

    fn result(&self, reason: FinishReason, answer: Option<Arc<Message>>) -> TurnResult {
        let mut result = TurnResult::from_parts(self.info.turn.clone(), reason, answer);
        result.set_usage(self.requests.total(self.usage), self.requests.whole(self.usage));
        result
    }

    /// Sends the answer of a step whose stream was held, as the conversation holds it now.
    fn send_held(&self, step: u32, span: Span, start: usize) {
        let Some(watch) = self.reporter.streams() else { return };
        let Some(message) = answer_of_step(&self.journaled.conversation, start) else { return };
        whole(message.content().parts()).for_each(|piece| watch.piece(step, span, piece));
    }

    /// Returns the message that answers, or a notice if the limit of steps was reached without one.
    fn answer_or_notice(&self, reason: FinishReason) -> Option<Arc<Message>> {
        match (self.answer.message(), reason) {
            (Some(message), _) => Some(Arc::clone(message)),
            (None, FinishReason::MaxSteps) => {
                let limit = self.generations.first.spec.policy.max_steps_per_turn;
                let notice = format!("The turn ended without an answer: it reached the limit of {limit} steps.");
                Some(Arc::new(Message::new(Role::Assistant, notice, Source::System)))
            }
            (None, _) => None,
        }
    }

    /// Appends a message of the runtime, and returns it.
    fn append(&mut self, mut message: Message) -> Arc<Message> {
        // Before it is shared: the conversation would copy it.
        message.set_turn(Some(self.info.turn.clone()));
        let message = Arc::new(message);
        self.apply(MessageEvent::Append { message: Arc::clone(&message) }, None);
        message
    }

    fn apply(&mut self, event: MessageEvent, by: Option<EmittedBy>) {
        if let Err(error) = self.journaled.emit_by(event, by.as_ref()) {
            self.shared.refuse(error);
        }
    }

    /// Applies the event of a layer, unless it is in the conversation since the turn was interrupted.
    fn emit(&mut self, event: MessageEvent, by: Option<EmittedBy>) {
        if self.journaled.is_suspending() {
            // ASK-01: the layer runs again.
            return;
        }
        let event = match (&mut self.repetition, &by) {
            (Some(repetition), Some(EmittedBy::Turn(by))) => repetition.of_turn(event, by),
            (Some(repetition), Some(EmittedBy::Step(by))) => repetition.of_step(event, by),
            _ => Some(event),
        };
        let Some(event) = event else { return };
        match self.journaled.conversation.check_emitted(&event) {
            Ok(()) => self.apply(event, by),
            Err(error) => self.refuse(error),
        }
    }

    /// Makes recorded events durable before a model or tool call acts on them (D-24).
    async fn settle(&mut self, durability: Durability) -> Result<()> {
        self.shared.check_refused()?;
        self.journaled.flush(durability).await
    }
}

/// Returns the error of a turn that was cancelled.
pub(super) fn cancelled() -> Error {
    Error::new(ErrorCode::TURN_CANCELLED, "the turn was cancelled").suggest("send the input again, as a new event")
}

fn step_end(result: &StepResult) -> StepEnd {
    if result.continues() {
        return result.asks_again().map_or(StepEnd::Another, |repair| StepEnd::Repair(repair.clone()));
    }
    if result.finish_reason() == Some(ModelFinish::Length) { StepEnd::Cut } else { StepEnd::Final }
}

impl RunHost for TurnRun<'_> {
    fn scope(&self) -> &TurnInfo {
        self.info
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
        self.reporter.report_skipped(self.reporter.span, layer, after_next, error);
    }
}

impl MessageHost for TurnRun<'_> {
    fn conversation(&self) -> &dyn ConversationHost {
        let repeated = self.repetition.as_ref().and_then(|repetition| repetition.in_turn());
        repeated.unwrap_or(&self.journaled.conversation)
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.requests
    }

    fn is_repeated(&self) -> bool {
        self.repetition.as_ref().is_some_and(|repetition| repetition.in_turn().is_some())
    }

    fn emit(&mut self, event: MessageEvent, by: Option<&ExtensionName>) {
        self.emit(event, by.cloned().map(EmittedBy::Turn));
    }
}

impl TurnHost for TurnRun<'_> {
    fn run_core(&mut self) -> CoreRun<'_, TurnResult> {
        CoreRun::local(self.run_steps())
    }

    fn follow(&mut self, result: &mut TurnResult) {
        self.answer.follow(&self.journaled.conversation, result);
    }
}
