//! ASK-04: tools that wait for the answer of a person within their calls.

use std::collections::HashSet;
use std::fs;
use std::future::poll_fn;
use std::num::NonZero;
use std::path::Path;
use std::pin::pin;
use std::time::Duration;

use conformance_extensions::asking::{AroundInside, Questioning};
use conformance_extensions::tools_ask_live::ToolsAskLive;
use goondan::agent::{AgentBuilder, LiveQuestion, LiveQuestions, LiveUpdate, LocalRouter, Policy};
use goondan::conversation::Timestamp;
use goondan::decision::{AnswerKind, Decision};
use goondan::event::AgentEvent;
use goondan::middleware::{FinishReason, TurnResult};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Agent, ErrorCode, Instance, Map, Result, json};
use goondan_covers::{both_linkages, covers, interruptible};
use tempfile::TempDir;

use crate::asking::results;
use crate::linkage::Extended;
use crate::support::Log;

const GUESS: &str = "tools-ask-live__guess";
const ACT: &str = "tools-ask-live__act";

fn asks(log: &Log, tool: &str, how: &str) -> AgentBuilder {
    let call = ScriptItem::call(tool, json!({ "how": how })).when("^go").unwrap().repeat();
    let script = [call, ScriptItem::say("done").repeat()];
    Agent::builder("assistant").model(ScriptedModel::new(script)).with::<ToolsAskLive>(json!({ "log": log }))
}

/// Runs a turn, and lets `front_end` act meanwhile, which ends with it.
#[interruptible]
async fn with_front_end(
    instance: &Instance,
    event: impl Into<AgentEvent>,
    front_end: impl Future<Output = ()>,
) -> Result<TurnResult> {
    let (mut turn, mut front_end) = (pin!(instance.run(event)), pin!(front_end));
    let mut is_done = false;
    poll_fn(|cx| {
        if !is_done {
            is_done = front_end.as_mut().poll(cx).is_ready();
        }
        turn.as_mut().poll(cx)
    })
    .await
}

async fn asked(questions: &mut LiveQuestions) -> LiveQuestion {
    match questions.next().await {
        LiveUpdate::Asked(question) => question,
        other => panic!("{other:?}"),
    }
}

async fn gone(questions: &mut LiveQuestions) -> LiveQuestion {
    match questions.next().await {
        LiveUpdate::Gone(question) => question,
        other => panic!("{other:?}"),
    }
}

fn says(question: &LiveQuestion, value: &str) -> Decision {
    Decision::new(question.wait().call.clone(), value)
}

/// Returns the result of the only call.
async fn result(instance: &Instance) -> String {
    results(instance).await.remove(0).1
}

/// A policy of turns of so many seconds.
fn turns_of(seconds: u64) -> Policy {
    let mut policy = Policy::default();
    policy.turn_timeout = Duration::from_secs(seconds);
    policy
}

/// Longer than any deadline of the tool.
async fn long() {
    tokio::time::sleep(Duration::from_secs(500)).await;
}

#[both_linkages(start_paused = true)]
#[covers("ASK-04", "ASK-02")]
async fn a_handler_waits_for_the_answer_and_no_deadline_passes_meanwhile() {
    let log = Log::new();
    let agent = asks(&log, GUESS, "side").policy(turns_of(3)).build().unwrap();
    let mut questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    let turn = with_front_end(&instance, "go", async {
        let question = asked(&mut questions).await;
        let wait = question.wait();
        assert_eq!((wait.tool.as_str(), wait.presentation.line.as_str()), (GUESS, "asks, side"));
        assert_eq!(wait.args, *json!({ "how": "side" }).as_object().unwrap());
        assert!(matches!(wait.questions[0].question.kind(), AnswerKind::Choose(_)));
        assert_eq!(wait.expires.unwrap().since(wait.since).as_secs(), 600);
        assert_eq!(question.agents().iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["assistant"]);
        long().await;
        let code = |decision| question.decide(decision).unwrap_err().code().clone();
        assert_eq!(code(says(&question, "edge")), ErrorCode::DECISION_INVALID);
        assert_eq!(code(says(&question, "heads").with_args(Map::new())), ErrorCode::DECISION_INVALID);
        assert_eq!(code(Decision::new("other", "heads")), ErrorCode::NOT_WAITING);
        question.decide(says(&question, "heads")).unwrap();
        let error = question.decide(says(&question, "tails")).unwrap_err();
        assert_eq!(*error.code(), ErrorCode::DECISION_TAKEN);
        assert!(error.details()["decision"].as_str().unwrap().contains("heads"));
        assert_eq!(gone(&mut questions).await.id(), question.id());
    });
    assert_eq!(turn.await.unwrap().text(), "done");
    assert_eq!(
        (log.take(), result(&instance).await),
        (vec!["runs".to_owned(), "got heads".to_owned()], "heads".to_owned())
    );
    instance.close().await.unwrap();
}

