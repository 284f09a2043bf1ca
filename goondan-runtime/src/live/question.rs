//! Live questions, from asking to the answer.

use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use goondan_core::{
    AgentName, Decision, Error, ErrorCode, LiveQuestionId, LiveWait, Question, Result, Timestamp, Unanswered, Verdict,
    Wait,
};
use goondan_lock::Lock;
use serde_json::Value;
use tokio::sync::{Notify, oneshot, watch};

use super::clock::Clock;
use super::errors::{check_value, invalid, not_waiting, taken};

/// The time for which an answer is waited for, unless the question sets another.
const EXPIRES: Duration = Duration::from_secs(600);
/// The most live questions of the conversations of an agent that are open at once.
const MAX_OPEN: usize = 256;

/// The live questions of all conversations of an agent.
#[derive(Default)]
pub(crate) struct Questions {
    open: Lock<Vec<LiveQuestion>>,
    /// The receivers that are told of changes.
    told: Lock<Vec<Weak<Notify>>>,
    /// The number of receivers that can answer.
    subscribers: watch::Sender<usize>,
}

/// Why a live question has no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unanswerable {
    NoPerson,
    Expired,
    TooMany,
}

/// A question that a handler waits for the answer to now, or that another agent has asked which a handler waits for.
/// Clones are the same question.
///
/// [`LiveQuestions`](crate::LiveQuestions) tells them, and has an example.
// ASK-04
#[derive(Clone)]
pub struct LiveQuestion {
    inner: Arc<Asked>,
}

struct Asked {
    told: LiveWait,
    /// The order in which questions were asked in this process.
    number: u64,
    standing: Lock<Standing>,
}

enum Standing {
    Open(oneshot::Sender<Decision>),
    /// The first decision, without a secret.
    Taken(Box<Decision>),
    /// It expired, or its call has ended.
    Gone,
}

impl LiveQuestion {
    /// Returns the id.
    pub fn id(&self) -> &LiveQuestionId {
        &self.inner.told.id
    }

    /// Returns the agents: the one whose call it is, behind those that wait for it.
    pub fn agents(&self) -> &[AgentName] {
        &self.inner.told.agents
    }

    /// Returns the call, with one question, and until when it can be answered.
    pub fn wait(&self) -> &Wait {
        &self.inner.told.wait
    }

    /// Returns the form for front ends in other processes.
    pub fn told(&self) -> &LiveWait {
        &self.inner.told
    }

    pub(super) fn number(&self) -> u64 {
        self.inner.number
    }

    /// Returns whether an answer is waited for.
    pub fn is_open(&self) -> bool {
        matches!(*self.inner.standing.lock(), Standing::Open(_))
    }

    /// Answers it.
    ///
    /// # Errors
    /// `E_DECISION_TAKEN` when it was answered before, with that decision in the details; `E_DECISION_INVALID` when the
    /// value does not fit, or the decision sets arguments or is about another question; `E_NOT_WAITING` when it has
    /// expired, or its call has ended. Then nothing has changed.
    pub fn decide(&self, decision: Decision) -> Result<()> {
        let decision = decision.checked()?;
        let [asked] = &self.wait().questions[..] else { return Err(not_waiting(Some(&decision))) };
        if decision.call != self.wait().call {
            return Err(not_waiting(Some(&decision)));
        }
        let mut standing = self.inner.standing.lock();
        match &*standing {
            Standing::Open(_) => {}
            Standing::Taken(first) => return Err(taken(first)),
            Standing::Gone => return Err(not_waiting(Some(&decision))),
        }
        if decision.question.as_ref().is_some_and(|question| *question != asked.by) {
            return Err(invalid(&decision, "no such question was asked about it"));
        }
        if decision.args().is_some() || decision.verdict == Verdict::Withheld {
            return Err(invalid(&decision, "the call runs already: an answer is a value, or a rejection"));
        }
        check_value(&decision, &asked.question)?;
        let decision = decision.of(asked.by.clone());
        let stored = if asked.question.is_secret() { decision.withheld() } else { decision.clone() };
        if let Standing::Open(answer) = std::mem::replace(&mut *standing, Standing::Taken(Box::new(stored))) {
            // The one who asked is gone in this moment, and the question with it.
            _ = answer.send(decision);
        }
        Ok(())
    }

    fn close(&self) {
        let mut standing = self.inner.standing.lock();
        if let Standing::Open(_) = *standing {
            *standing = Standing::Gone;
        }
    }
}

