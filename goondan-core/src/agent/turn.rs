//! Owns a running turn: the driver of the turn machine, and the host behind turn contexts.

use std::sync::Arc;

use serde_json::{Map, Value};

use super::AgentInner;
use super::instance::Live;
use super::machine::{Action, TurnMachine};
use super::registration::Registered;
use super::step::StepRun;
use crate::BoxFuture;
use crate::context::host::{ConversationHost, MessageHost, RunHost, TurnHost, TurnScope};
use crate::conversation::{Message, MessageEvent, Role, Source};
use crate::error::{Error, Result};
use crate::event::AgentEvent;
use crate::name::{TraceId, TurnId};
use crate::pipeline::{FailedTurn, FinishReason, StepResult, ToolCallSummary, TurnResult};
use crate::store::{InstanceId, Reach};

/// One turn while it runs.
pub(super) struct TurnRun<'a> {
    pub(super) agent: &'a AgentInner,
    pub(super) registered: &'a Registered,
    pub(super) live: &'a mut Live,
    pub(super) scope: TurnScope,
    /// Shared by the middlewares of the turn and of its steps (D-15).
    pub(super) metadata: Map<String, Value>,
    /// What [`MessageHost::emit`] could not take in; it fails the turn at the next occasion (D-24).
    fault: Option<Error>,
    machine: TurnMachine,
    pub(super) tool_calls: Vec<ToolCallSummary>,
}

impl<'a> TurnRun<'a> {
    pub(super) fn new(
        agent: &'a AgentInner,
        id: &InstanceId,
        registered: &'a Registered,
        live: &'a mut Live,
        turn: TurnId,
        input: AgentEvent,
    ) -> Self {
        let trace = input.trace_id.clone().unwrap_or_else(TraceId::random);
        let scope = TurnScope { agent: id.agent.clone(), instance: id.key.clone(), turn, trace, input };
        Self {
            agent,
            registered,
            live,
            scope,
            metadata: Map::new(),
            fault: None,
            machine: TurnMachine::new(agent.policy),
            tool_calls: Vec::new(),
        }
    }

    /// How far the turn came.
    pub(super) fn so_far(&self) -> FailedTurn {
        FailedTurn { id: self.scope.turn.clone(), steps: self.machine.steps(), tool_calls: self.tool_calls.clone() }
    }

    /// Runs the turn: the input, the turn chain, and in its core the steps.
    pub(super) async fn run(&mut self) -> Result<TurnResult> {
        if let Some(text) = &self.scope.input.input {
            // D-13: before the chain, so that what counts messages counts this one.
            let message = Message::user(text.clone());
            self.append(message);
        }
        let registered = self.registered;
        let mut result = registered.turn.run(self).await?;
        self.check_fault()?;
        result.set_account(self.machine.steps(), self.tool_calls.clone());
        Ok(result)
    }

    async fn run_steps(&mut self) -> Result<TurnResult> {
        let mut action = self.machine.start();
        loop {
            match action {
                Action::Step { index, attempt, delay } => {
                    if attempt > 0 {
                        tracing::info!(turn = %self.scope.turn, step = index, attempt, ?delay, "running a step again");
                        self.metadata.insert("attempt".to_owned(), attempt.into());
                        tokio::time::sleep(delay).await;
                    } else {
                        self.metadata.remove("attempt");
                    }
                    let outcome = self.step(index).await;
                    action = self.machine.step_ended(outcome.map(|result| result.has_tool_calls()));
                }
                Action::Finish(reason) => return Ok(self.result(reason)),
                Action::Fail(error) => return Err(error),
            }
        }
    }

    async fn step(&mut self, index: u32) -> Result<StepResult> {
        let registered = self.registered;
        let mut step = StepRun::new(self, index);
        registered.step.run(&mut step).await
    }

    fn result(&self, reason: FinishReason) -> TurnResult {
        let said = self.live.conversation.events().iter().rev().filter_map(MessageEvent::appended);
        let answer = said.into_iter().find(|message| message.role() == Role::Assistant && !message.text().is_empty());
        let response = match (answer, reason) {
            (Some(message), _) => Some(Arc::clone(message)),
            (None, FinishReason::MaxSteps) => {
                let limit = self.agent.policy.max_steps_per_turn;
                let notice = format!("The turn ended without an answer: it reached the limit of {limit} steps.");
                Some(Arc::new(Message::new(Role::Assistant, notice, Source::System)))
            }
            (None, _) => None,
        };
        TurnResult::new(self.scope.turn.clone(), reason, response)
    }

    /// Appends a message of the runtime's own.
    pub(super) fn append(&mut self, message: Message) {
        self.emit(MessageEvent::append(message));
    }

    /// Makes sure that what was said is kept before someone acts on it (D-24).
    pub(super) async fn settle(&mut self, reach: Reach) -> Result<()> {
        self.check_fault()?;
        self.live.flush(reach).await
    }

    fn check_fault(&mut self) -> Result<()> {
        self.fault.take().map_or(Ok(()), Err)
    }
}

impl RunHost for TurnRun<'_> {
    fn scope(&self) -> &TurnScope {
        &self.scope
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }
}

impl MessageHost for TurnRun<'_> {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.live.conversation
    }

    fn emit(&mut self, event: MessageEvent) {
        if let Err(error) = self.live.emit(event) {
            self.fault.get_or_insert(error);
        }
    }
}

impl TurnHost for TurnRun<'_> {
    fn run_core(&mut self) -> BoxFuture<'_, Result<TurnResult>> {
        Box::pin(self.run_steps())
    }
}