#[both_linkages(start_paused = true)]
#[covers("ASK-04")]
async fn a_tool_that_works_too_long_after_the_answer_is_stopped() {
    let log = Log::new();
    let agent = asks(&log, GUESS, "and works").build().unwrap();
    let mut questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    let turn = with_front_end(&instance, "go", async {
        let question = asked(&mut questions).await;
        long().await;
        question.decide(says(&question, "heads")).unwrap();
    });
    turn.await.unwrap();
    assert!(result(&instance).await.contains("E_TOOL_TIMEOUT"), "{}", result(&instance).await);
    instance.close().await.unwrap();
}

#[both_linkages(start_paused = true)]
#[covers("ASK-04")]
async fn a_question_that_is_not_answered_is_told_to_the_handler() {
    let rejected = "E_TOOL_REJECTED: not now";
    for (how, answer, expected) in [
        ("side", Some(None), rejected),
        ("expires", None, "E_NOT_ANSWERED"),
        ("or tails", None, "E_NOT_ANSWERED"),
        ("as a number", Some(Some("heads")), "E_DECISION_INVALID"),
        ("badly", None, "E_SCHEMA_INVALID"),
        ("much", None, "E_TOOL_ASKS: the question is too large"),
        ("a file", None, "E_TOOL_ASKS: the address"),
    ] {
        let log = Log::new();
        let agent = asks(&log, GUESS, how).build().unwrap();
        let mut questions = agent.subscribe_questions();
        let instance = agent.instance("test").await.unwrap();
        let turn = with_front_end(&instance, "go", async {
            let question = asked(&mut questions).await;
            match answer {
                Some(Some(value)) => question.decide(says(&question, value)).unwrap(),
                Some(None) => question.decide(Decision::reject(question.wait().call.clone(), "not now")).unwrap(),
                None => {
                    gone(&mut questions).await;
                    let error = question.decide(says(&question, "heads")).unwrap_err();
                    assert_eq!(*error.code(), ErrorCode::NOT_WAITING);
                }
            }
        });
        turn.await.unwrap();
        assert!(result(&instance).await.contains(expected), "{how}: {}", result(&instance).await);
        instance.close().await.unwrap();
    }
}

