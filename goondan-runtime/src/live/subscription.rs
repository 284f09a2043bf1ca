//! The receiver of live questions, by which a program answers them.

use std::fmt;
use std::sync::Arc;

use tokio::sync::Notify;

use super::question::{LiveQuestion, Questions};

/// The live questions of agents, returned by [`Agent::subscribe_questions`](crate::Agent::subscribe_questions). As
/// long as there is one, a person, or a program, can answer.
// ASK-04
#[derive(Default)]
pub struct LiveQuestions {
    agents: Vec<Arc<Questions>>,
    changed: Arc<Notify>,
    /// Those that were told and may be open.
    told: Vec<LiveQuestion>,
}

/// Told by [`LiveQuestions::next`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum LiveUpdate {
    /// A question waits for its answer.
    Asked(LiveQuestion),
    /// A question that was told does not wait any more: it was answered, it has expired, or its call has ended.
    Gone(LiveQuestion),
}

impl LiveQuestions {
    pub(crate) fn of(questions: &Arc<Questions>) -> Self {
        let mut subscription = Self::default();
        subscription.add(questions);
        subscription
    }

    pub(crate) fn add(&mut self, questions: &Arc<Questions>) {
        if !self.agents.iter().any(|known| Arc::ptr_eq(known, questions)) {
            questions.subscribe(&self.changed);
            self.agents.push(Arc::clone(questions));
        }
    }

    /// Those of no agent yet, which never change.
    pub fn new() -> Self {
        Self::default()
    }

    /// Waits for the next change, in the order in which questions were asked.
    pub async fn next(&mut self) -> LiveUpdate {
        loop {
            let changed = Arc::clone(&self.changed);
            let changed = changed.notified();
            if let Some(update) = self.told_now() {
                return update;
            }
            changed.await;
        }
    }

    fn told_now(&mut self) -> Option<LiveUpdate> {
        if let Some(gone) = self.told.iter().position(|question| !question.is_open()) {
            return Some(LiveUpdate::Gone(self.told.remove(gone)));
        }
        let open = self.agents.iter().flat_map(|agent| agent.now_open());
        let is_new = |question: &LiveQuestion| {
            question.is_open() && !self.told.iter().any(|told| told.number() == question.number())
        };
        let next = open.filter(is_new).min_by_key(LiveQuestion::number)?;
        self.told.push(next.clone());
        Some(LiveUpdate::Asked(next))
    }
}

impl Drop for LiveQuestions {
    fn drop(&mut self) {
        self.agents.iter().for_each(|agent| agent.unsubscribe());
    }
}

impl fmt::Debug for LiveQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveQuestions({} agents)", self.agents.len())
    }
}
