//! EVENT: the bus of an instance.

use std::sync::{Arc, Mutex};

use goondan::prelude::*;
use goondan::{ExtensionCleanup, RepoAvailable, RuntimeEvent, ScriptItem, Subscription, Value, json};
use goondan_covers::covers;

use crate::support::{Log, LogConfig, agent, one_turn};

/// Emits what others listen to, before and after its turn.
struct Emitting {
    api: ExtensionApi,
}

#[goondan::extension(name = "emitting")]
impl Emitting {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    #[middleware(turn)]
    async fn emit(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.api.events().emit("news", ("first", 2, json!({ "third": true })));
        self.api
            .events()
            .emit("workspace.repoAvailable", (RepoAvailable { path: "/r".into(), remote: None, branch: None },));
        self.api.events().emit("workspace.other", ());
        let result = next.run(ctx).await?;
        self.api.events().emit("news", ());
        Ok(result)
    }
}

/// Logs what it hears.
struct Listening {
    log: Log,
    cancelled: Mutex<Option<Subscription>>,
    /// Kept, because a subscription ends when it is dropped.
    _kept: [Subscription; 2],
}

#[goondan::extension(name = "listening")]
impl Listening {
    #[init]
    fn new(api: ExtensionApi, config: LogConfig) -> Result<Self> {
        let write = |prefix: &'static str| {
            let log = config.log.clone();
            move |event: Event| {
                log.write(format!("{prefix} {}", event.name()));
                async { Ok(()) }
            }
        };
        let failing = api.events().on("news", |_: Event| async { Err(Error::msg("this handler always fails")) })?;
        api.events().on("turn.completed", |_: Event| async { panic!("this handler panics") })?.detach();
        let cancelled = api.events().on("news", write("cancelled"))?;
        Ok(Self {
            _kept: [api.events().once("news", write("once"))?, failing],
            cancelled: Mutex::new(Some(cancelled)),
            log: config.log,
        })
    }

    #[on("news")]
    async fn news(&self, event: &Event) -> Result<()> {
        self.log.write(format!("news {}", Value::Array(event.args().to_vec())));
        Ok(())
    }

    #[on("workspace.*")]
    async fn workspace(&self, event: &Event) -> Result<()> {
        let path = event.payload::<RepoAvailable>().map(|repo| repo.path);
        self.log.write(format!("glob {} {:?}", event.name(), path.ok()));
        Ok(())
    }

    #[on("turn.completed")]
    async fn completed(&self, event: &Event) -> Result<()> {
        let RuntimeEvent::TurnCompleted { step_count, .. } = event.payload()? else {
            return Err(Error::msg("another"));
        };
        self.log.write(format!("{step_count} steps"));
        if let Some(subscription) = self.cancelled.lock().unwrap().take() {
            subscription.cancel();
        }
        Ok(())
    }
}

#[tokio::test]
#[covers(
    "EVENT-01",
    "EVENT-05",
    "EVENT-06",
    "EVENT-07",
    "EVENT-08",
    "LEGACY-POINTS-07",
    "EVENT-03",
    "LEGACY-EVENTS-01",
    "LEGACY-EVENTS-02",
    "LEGACY-EVENTS-03",
    "LEGACY-EVENTS-05"
)]
async fn extensions_hear_one_another_and_the_runtime() {
    let log = Log::new("bus");
    let agent = agent([ScriptItem::say("hi").repeat()]);
    let agent = agent.extension::<Listening>(log.config()).extension::<Emitting>(json!({})).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    // Everything was handled before the turn was stored (D-18). Subscriptions do not wait for one another, so that only
    // the order within one is certain.
    let mut heard = log.take();
    heard.sort();
    assert_eq!(
        heard,
        [
            "1 steps",
            "cancelled news",
            "cancelled news",
            "glob workspace.other None",
            "glob workspace.repoAvailable Some(\"/r\")",
            "news [\"first\",2,{\"third\":true}]",
            "news []",
            "once news",
        ]
    );
    instance.run("again").await.unwrap();
    let heard = log.take();
    assert!(!heard.iter().any(|line| line.starts_with("cancelled") || line.starts_with("once")), "{heard:?}");
    assert_eq!(heard.len(), 5, "{heard:?}");
}

#[tokio::test]
#[covers("EVENT-02")]
async fn events_stay_inside_of_their_instance() {
    let log = Log::new("two instances");
    let quiet = agent([]).extension::<Listening>(log.config()).build().await.unwrap();
    let _quiet = quiet.instance("quiet").await.unwrap();
    one_turn(agent([ScriptItem::say("hi")]).extension::<Emitting>(json!({}))).await.unwrap();
    assert_eq!(log.take(), [""; 0]);
}

