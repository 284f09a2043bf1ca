//! Live questions: those that the handlers of a host's agents wait for the answers to.
// ASK-04

use std::fmt;
use std::future::pending;
use std::sync::Arc;

use goondan_runtime::{LiveQuestions, LiveUpdate};
use tokio::sync::watch;

use crate::host::{Current, Host};
use crate::race::{Either, race};

/// The live questions of all agents of a host, also of those that a reload adds. As long as there is one, a person
/// can be asked. [`Host::questions`] returns it.
pub struct HostQuestions {
    current: watch::Receiver<Arc<Current>>,
    questions: LiveQuestions,
}

impl Host {
    /// Subscribes to the live questions of all agents:
    /// [`Agent::subscribe_questions`](goondan_runtime::Agent::subscribe_questions) describes them.
    pub fn questions(&self) -> HostQuestions {
        let mut questions = HostQuestions { current: self.inner.current.subscribe(), questions: LiveQuestions::new() };
        questions.follow();
        questions
    }
}

impl HostQuestions {
    /// Waits for the next change.
    pub async fn next(&mut self) -> LiveUpdate {
        loop {
            match race(self.current.changed(), self.questions.next()).await {
                Either::Left(Ok(())) => self.follow(),
                // The host is dropped.
                Either::Left(Err(_)) => pending().await,
                Either::Right(update) => return update,
            }
        }
    }

    /// Adds the agents that there are now.
    fn follow(&mut self) {
        for agent in &self.current.borrow_and_update().agents {
            self.questions.follow(agent);
        }
    }
}

impl fmt::Debug for HostQuestions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("HostQuestions").field(&self.questions).finish()
    }
}
