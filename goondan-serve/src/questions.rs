//! The live questions of turns that run.
// ASK-04

use std::sync::Arc;

use futures_util::stream::{BoxStream, StreamExt};
use goondan_core::{AgentName, Decision, InstanceKey, Principal};
use goondan_lock::Lock;
use goondan_runtime::{LiveQuestion, LiveUpdate};
use goondan_wire::{Deciding, Update};
use tokio::task::AbortHandle;

use crate::problem::Result;
use crate::task::spawn;
use crate::turns::Turns;

/// The questions that wait for an answer now. They are followed until this is dropped.
pub(crate) struct Questions {
    open: Arc<Open>,
    task: AbortHandle,
}

struct Open {
    questions: Lock<Vec<LiveQuestion>>,
    turns: Arc<Turns>,
    log_bytes: usize,
}

impl Drop for Questions {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Open {
    fn asked(&self, question: LiveQuestion) {
        let Some((id, log)) = self.turns.asking(&question) else {
            // Another agent has asked in its own conversation, and the request that led there is not known.
            return drop(question.decide(Decision::reject(question.wait().call.clone(), "there is no person to ask")));
        };
        self.turns.tell(&id, &log, Update::Asked(Box::new(question.told().masked())), self.log_bytes);
        self.questions.lock().push(question);
    }

    /// Tells once that a question is answered, or has expired.
    fn gone(&self, question: &LiveQuestion) {
        let mut questions = self.questions.lock();
        let Some(at) = questions.iter().position(|open| open.id() == question.id()) else { return };
        questions.remove(at);
        drop(questions);
        if let Some((id, log)) = self.turns.asking(question) {
            self.turns.tell(&id, &log, Update::Gone { id: question.id().clone() }, self.log_bytes);
        }
    }
}

impl Questions {
    /// Follows the questions of agents: those who watch a turn are told of its own.
    pub(crate) fn follow(mut updates: BoxStream<'static, LiveUpdate>, turns: Arc<Turns>, log_bytes: usize) -> Self {
        let open = Arc::new(Open { questions: Lock::default(), turns, log_bytes });
        let followed = Arc::clone(&open);
        let task = spawn(Box::pin(async move {
            while let Some(update) = updates.next().await {
                match update {
                    LiveUpdate::Asked(question) => followed.asked(question),
                    LiveUpdate::Gone(question) => followed.gone(&question),
                    _ => {}
                }
            }
        }));
        Self { open, task }
    }

    /// Returns those of a conversation.
    pub(crate) fn of(&self, agent: &AgentName, key: &InstanceKey) -> Vec<LiveQuestion> {
        let open = self.open.questions.lock();
        open.iter().filter(|question| is_of(question, agent, key) && question.is_open()).cloned().collect()
    }

    /// Answers those of a conversation that the decisions are about, and returns the other decisions.
    pub(crate) fn decide(
        &self,
        agent: &AgentName,
        key: &InstanceKey,
        decisions: Vec<Deciding>,
        by: Option<&str>,
    ) -> Result<Vec<Deciding>> {
        let open = self.of(agent, key);
        let mut others = Vec::new();
        for decision in decisions {
            let is_it = |question: &&LiveQuestion| match &decision.id {
                Some(id) => question.id() == id,
                None => question.wait().call == decision.call,
            };
            match open.iter().find(is_it) {
                Some(question) => {
                    question.decide(made_by(decision, by))?;
                    // At once: the turn may end before the task of this is told.
                    self.open.gone(question);
                }
                None => others.push(decision),
            }
        }
        Ok(others)
    }
}

/// Returns a decision, with the principal who made it.
pub(crate) fn made_by(decision: Deciding, by: Option<&str>) -> Decision {
    let decision = decision.into_decision();
    by.into_iter().fold(decision, |decision, by| decision.by(Principal::new("user", by)))
}

/// Returns whether the person who talks to the agent in this conversation is asked.
fn is_of(question: &LiveQuestion, agent: &AgentName, key: &InstanceKey) -> bool {
    question.agents().first() == Some(agent) && question.told().instance == *key
}
