//! The calls that run at a server, and the news of the server about them: their progress, and questions to the
//! person.
// ASK-04

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use goondan::extension::LogLevel;
use goondan::{Map, Value};
use goondan_lock::Lock;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// The most things that a server says of a call before they are read. More progress is dropped, and more questions are
/// cancelled.
const QUEUE: usize = 32;

/// Something that a server says while a call runs.
pub(crate) enum Said {
    /// The progress of the call.
    Progress { done: f64, total: Option<f64>, text: String },
    /// It writes a line to the log.
    Logged(LogLevel, String),
    /// It asks the person.
    Asked(Asked),
}

/// A question of a server.
pub(crate) struct Asked {
    pub(crate) elicitation: Elicitation,
    /// Dropped, if the server does not want to know any more.
    pub(crate) answer: oneshot::Sender<Response>,
}

/// A request of a server to the person.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Elicitation {
    pub(crate) message: String,
    pub(crate) kind: ElicitationKind,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ElicitationKind {
    /// To fill in a form with this schema.
    Form(Value),
    /// To open this address.
    Url(String),
}

/// The answer to a question of a server.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Response {
    Accept(Map<String, Value>),
    Decline,
    /// There is no answer.
    Cancel,
}

/// The calls that run at a server.
#[derive(Clone, Default)]
pub(crate) struct RunningCalls(Arc<Lock<Calls>>);

#[derive(Default)]
struct Calls {
    running: Vec<Running>,
    /// Progress with a number that no call has yet: a server can answer before its request counts as sent.
    early: Vec<(String, Said)>,
}

struct Running {
    number: u64,
    conversation: String,
    /// The number that the server says the progress with.
    token: Option<String>,
    said: Sender<Said>,
}

/// A call that runs, until this is dropped.
pub(crate) struct RunningCall {
    calls: RunningCalls,
    number: u64,
}

/// The one that calls a tool, and hears the news of the server about that.
pub(crate) struct Caller {
    /// The conversation of the call.
    pub(crate) conversation: String,
    pub(crate) said: Sender<Said>,
}

impl Caller {
    pub(crate) fn new(conversation: String) -> (Self, Receiver<Said>) {
        let (said, heard) = channel(QUEUE);
        (Self { conversation, said }, heard)
    }
}

impl RunningCalls {
    pub(crate) fn begin(&self, caller: &Caller) -> RunningCall {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let Caller { conversation, said } = caller;
        self.0.lock().running.push(Running {
            number,
            conversation: conversation.clone(),
            token: None,
            said: said.clone(),
        });
        RunningCall { calls: self.clone(), number }
    }

    /// Tells the call with this token how far it is.
    pub(crate) fn progress(&self, token: &str, done: f64, total: Option<f64>, text: String) {
        let mut calls = self.0.lock();
        let said = Said::Progress { done, total, text };
        if let Some(call) = calls.running.iter().find(|call| call.token.as_deref() == Some(token)) {
            // The newest one counts, and there are more.
            _ = call.said.try_send(said);
        } else if calls.running.iter().any(|call| call.token.is_none()) && calls.early.len() < QUEUE {
            calls.early.push((token.to_owned(), said));
        }
    }

    /// Asks the person whose call this is about, if that is known. `None` otherwise.
    pub(crate) fn ask(&self, elicitation: Elicitation) -> Option<oneshot::Receiver<Response>> {
        let (answer, answered) = oneshot::channel();
        self.tell(Said::Asked(Asked { elicitation, answer })).then_some(answered)
    }

    /// Says something to the conversation whose calls run. A server does not say which call it is about: false if
    /// calls of several conversations run, or none.
    pub(crate) fn tell(&self, said: Said) -> bool {
        let calls = self.0.lock();
        let Some(first) = calls.running.first() else { return false };
        calls.running.iter().all(|call| call.conversation == first.conversation) && first.said.try_send(said).is_ok()
    }
}

impl RunningCall {
    pub(crate) fn set_token(&self, token: String) {
        let mut calls = self.calls.0.lock();
        let Calls { running, early } = &mut *calls;
        if let Some(call) = running.iter_mut().find(|call| call.number == self.number) {
            for (_, said) in early.extract_if(.., |(of, _)| *of == token) {
                _ = call.said.try_send(said);
            }
            call.token = Some(token);
        }
        if running.iter().all(|call| call.token.is_some()) {
            early.clear();
        }
    }
}

impl Drop for RunningCall {
    fn drop(&mut self) {
        let mut calls = self.calls.0.lock();
        calls.running.retain(|call| call.number != self.number);
        if calls.running.iter().all(|call| call.token.is_some()) {
            calls.early.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question() -> Elicitation {
        Elicitation { message: "?".to_owned(), kind: ElicitationKind::Url("https://example.org/".to_owned()) }
    }

    #[test]
    fn a_question_goes_to_the_one_conversation_that_calls() {
        let calls = RunningCalls::default();
        assert!(calls.ask(question()).is_none());
        let ((a, mut heard), (also_a, _heard), (b, _heard_b)) =
            (Caller::new("a".to_owned()), Caller::new("a".to_owned()), Caller::new("b".to_owned()));
        let (_one, _two) = (calls.begin(&a), calls.begin(&also_a));
        assert!(calls.ask(question()).is_some());
        assert!(matches!(heard.try_recv(), Ok(Said::Asked(_))));
        let other = calls.begin(&b);
        assert!(calls.ask(question()).is_none(), "it may be about a call of another conversation");
        drop(other);
        for _ in 0..QUEUE {
            assert!(calls.ask(question()).is_some());
        }
        assert!(calls.ask(question()).is_none(), "too many");
    }

    #[test]
    fn progress_goes_to_its_call() {
        let calls = RunningCalls::default();
        let ((a, mut heard), (b, mut other)) = (Caller::new("a".to_owned()), Caller::new("b".to_owned()));
        let (a, _b) = (calls.begin(&a), calls.begin(&b));
        a.set_token("7".to_owned());
        calls.progress("7", 1.0, Some(2.0), "half".to_owned());
        calls.progress("8", 1.0, None, String::new());
        assert!(matches!(heard.try_recv(), Ok(Said::Progress { text, .. }) if text == "half"));
        assert!(other.try_recv().is_err() && heard.try_recv().is_err());
        drop(a);
        calls.progress("7", 2.0, Some(2.0), String::new());
        assert!(heard.try_recv().is_err());
    }

    #[test]
    fn progress_that_comes_before_the_request_counts_as_sent_is_kept() {
        let calls = RunningCalls::default();
        let (a, mut heard) = Caller::new("a".to_owned());
        let a = calls.begin(&a);
        for (token, text) in [("7", "own"), ("8", "other")] {
            calls.progress(token, 1.0, None, text.to_owned());
        }
        a.set_token("7".to_owned());
        assert!(matches!(heard.try_recv(), Ok(Said::Progress { text, .. }) if text == "own"));
        assert!(heard.try_recv().is_err() && calls.0.lock().early.is_empty());
    }
}
