//! A front end that answers live questions while a call runs.

use std::future::poll_fn;
use std::pin::pin;

use goondan::Value;
use goondan::agent::{LiveQuestion, LiveQuestions, LiveUpdate};
use goondan::decision::{AnswerKind, Decision};

/// Lets a call run while `front_end` acts.
pub(crate) async fn with_front_end<T>(call: impl Future<Output = T>, front_end: impl Future<Output = ()>) -> T {
    let (mut call, mut front_end) = (pin!(call), pin!(front_end));
    let mut is_done = false;
    poll_fn(|cx| {
        if !is_done {
            is_done = front_end.as_mut().poll(cx).is_ready();
        }
        call.as_mut().poll(cx)
    })
    .await
}

/// Returns the next question.
pub(crate) async fn asked(questions: &mut LiveQuestions) -> LiveQuestion {
    loop {
        if let LiveUpdate::Asked(question) = questions.next().await {
            return question;
        }
    }
}

/// Answers with a value.
pub(crate) fn says(question: &LiveQuestion, value: impl Into<Value>) -> Decision {
    Decision::new(question.wait().call.clone(), value)
}

/// Returns the address that the next question lets the person open.
pub(crate) async fn address(questions: &mut LiveQuestions) -> (LiveQuestion, String) {
    let question = asked(questions).await;
    let AnswerKind::Address(url) = question.wait().questions[0].question.kind() else { panic!("{question:?}") };
    (question, url)
}
