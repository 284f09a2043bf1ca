//! Owns an instance: one conversation of an agent, its queue, and the way of a turn from the queue to the store.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use super::AgentInner;
use super::registration::Registered;
use super::turn::TurnRun;
use crate::conversation::{Applied, Conversation, Message, MessageEvent, Role, Source};
use crate::error::{Error, ErrorCode, Result};
use crate::event::AgentEvent;
use crate::name::{InstanceKey, TurnId};
use crate::pipeline::{ToolCallResult, ToolError, TurnResult};
use crate::store::{Commit, InstanceId, Journal, Opened, Reach};

/// One conversation of an agent. Turns run one at a time, in the order in which they were asked for (F-TURN); other
/// instances do not wait. Clones are the same instance; when the last one is dropped it is closed.
#[derive(Clone)]
pub struct Instance {
    inner: Arc<InstanceInner>,
}

pub(super) struct InstanceInner {
    agent: Arc<AgentInner>,
    id: InstanceId,
    registered: Registered,
    /// The queue is the fairness of this lock: whoever asked first gets it first.
    live: tokio::sync::Mutex<Live>,
}

/// What a turn changes.
pub(super) struct Live {
    pub(super) conversation: Conversation,
    journal: Box<dyn Journal>,
    /// The turn that was begun and not committed: running now, or left behind by a cancelled caller or a crash.
    open_turn: Option<TurnId>,
}

impl Instance {
    pub(super) fn new(inner: Arc<InstanceInner>) -> Self {
        Self { inner }
    }

    /// The key of the conversation.
    pub fn key(&self) -> &InstanceKey {
        &self.inner.id.key
    }

    /// Handles one input event: one turn (F-TURN). Everything that it said is stored when this returns, also when it
    /// failed (D-16).
    ///
    /// Dropping the future cancels the turn; what it had said until then is kept, and closed before the next turn.
    ///
    /// # Errors
    /// The error that failed the turn, with how far the [`turn`](Error::turn) came; `E_STORE_…` when it could not be stored.
    pub async fn run(&self, event: impl Into<AgentEvent>) -> Result<TurnResult> {
        let Self { inner } = self;
        let mut live = inner.live.lock().await;
        live.close_turn().await?;
        let turn = TurnId::random();
        live.begin(&turn)?;
        let mut run = TurnRun::new(&inner.agent, &inner.id, &inner.registered, &mut live, turn, event.into());
        let outcome = run.run().await;
        let so_far = run.so_far();
        // D-16: a failed turn is folded like any other.
        let stored = live.close_turn().await;
        if let (Err(error), Err(_)) = (&outcome, &stored) {
            tracing::error!(turn = %so_far.id, "the turn failed and could not be stored: {}", error.report());
        }
        stored.and(outcome).map_err(|error| error.in_turn(so_far))
    }

    /// The messages of the conversation, oldest first. Waits for turns that run or were asked for earlier.
    pub async fn messages(&self) -> Vec<Arc<Message>> {
        self.inner.live.lock().await.conversation.messages().cloned().collect()
    }
}

impl fmt::Debug for Instance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Instance({})", self.inner.id)
    }
}

impl InstanceInner {
    pub(super) async fn open(agent: Arc<AgentInner>, key: InstanceKey) -> Result<Self> {
        let id = InstanceId { agent: agent.name.clone(), key };
        let mut live = Live::from_store(&id, agent.store.open(&id).await?)?;
        live.close_turn().await?;
        let registered = Registered::build(&agent.extensions).await?;
        Ok(Self { agent, id, registered, live: tokio::sync::Mutex::new(live) })
    }
}

impl Live {
    fn from_store(id: &InstanceId, opened: Opened) -> Result<Self> {
        let (mut conversation, duplicates) = Conversation::from_base(opened.base);
        if !duplicates.is_empty() {
            tracing::warn!(instance = %id, ?duplicates, "messages with ids that earlier ones have are left out");
        }
        let mut open_turn = None;
        if let Some(interrupted) = opened.interrupted {
            tracing::info!(instance = %id, turn = %interrupted.turn, "recovering an interrupted turn");
            for event in interrupted.events {
                conversation.apply(event)?;
            }
            open_turn = Some(interrupted.turn);
        }
        Ok(Self { conversation, journal: opened.journal, open_turn })
    }

    fn begin(&mut self, turn: &TurnId) -> Result<()> {
        self.journal.begin(turn)?;
        self.open_turn = Some(turn.clone());
        Ok(())
    }

    /// Takes an event into the conversation and the journal.
    pub(super) fn emit(&mut self, event: MessageEvent) -> Result<()> {
        if self.conversation.apply(event)? == Applied::TargetNotFound {
            let events = self.conversation.events();
            if let Some(MessageEvent::Remove { target_id } | MessageEvent::Replace { target_id, .. }) = events.last() {
                tracing::warn!(
                    code = %ErrorCode::MESSAGE_TARGET_NOT_FOUND,
                    event_index = events.len() - 1,
                    %target_id,
                    "a message event aims at a message that the conversation does not hold"
                );
            }
        }
        match self.conversation.events().last() {
            Some(event) => self.journal.record(event),
            None => Ok(()),
        }
    }

    pub(super) async fn flush(&mut self, reach: Reach) -> Result<()> {
        self.journal.flush(reach).await
    }

    /// Ends the turn that is open, if one is: closes its unanswered calls, commits it, and folds it.
    async fn close_turn(&mut self) -> Result<()> {
        let Some(turn) = self.open_turn.clone() else { return Ok(()) };
        for call in self.conversation.unanswered_calls() {
            let error = Error::new(ErrorCode::TOOL_INTERRUPTED, "the turn ended before this call was answered")
                .suggest("its effect is unknown: check before calling again");
            let result = ToolCallResult::new(call.tool_call_id, call.tool_name, Err(ToolError::from(error)));
            self.emit(MessageEvent::append(tool_message(&result)))?;
        }
        let commit = Commit { turn: &turn, conversation: &self.conversation, state: &BTreeMap::new() };
        self.journal.commit(commit).await?;
        self.conversation.fold();
        self.open_turn = None;
        Ok(())
    }
}

/// A tool's answer as a message: one per call (D-12).
pub(super) fn tool_message(result: &ToolCallResult) -> Message {
    let (tool_call_id, tool_name) = (result.call_id().clone(), result.tool_name().to_owned());
    let part = crate::conversation::ToolResultPart {
        tool_call_id: tool_call_id.clone(),
        tool_name: tool_name.clone(),
        output: result.to_tool_output(),
    };
    let content = vec![crate::conversation::Part::ToolResult(part)];
    Message::new(Role::Tool, content, Source::Tool { tool_call_id, tool_name })
}
