//! Random conversations, limits, failures, cancellations and restarts.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use fastrand::Rng;
use goondan::middleware::ToolRequest;
use goondan::model::ModelResponse;
use goondan::name::ToolCallId;
use goondan::testing::Chat;
use goondan::{Error, ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use super::support::{Answering, builder, is_paired, is_summary};

/// What a model does when it is asked.
#[derive(Clone, Copy, Debug)]
enum Reply {
    Say(usize),
    Call(usize),
    Fail,
    Overflow,
    /// The turn is cancelled while the model hangs.
    Hang,
}

/// One turn: its input, and what the models do. When a list is used up, the model answers.
#[derive(Debug)]
struct Turn {
    input: String,
    steps: VecDeque<Reply>,
    summaries: VecDeque<Reply>,
}

impl Turn {
    fn random(random: &mut Rng, number: usize) -> Self {
        let kind = random.choice(["pin", "old", "old pin", "new", "new"]).unwrap();
        let input = format!("{kind} {number} {}", "x".repeat(random.usize(..60)));
        let step = |random: &mut Rng| match random.u8(..20) {
            0..8 => Reply::Call(random.usize(1..4)),
            8 => Reply::Fail,
            9 => Reply::Overflow,
            10 => Reply::Hang,
            _ => Reply::Say(random.usize(..200)),
        };
        let summary = |random: &mut Rng| match random.u8(..10) {
            0 => Reply::Fail,
            1 => Reply::Say(0),
            2 => Reply::Overflow,
            3 => Reply::Hang,
            _ => Reply::Say(random.usize(1..300)),
        };
        let steps = (0..random.usize(..8)).map(|_| step(random)).collect();
        let summaries = (0..random.usize(..3)).map(|_| summary(random)).collect();
        Self { input, steps, summaries }
    }
}

fn config(random: &mut Rng) -> Value {
    let mut config = json!({
        "candidates": random.choice(["all", "marked"]),
        "moreThan": random.usize(..5),
        "maxMessages": random.usize(1..25),
        "maxCharacters": random.usize(1..1_500),
        "keepShare": random.choice([0.0, 0.3, 0.5, 0.9]),
        "retainLastMessages": random.usize(..8),
        "onFailure": random.choice(["keep", "count", "fail"]),
    });
    if random.bool() {
        config["place"] = json!(random.choice(["first", "end"]));
    }
    if random.bool() {
        config["maxTokens"] = json!(random.usize(1..500));
    }
    if random.bool() {
        config["summary"] = json!({ "model": "small", "maxCharacters": random.usize(1..300) });
    }
    config
}

/// A conversation whose models do what the running turn says.
struct Talk {
    chat: Chat,
    steps: Arc<Mutex<VecDeque<Reply>>>,
    summaries: Arc<Mutex<VecDeque<Reply>>>,
    hangs: Arc<Notify>,
}

impl Talk {
    async fn new(config: Value) -> Self {
        let hangs = Arc::new(Notify::new());
        let (steps, summaries) = (Arc::default(), Arc::default());
        let (main, small) = (playing(&steps, &hangs), playing(&summaries, &hangs));
        let chat = builder(config).model(main).agent(|agent| agent.named_model("small", small)).start().await.unwrap();
        Self { chat, steps, summaries, hangs }
    }

    async fn run(&self, turn: &Turn) {
        *self.steps.lock().unwrap() = turn.steps.clone();
        *self.summaries.lock().unwrap() = turn.summaries.clone();
        tokio::select! {
            // A turn that fails is a case too.
            _ = self.chat.say(turn.input.as_str()) => {}
            () = self.hangs.notified() => {}
        }
    }

    /// Returns what the model was sent, without ids.
    fn requests(&self) -> Vec<Vec<String>> {
        self.chat.requests().iter().map(|request| request.transcript()).collect()
    }
}

fn playing(replies: &Arc<Mutex<VecDeque<Reply>>>, hangs: &Arc<Notify>) -> Answering {
    let (replies, hangs) = (Arc::clone(replies), Arc::clone(hangs));
    Answering::with(move |_| match replies.lock().unwrap().pop_front().unwrap_or(Reply::Say(2)) {
        Reply::Say(length) => Some(Ok(ModelResponse::text("a".repeat(length)))),
        Reply::Call(calls) => {
            let call = |_| ToolRequest::new(ToolCallId::random(), "no__tool", json!({}));
            Some(Ok(ModelResponse::tool_calls((0..calls).map(call))))
        }
        Reply::Fail => Some(Err(Error::msg("out of order"))),
        Reply::Overflow => Some(Err(Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, "too long"))),
        Reply::Hang => {
            hangs.notify_one();
            None
        }
    })
}

/// Runs the same turns in two conversations, of which one is opened again before each turn.
///
/// Returns how many requests had a summary.
async fn check(seed: u64) -> usize {
    let mut random = Rng::with_seed(seed);
    let config = config(&mut random);
    let (stays, mut reopens) = (Talk::new(config.clone()).await, Talk::new(config.clone()).await);
    let mut pinned: Vec<String> = Vec::new();
    let mut with_summary = 0;
    for number in 0..random.usize(1..25) {
        let turn = Turn::random(&mut random, number);
        let before = stays.chat.requests().len();
        stays.run(&turn).await;
        reopens.chat.restart().await.unwrap();
        reopens.run(&turn).await;
        if turn.input.contains("pin") {
            pinned.push(format!("user: {}", turn.input));
        }
        for request in &stays.chat.requests()[before..] {
            let about = || format!("seed {seed}, {config}, {turn:?}, {request:#?}");
            assert!(is_paired(&request.messages), "a call or a result is alone: {}", about());
            let transcript = request.transcript();
            assert!(pinned.iter().all(|pinned| transcript.contains(pinned)), "a pinned message is gone: {}", about());
            let summaries = transcript.iter().filter(|line| is_summary(line)).count();
            assert!(summaries <= 1, "several summaries: {}", about());
            with_summary += summaries;
        }
        assert_eq!(stays.requests(), reopens.requests(), "seed {seed}, {config}, {turn:?}");
    }
    with_summary
}

#[both_linkages]
#[covers("PATTERN-COMPACT-01", "PATTERN-COMPACT-02", "PAIR-01")]
async fn whatever_happens_requests_are_whole_and_the_same_after_a_restart() {
    let mut with_summary = 0;
    for seed in 0..40 {
        with_summary += check(seed).await;
    }
    assert!(with_summary > 300, "only {with_summary} requests had a summary");
}