impl fmt::Debug for LiveQuestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LiveQuestion({} {})", self.id(), self.wait().call)
    }
}

impl Questions {
    /// Asks, and waits for the decision; `clock` stands still meanwhile.
    ///
    /// # Errors
    /// Why there is none.
    pub(crate) async fn ask(&self, clock: &Clock, mut told: LiveWait) -> Result<Decision, Unanswerable> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let mut subscribers = self.subscribers.subscribe();
        if *subscribers.borrow() == 0 {
            return Err(Unanswerable::NoPerson);
        }
        let time = told.wait.questions.iter().find_map(|asked| asked.question.expires_after_ms);
        let mut time = time.map_or(EXPIRES, Duration::from_millis);
        // That of a call of another agent may be earlier.
        if let Some(expires) = told.wait.expires {
            time = time.min(expires.since(Timestamp::now()));
        }
        told.wait.expires = Some(Timestamp::now().after(time));
        let (sender, answer) = oneshot::channel();
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let standing = Lock::new(Standing::Open(sender));
        let question = LiveQuestion { inner: Arc::new(Asked { told, number, standing }) };
        let _open = self.open(question).ok_or(Unanswerable::TooMany)?;
        let _stop = clock.stop();
        let (mut answer, mut expired) = (pin!(answer), pin!(tokio::time::sleep(time)));
        let mut none = pin!(subscribers.wait_for(|number| *number == 0));
        poll_fn(|cx| {
            // The sender is dropped with the question, which this keeps.
            if let Poll::Ready(Ok(decision)) = answer.as_mut().poll(cx) {
                return Poll::Ready(Ok(decision));
            }
            if expired.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Err(Unanswerable::Expired));
            }
            none.as_mut().poll(cx).map(|_| Err(Unanswerable::NoPerson))
        })
        .await
    }

    fn open(&self, question: LiveQuestion) -> Option<Open<'_>> {
        {
            let mut open = self.open.lock();
            if open.len() >= MAX_OPEN {
                return None;
            }
            open.push(question.clone());
        }
        self.tell();
        Some(Open { questions: self, question })
    }

    fn tell(&self) {
        self.told.lock().retain(|subscriber| match subscriber.upgrade() {
            Some(subscriber) => {
                subscriber.notify_one();
                true
            }
            None => false,
        });
    }

    /// Returns the questions that are open, in the order in which they were asked.
    pub(super) fn now_open(&self) -> Vec<LiveQuestion> {
        self.open.lock().clone()
    }

    /// Returns true if a receiver can answer.
    pub(crate) fn has_subscribers(&self) -> bool {
        *self.subscribers.borrow() > 0
    }

    pub(super) fn subscribe(&self, subscriber: &Arc<Notify>) {
        self.told.lock().push(Arc::downgrade(subscriber));
        self.subscribers.send_modify(|number| *number += 1);
        subscriber.notify_one();
    }

    pub(super) fn unsubscribe(&self) {
        self.subscribers.send_modify(|number| *number -= 1);
    }
}

/// A question is open until this is dropped.
struct Open<'a> {
    questions: &'a Questions,
    question: LiveQuestion,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.question.close();
        self.questions.open.lock().retain(|open| open.number() != self.question.number());
        self.questions.tell();
    }
}

impl Unanswerable {
    /// Returns the answer that a question has nevertheless.
    ///
    /// # Errors
    /// `E_NOT_ANSWERED`, `E_TOOL_REJECTED` or `E_TOOL_ASKS`.
    pub(crate) fn answer(self, question: &Question) -> Result<Value> {
        let not = |message: &str, suggestion: &str| {
            Err(Error::new(ErrorCode::NOT_ANSWERED, message.to_owned()).suggest(suggestion.to_owned()))
        };
        match (self, &question.unanswered) {
            (Self::NoPerson, Unanswered::Value(value)) => Ok(value.clone()),
            (Self::NoPerson, Unanswered::Reject) => Err(Error::rejected("there is no person to ask")),
            (Self::NoPerson, _) => {
                not("there is no person to ask", "go on without the answer, or run this with a person")
            }
            (Self::Expired, _) => not("the question was not answered in time", "go on without the answer"),
            (Self::TooMany, _) => Err(Error::new(
                ErrorCode::TOOL_ASKS,
                format!("{MAX_OPEN} questions wait for answers already, and no more are asked"),
            )
            .suggest("ask again when some of them are answered")),
        }
    }
}