/// Keeps every runtime event.
struct Watching {
    log: Log,
}

#[goondan::extension(name = "watching")]
impl Watching {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    #[on("*")]
    async fn watch(&self, event: &Event) -> Result<()> {
        self.log.write(event.args().first().map(ToString::to_string).unwrap_or_default());
        Ok(())
    }

    #[cleanup]
    async fn close(&self) {
        self.log.write("cleaned up");
    }
}

#[tokio::test]
#[covers("EVENT-04")]
async fn the_runtime_tells_turns_steps_and_calls_in_one_trace() {
    let log = Log::new("runtime events");
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("done"), ScriptItem::fail("no", false)];
    let agent = agent(script).extension::<Watching>(log.config()).build().await.unwrap();
    let instance = agent.instance("user:1").await.unwrap();
    let turn = instance.run("hello").await.unwrap();
    let events: Vec<RuntimeEvent> = log.take().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<_> = events.iter().map(RuntimeEvent::name).collect();
    assert_eq!(
        names,
        [
            "turn.started",
            "step.started",
            "tool.completed",
            "step.completed",
            "step.started",
            "step.completed",
            "turn.completed",
        ]
    );
    let scopes: Vec<_> = events.iter().map(RuntimeEvent::scope).collect();
    for scope in &scopes {
        assert_eq!((scope.agent_name.as_str(), scope.instance_key.as_str()), ("assistant", "user:1"));
        assert_eq!((&scope.turn_id, &scope.trace_id), (turn.turn_id(), &scopes[0].trace_id));
    }
    // F-TRACE: the step lies in the turn, and the call in the step.
    assert_eq!(scopes[0].span.parent, None);
    assert_eq!(scopes[1].span.parent, Some(scopes[0].span.id));
    assert_eq!(scopes[2].span.parent, Some(scopes[1].span.id));
    assert_ne!(scopes[4].span.id, scopes[1].span.id);
    assert_eq!(scopes[6].span, scopes[0].span);

    instance.run("fail").await.unwrap_err();
    let events: Vec<RuntimeEvent> = log.take().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
    let names: Vec<_> = events.iter().map(RuntimeEvent::name).collect();
    assert_eq!(names, ["turn.started", "step.started", "step.failed", "turn.failed"]);
    let Some(RuntimeEvent::TurnFailed { error_message, .. }) = events.last() else { panic!("{events:?}") };
    assert_eq!(error_message, "no");
}

#[tokio::test]
#[covers("LOAD-11", "LEGACY-EVENTS-06")]
async fn extensions_are_told_that_they_go_away_and_clean_up() {
    let log = Log::new("cleanup");
    let agent = agent([]).extension::<Watching>(log.config()).build().await.unwrap();
    agent.instance("test").await.unwrap().close().await.unwrap();
    let lines = log.take();
    let told: ExtensionCleanup = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(told.extension, "watching");
    assert_eq!(lines[1..], ["cleaned up"]);
}

/// Answers only when its gate opens.
struct Gate(Arc<tokio::sync::Semaphore>);

/// Hears slowly.
struct SlowEars;

static GATES: Mutex<Vec<Gate>> = Mutex::new(Vec::new());

#[goondan::extension(name = "slow-ears")]
impl SlowEars {
    #[init]
    fn new() -> Self {
        Self
    }

    #[on("turn.started")]
    async fn hear(&self, _event: &Event) -> Result<()> {
        let gate = GATES.lock().unwrap().first().map(|gate| Arc::clone(&gate.0));
        if let Some(gate) = gate {
            gate.acquire().await?.forget();
        }
        Ok(())
    }
}

#[tokio::test]
async fn a_slow_handler_does_not_hold_up_the_steps_of_a_turn() {
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    GATES.lock().unwrap().push(Gate(Arc::clone(&gate)));
    let agent = agent([ScriptItem::say("hi")]).extension::<SlowEars>(json!({})).build().await.unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut turn = instance.run_stream("hello");
    let mut answered = false;
    while let Some(update) = turn.next().await {
        if update == goondan::TurnUpdate::Text("hi".to_owned()) {
            answered = true;
            gate.add_permits(1);
        }
    }
    assert!(answered, "the model answered while the handler waited");
    turn.finish().await.unwrap();
}