/// Nothing waits where there is no person to ask, and there is none any more when the last subscription ends.
#[both_linkages(start_paused = true)]
#[covers("ASK-04")]
async fn without_a_person_to_ask_the_question_has_its_default_at_once() {
    for leaves in [false, true] {
        for (how, expected) in
            [("side", "E_NOT_ANSWERED"), ("or tails", "tails"), ("or not", "E_TOOL_REJECTED: there is no person")]
        {
            let log = Log::new();
            let agent = asks(&log, GUESS, how).build().unwrap();
            let mut questions = leaves.then(|| agent.subscribe_questions());
            let instance = agent.instance("test").await.unwrap();
            let start = tokio::time::Instant::now();
            let turn = with_front_end(&instance, "go", async {
                if let Some(mut questions) = questions.take() {
                    asked(&mut questions).await;
                }
            });
            turn.await.unwrap();
            assert!(start.elapsed() < Duration::from_secs(1), "{how}");
            assert!(result(&instance).await.contains(expected), "{how}: {}", result(&instance).await);
            instance.close().await.unwrap();
        }
    }
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_handler_that_asks_without_saying_so_or_without_end_fails() {
    let log = Log::new();
    let agent = asks(&log, GUESS, "without end").build().unwrap();
    let mut questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    let mut count = 0;
    let turn = with_front_end(&instance, "go", async {
        loop {
            if let LiveUpdate::Asked(question) = questions.next().await {
                count += 1;
                question.decide(says(&question, "heads")).unwrap();
            }
        }
    });
    turn.await.unwrap();
    assert!(result(&instance).await.contains("asked 32 times"), "{}", result(&instance).await);
    assert_eq!(count, 32);
    instance.close().await.unwrap();

    let agent = asks(&log, "tools-ask-live__secretly", "").build().unwrap();
    let _questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    instance.run("go").await.unwrap();
    assert!(result(&instance).await.contains("its declaration does not say so"), "{}", result(&instance).await);
    instance.close().await.unwrap();
}

/// A dropped caller, a cancellation and a closed conversation withdraw the question; the call is then as its effect says.
#[both_linkages]
#[covers("ASK-04", "RESUME-01", "EFFECT-01")]
async fn a_question_is_lost_with_its_turn() {
    for tool in [GUESS, ACT] {
        for how in ["dropped", "cancelled", "a new opening"] {
            let (log, directory) = (Log::new(), TempDir::new().unwrap());
            let open = || asks(&log, tool, "side").store(FileStore::open(directory.path()).unwrap()).build().unwrap();
            let mut agent = open();
            let mut instance = agent.instance("test").await.unwrap();
            let mut questions = agent.subscribe_questions();
            let event = AgentEvent::input("go").with_id("e1");
            let question = {
                let (mut turn, mut front_end) = (pin!(instance.run(event.clone())), pin!(asked(&mut questions)));
                let asked = poll_fn(|cx| {
                    assert!(turn.as_mut().poll(cx).is_pending());
                    front_end.as_mut().poll(cx)
                });
                let question = asked.await;
                if how == "cancelled" {
                    instance.cancel(&event.id).await.unwrap();
                    assert_eq!(*turn.await.unwrap_err().code(), ErrorCode::TURN_CANCELLED);
                }
                question
            };
            assert_eq!(gone(&mut questions).await.id(), question.id(), "{how}");
            assert_eq!(*question.decide(says(&question, "heads")).unwrap_err().code(), ErrorCode::NOT_WAITING);
            if how == "cancelled" {
                instance.close().await.unwrap();
                continue;
            }
            if how == "a new opening" {
                instance.close().await.unwrap();
                agent = open();
                questions = agent.subscribe_questions();
                instance = agent.instance("test").await.unwrap();
            }
            let turn = with_front_end(&instance, event, async {
                let question = asked(&mut questions).await;
                question.decide(says(&question, "tails")).unwrap();
            });
            assert_eq!(turn.await.unwrap().text(), "done", "{how}");
            let (expected, lines) = match tool {
                GUESS => ("tails", vec!["runs", "runs", "got tails"]),
                _ => ("E_TOOL_OUTCOME_UNKNOWN", vec!["runs"]),
            };
            assert!(result(&instance).await.contains(expected), "{how}: {}", result(&instance).await);
            assert_eq!(log.take(), lines, "{how}");
            instance.close().await.unwrap();
        }
    }
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_secret_answer_is_in_no_message_and_no_file() {
    const CODE: &str = "open-sesame-4711";
    let (log, directory) = (Log::new(), TempDir::new().unwrap());
    let agent = asks(&log, GUESS, "secret").store(FileStore::open(directory.path()).unwrap()).build().unwrap();
    let mut questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    let turn = with_front_end(&instance, "go", async {
        let question = asked(&mut questions).await;
        question.decide(says(&question, CODE)).unwrap();
        let error = question.decide(says(&question, CODE)).unwrap_err();
        assert!(!format!("{error:?} {}", error.details()["decision"]).contains(CODE), "{error:?}");
    });
    turn.await.unwrap();
    assert_eq!(log.take(), ["runs", "got 16 characters"]);
    instance.close().await.unwrap();
    let files = files(directory.path());
    assert!(files.iter().any(|(_, content)| content.contains("16 characters")), "{files:?}");
    assert!(files.iter().all(|(_, content)| !content.contains(CODE)), "{files:?}");
}

fn files(directory: &Path) -> Vec<(String, String)> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let of = |path: std::path::PathBuf| match path.is_dir() {
        true => files(&path),
        false => vec![(path.display().to_string(), String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned())],
    };
    entries.flat_map(of).collect()
}

/// They come in their order, and answers in any order go to their calls.
#[both_linkages]
#[covers("ASK-04")]
async fn a_hundred_questions_are_open_at_once() {
    let log = Log::new();
    let script = [
        ScriptItem::calls((0..100).map(|number| (GUESS, json!({ "how": number.to_string() })))),
        ScriptItem::say("done"),
    ];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
    let mut policy = Policy::default();
    policy.max_parallel_calls = NonZero::new(100).unwrap();
    let agent = agent.with::<ToolsAskLive>(json!({ "log": log })).policy(policy).build().unwrap();
    let mut questions = agent.subscribe_questions();
    let instance = agent.instance("test").await.unwrap();
    let side = |number: usize| if number.is_multiple_of(3) { "heads" } else { "tails" };
    let turn = with_front_end(&instance, "go", async {
        let mut open = Vec::new();
        for number in 0..100 {
            let question = asked(&mut questions).await;
            assert_eq!(question.wait().args["how"], number.to_string());
            open.push(question);
        }
        let ids: HashSet<_> = open.iter().map(|question| question.id().clone()).collect();
        assert_eq!(ids.len(), 100);
        for (number, question) in open.iter().enumerate().rev() {
            question.decide(says(question, side(number))).unwrap();
        }
    });
    assert_eq!(turn.await.unwrap().text(), "done");
    let results = results(&instance).await;
    assert_eq!(results.len(), 100);
    for (number, (_, text)) in results.iter().enumerate() {
        assert_eq!(text, side(number), "{number}");
    }
    instance.close().await.unwrap();
}

/// Two agents behind one router: `boss` lets `worker` work.
fn pair(boss: AgentBuilder, worker: AgentBuilder) -> (Agent, Agent, LocalRouter) {
    let router = LocalRouter::new();
    let [boss, worker] = [boss, worker].map(|agent| agent.router(router.clone()).build().unwrap());
    router.add(&boss);
    router.add(&worker);
    (boss, worker, router)
}

fn boss(log: &Log, how: &str) -> AgentBuilder {
    let call = ScriptItem::call("tools-ask-live__delegate", json!({ "how": how }));
    let model = ScriptedModel::new([call, ScriptItem::say("reported")]);
    Agent::builder("boss").model(model).with::<ToolsAskLive>(json!({ "log": log }))
}

#[both_linkages(start_paused = true)]
#[covers("ASK-04", "AGENTS-04")]
async fn a_live_question_of_an_agent_that_is_asked_stops_the_deadlines_of_all_who_wait() {
    let log = Log::new();
    let call = ScriptItem::call(GUESS, json!({ "how": "side" }));
    let worker = Agent::builder("worker").model(ScriptedModel::new([call, ScriptItem::say("heads, they say")]));
    let worker = worker.with::<ToolsAskLive>(json!({ "log": log })).policy(turns_of(4));
    let (boss, worker, _router) = pair(boss(&log, "ask them").policy(turns_of(4)), worker);
    let mut questions = boss.subscribe_questions();
    questions.follow(&worker);
    let instance = boss.instance("user:1").await.unwrap();
    let turn = with_front_end(&instance, "go", async {
        let question = asked(&mut questions).await;
        assert_eq!(question.agents().iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["boss", "worker"]);
        assert_eq!(question.told().instance.as_str(), "user:1");
        long().await;
        question.decide(says(&question, "heads")).unwrap();
    });
    assert_eq!(turn.await.unwrap().text(), "reported");
    assert_eq!(result(&instance).await, "heads, they say");
}

/// How long its call may wait. Its caller waits no longer than for a live question.
const WEEK: Duration = Duration::from_secs(7 * 86_400);

/// A worker whose call waits for the decision of a layer.
fn suspended_worker(log: &Log) -> AgentBuilder {
    let script = [ScriptItem::call("questioning__act", json!({ "x": 7 })).repeat(), ScriptItem::say("acted").repeat()];
    let [call, say] = script;
    let model = ScriptedModel::new([call.when("^do it").unwrap(), say]);
    Agent::builder("worker")
        .model(model)
        .with::<Questioning>(json!({ "log": log, "asks": ["questioning__act"], "expiresMs": WEEK.as_millis() }))
        .with::<AroundInside>(json!({ "log": log, "how": "" }))
}

#[both_linkages(start_paused = true)]
#[covers("ASK-04", "ASK-01", "AGENTS-04")]
async fn the_decision_that_an_agent_waits_for_is_a_live_question_of_its_caller() {
    let approve = |question: &LiveQuestion| Decision::approve(question.wait().call.clone());
    for (name, expected) in
        [("yes", "acted"), ("no", "acted"), ("alone", "AGENT_SUSPENDED"), ("late", "AGENT_SUSPENDED")]
    {
        let log = Log::new();
        let (boss, worker, _router) = pair(boss(&log, "do it"), suspended_worker(&log));
        let mut questions = (name != "alone").then(|| {
            let mut questions = boss.subscribe_questions();
            questions.follow(&worker);
            questions
        });
        let instance = boss.instance("user:1").await.unwrap();
        let turn = with_front_end(&instance, "go", async {
            let Some(questions) = &mut questions else { return };
            let question = asked(questions).await;
            assert_eq!(question.wait().tool, "questioning__act");
            let left = question.wait().expires.unwrap().since(Timestamp::now());
            assert!(left <= Duration::from_secs(600), "{left:?}");
            assert_eq!(question.agents().iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["boss", "worker"]);
            match name {
                "yes" => {
                    long().await;
                    question.decide(approve(&question)).unwrap();
                }
                "no" => question.decide(Decision::reject(question.wait().call.clone(), "no")).unwrap(),
                _ => assert_eq!(gone(questions).await.id(), question.id()),
            }
        });
        assert_eq!(turn.await.unwrap().text(), "reported");
        let result = result(&instance).await;
        assert!(result.contains(expected), "{name}: {result}");
        let acts = log.take().iter().filter(|line| *line == "act 7").count();
        assert_eq!(acts, usize::from(name == "yes"), "{name}");
        // A call without a decision can still be decided there.
        let waits = worker.instance("user:1").await.unwrap().waits().await.unwrap();
        assert_eq!(waits.len(), usize::from(expected == "AGENT_SUSPENDED"), "{name}");
    }
}

/// Decided in the conversation of the other agent, or given up by the one that waits: the question is gone.
#[both_linkages(start_paused = true)]
#[covers("ASK-04", "ASK-01")]
async fn a_question_of_another_agent_is_gone_when_it_is_decided_there_or_not_waited_for() {
    for is_decided in [true, false] {
        let log = Log::new();
        let (boss, worker, _router) = pair(boss(&log, "do it"), suspended_worker(&log));
        let mut questions = boss.subscribe_questions();
        questions.follow(&worker);
        let instance = boss.instance("user:1").await.unwrap();
        let event = AgentEvent::input("go");
        let turn = with_front_end(&instance, event.clone(), async {
            let question = asked(&mut questions).await;
            if is_decided {
                let other = worker.instance("user:1").await.unwrap();
                let decision = Decision::approve(question.wait().call.clone());
                assert_eq!(other.decide([decision]).await.unwrap().finish_reason(), FinishReason::TextResponse);
            } else {
                instance.cancel(&event.id).await.unwrap();
            }
        });
        let turn = turn.await;
        match is_decided {
            true => {
                assert_eq!((turn.unwrap().text().as_ref(), result(&instance).await.as_str()), ("reported", "acted"))
            }
            false => assert_eq!(*turn.unwrap_err().code(), ErrorCode::TURN_CANCELLED),
        }
        gone(&mut questions).await;
        tokio::time::timeout(Duration::from_secs(5), questions.next()).await.unwrap_err();
    }
}
