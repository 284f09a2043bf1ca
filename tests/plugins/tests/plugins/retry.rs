//! PATTERN-RETRY: the extension `retry` with models that fail.

use std::sync::{Arc, Mutex};

use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::testing::Chat;
use goondan::{BoxFuture, Error, ErrorCode, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

/// A model that answers with its name, after some failures. It logs that it was asked.
struct Failing {
    name: &'static str,
    failures: Mutex<Vec<Error>>,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Model for Failing {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async {
            self.log.lock().unwrap().push(self.name);
            match self.failures.lock().unwrap().pop() {
                Some(failure) => Err(failure),
                None => Ok(ModelResponse::text(self.name)),
            }
        })
    }
}

/// Records the metadata of each step.
#[goondan::extension(name = "watch")]
mod watch {
    use goondan::prelude::*;

    #[middleware(step)]
    async fn look(ctx: &mut StepContext<'_>, next: Next<'_, Step>, api: &ExtensionApi) -> Result<StepResult> {
        api.events().emit("seen", (ctx.metadata(),));
        next.run(ctx).await
    }
}

fn busy() -> Error {
    Error::new(ErrorCode::MODEL_OVERLOADED, "too much to do").retryable(true)
}

/// A conversation, and the names of the models in the order in which they were asked.
struct Case {
    chat: Chat,
    log: Arc<Mutex<Vec<&'static str>>>,
}

impl Case {
    /// Begins a conversation whose own model and whose other model fail with these errors first.
    async fn with(mut config: Value, own: Vec<Error>, backup: Vec<Error>) -> Self {
        config["firstDelayMs"] = json!(4);
        let log = Arc::default();
        let model = |name, failures| Failing { name, failures: Mutex::new(failures), log: Arc::clone(&log) };
        let (own, backup) = (model("own", own), model("backup", backup));
        let chat = Chat::with::<watch::Extension>(json!({})).model(own);
        let chat = chat.agent(|agent| agent.named_model("backup", backup).plugin("retry", "retry", config));
        Self { chat: chat.start().await.unwrap(), log }
    }

    fn asked(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.log.lock().unwrap())
    }

    /// Returns this field of the lines in the log.
    fn logged(&self, field: &str) -> Vec<Value> {
        let lines = self.chat.logs().into_iter().filter(|line| line.extension.as_deref() == Some("retry"));
        lines.map(|line| line.fields[field].clone()).collect()
    }
}

fn failures(count: usize) -> Vec<Error> {
    std::iter::repeat_with(busy).take(count).collect()
}

#[both_linkages]
#[covers("PATTERN-RETRY-01", "PIPE-19")]
async fn a_step_is_run_again_three_times_with_growing_delays() {
    let case = Case::with(json!({}), failures(3), vec![]).await;
    assert_eq!(case.chat.say("hello").await.unwrap().text(), "own");
    assert_eq!(case.asked(), ["own"; 4]);
    assert_eq!(case.logged("attempt"), [json!(1), json!(2), json!(3)]);
    let delays: Vec<_> = case.logged("delayMs").iter().map(|delay| delay.as_u64().unwrap()).collect();
    assert!(
        (2..=4).contains(&delays[0]) && (4..=8).contains(&delays[1]) && (8..=16).contains(&delays[2]),
        "{delays:?}"
    );
    let seen: Vec<Value> = case.chat.events("seen").iter().map(|event| event.payload().unwrap()).collect();
    let attempts: Vec<_> = seen.iter().map(|metadata| metadata.get("attempt").cloned()).collect();
    assert_eq!(attempts, [None, Some(json!(1)), Some(json!(2)), Some(json!(3))]);
    assert_eq!(seen[3]["retry"]["waitedMs"], json!(delays.iter().sum::<u64>()));
    assert_eq!(case.chat.transcript().await, ["user: hello", "assistant: own"], "failures leave nothing behind");
}

#[both_linkages]
#[covers("PATTERN-RETRY-01", "NEXT-06")]
async fn after_the_last_retry_the_error_of_the_model_is_passed_on() {
    let case = Case::with(json!({}), failures(9), vec![]).await;
    let error = case.chat.say("hello").await.unwrap_err();
    assert_eq!((error.code(), &*error.message()), (&ErrorCode::MODEL_OVERLOADED, "too much to do"));
    assert_eq!(case.asked(), ["own"; 4]);
}

#[both_linkages]
async fn a_turn_has_a_budget_of_delays() {
    let case = Case::with(json!({ "budgetMs": 8 }), failures(9), vec![]).await;
    assert_eq!(case.chat.say("hello").await.unwrap_err().code(), &ErrorCode::MODEL_OVERLOADED);
    let delays: u64 = case.logged("delayMs").iter().filter_map(Value::as_u64).sum();
    assert!(delays <= 8 && case.asked().len() < 4, "{delays}");
}

#[both_linkages]
async fn what_the_adapter_has_repeated_already_is_not_repeated() {
    let case = Case::with(json!({}), vec![busy().with_detail("attempts", 4)], vec![]).await;
    assert_eq!(case.chat.say("hello").await.unwrap_err().details()["attempts"], 4);
    assert_eq!(case.asked(), ["own"]);
    let refused = Error::new(ErrorCode::MODEL_AUTH, "no").retryable(false);
    let case = Case::with(json!({}), vec![refused], vec![]).await;
    assert_eq!(case.chat.say("hello").await.unwrap_err().code(), &ErrorCode::MODEL_AUTH);
    assert_eq!(case.asked(), ["own"]);
}

#[both_linkages]
async fn another_model_is_asked_after_some_failures_until_the_turn_ends() {
    let other = |after: u32| json!({ "fallback": { "model": "Model/backup", "after": after } });
    let case = Case::with(other(2), failures(2), vec![busy()]).await;
    assert_eq!(case.chat.say("hello").await.unwrap().text(), "backup");
    assert_eq!(case.asked(), ["own", "own", "backup", "backup"]);
    assert_eq!(case.chat.say("again").await.unwrap().text(), "own", "a turn begins with the agent's own model");
    // At once, where waiting does not help.
    for detail in [("attempts", 4), ("retryAfterMs", 60_000)] {
        let case = Case::with(other(3), vec![busy().with_detail(detail.0, detail.1)], vec![]).await;
        assert_eq!(case.chat.say("hello").await.unwrap().text(), "backup");
        assert_eq!((case.asked(), case.logged("delayMs")), (vec!["own", "backup"], vec![json!(0)]));
    }
}

#[both_linkages]
async fn a_longer_delay_than_ten_seconds_is_refused() {
    let chat = Chat::builder().agent(|agent| agent.plugin("retry", "retry", json!({ "maxDelayMs": 10_001 })));
    let error = chat.start().await.err().unwrap();
    assert_eq!(error.code(), &ErrorCode::EXT_CONFIG, "{error}");
}
