//! The extension that gives tasks to several agents at once.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use goondan::agent::{LiveUpdate, LocalRouter};
use goondan::decision::Decision;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::testing::Chat;
use goondan::tool::Effect;
use goondan::{Agent, BoxFuture, Error, Result, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::call::{call, effects, refused};
use crate::linkage::WithPlugin;

const RUN: &str = "subagents__run";

/// A model that answers with its task in capitals, fails, panics or never ends if that says so, and takes a while.
#[derive(Clone, Default)]
struct Working {
    running: Arc<AtomicUsize>,
    most: Arc<AtomicUsize>,
    asked: Arc<Mutex<Vec<usize>>>,
}

impl Model for Working {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let messages: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
        self.asked.lock().unwrap().push(messages.len());
        Box::pin(async move {
            let running = self.running.fetch_add(1, Ordering::Relaxed) + 1;
            self.most.fetch_max(running, Ordering::Relaxed);
            let task = messages.last().cloned().unwrap_or_default();
            let seconds = if task.contains("slow") { 60 } else { 1 };
            tokio::time::sleep(Duration::from_secs(seconds)).await;
            self.running.fetch_sub(1, Ordering::Relaxed);
            assert!(!task.contains("panic"), "not this one");
            if task.contains("endless") {
                std::future::pending::<()>().await;
            }
            if task.contains("fail") {
                return Err(Error::new("E_TIRED", "too tired"));
            }
            Ok(serde_json::from_value(json!({ "text": task.to_uppercase(), "finishReason": "stop" }))?)
        })
    }
}

/// Opens a conversation with an agent that gives tasks to `worker`.
async fn beside(worker: &Working, config: Value) -> (Chat, Agent) {
    let router = LocalRouter::new();
    let worker = Agent::builder("worker").model(worker.clone()).router(router.clone()).build().unwrap();
    router.add(&worker);
    let to = router.clone();
    let mut whole = json!({ "agents": { "worker": "works" } });
    whole.as_object_mut().unwrap().extend(config.as_object().unwrap().clone());
    let chat = Chat::builder().agent(|agent| agent.plugin("subagents", "subagents", whole).router(to));
    let chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    router.add(chat.agent());
    (chat, worker)
}

fn tasks(texts: &[String]) -> Value {
    let tasks: Vec<_> = texts.iter().map(|text| json!({ "agent": "worker", "task": text })).collect();
    json!({ "tasks": tasks })
}

#[both_linkages(start_paused = true)]
#[covers("D-40")]
async fn tasks_run_at_once_and_their_results_keep_the_order() {
    let working = Working::default();
    let (mut chat, worker) = beside(&working, json!({ "atOnce": 16 })).await;
    assert_eq!(effects(&chat).await, [(RUN.to_owned(), Effect::Idempotent)]);
    let texts: Vec<_> =
        (0..64).map(|number| format!("{} {number}", if number == 3 { "slow" } else { "task" })).collect();
    let start = tokio::time::Instant::now();
    let answer = call(&mut chat, RUN, tasks(&texts)).await;
    assert_eq!(start.elapsed().as_secs(), 60, "the slow one delays nothing but the end");
    assert_eq!(working.most.load(Ordering::Relaxed), 16);
    let answers: Vec<_> = answer["results"].as_array().unwrap().iter().map(|done| done["answer"].clone()).collect();
    let expected: Vec<Value> = texts.iter().map(|text| text.to_uppercase().into()).collect();
    assert_eq!(answers, expected);
    // Each had a conversation of its own, and none is left.
    assert!(working.asked.lock().unwrap().iter().all(|messages| *messages == 1));
    assert!(worker.instance("main").await.unwrap().messages().await.unwrap().is_empty());
}

#[both_linkages(start_paused = true)]
async fn a_failure_is_that_of_its_task() {
    let (mut chat, _worker) = beside(&Working::default(), json!({})).await;
    let texts = ["one", "fail", "panic", "endless", "three"].map(str::to_owned);
    let answer = call(&mut chat, RUN, tasks(&texts)).await;
    let results = answer["results"].as_array().unwrap();
    let texts: Vec<_> = results.iter().filter_map(|result| result["answer"].as_str()).collect();
    assert_eq!(texts, ["ONE", "THREE"], "{answer}");
    for (at, expected) in [(1, "E_TIRED: too tired"), (2, "panicked"), (3, "E_MODEL_TIMEOUT")] {
        let error = results[at]["error"].as_str().unwrap();
        assert!(error.contains(expected), "{error}");
    }
}

#[both_linkages]
async fn tasks_are_for_agents_of_the_config_and_not_too_many() {
    let (mut chat, _worker) = beside(&Working::default(), json!({ "maxTasks": 2 })).await;
    let tools = chat.instance().tools().await.unwrap();
    let tool = tools.iter().find(|tool| tool.name.as_str() == RUN).unwrap();
    let description = tool.description.as_deref().unwrap();
    assert!(description.contains("The agents:\n- worker: works\n- general: does what you would do"), "{description}");
    for wrong in [
        json!({ "tasks": [] }),
        tasks(&["a".into(), "b".into(), "c".into()]),
        json!({ "tasks": [{ "agent": "boss", "task": "x" }] }),
        json!({ "tasks": [{ "agent": "worker", "task": "" }] }),
    ] {
        assert_eq!(refused(&mut chat, RUN, wrong).await.0, "E_TOOL_INVALID_ARGS");
    }
}

/// An agent that works on a task gives none itself, unless the config lets it.
#[both_linkages]
async fn tasks_are_not_given_on_deeper_than_the_config_says() {
    for (max_depth, expected) in [(1, "gives no tasks"), (2, "deep")] {
        let router = LocalRouter::new();
        let config = |agent: &str| json!({ "agents": { agent: "works" }, "maxDepth": max_depth });
        let call = |agent: &str| ScriptItem::call(RUN, json!({ "tasks": [{ "agent": agent, "task": "go" }] }));
        let say_result = ScriptItem::say("reported").repeat();
        let agent = |name: &str, target: &str| {
            let model = ScriptedModel::new([call(target), say_result.clone()]);
            let agent = Agent::builder(name).model(model).plugin("subagents", "subagents", config(target));
            let agent = agent.router(router.clone()).build().unwrap();
            router.add(&agent);
            agent
        };
        let (boss, clerk) = (agent("boss", "clerk"), agent("clerk", "worker"));
        let worker = Agent::builder("worker").model(ScriptedModel::new([ScriptItem::say("deep").repeat()]));
        let worker = worker.build().unwrap();
        router.add(&worker);
        let mut turns = clerk.subscribe_turns();
        boss.instance("x").await.unwrap().run("go").await.unwrap();
        let goondan::agent::BackgroundUpdate::Ended(turn) = turns.next().await.unwrap() else { panic!() };
        let calls = turn.outcome.as_ref().unwrap().tool_calls();
        let is_ok = calls[0].status == goondan::middleware::ToolCallStatus::Ok;
        assert_eq!(is_ok, max_depth == 2, "{expected}: {calls:?}");
    }
}

/// A model that gives a task to `general`, works on it by telling its tools, and repeats the result.
struct Looking;

impl Model for Looking {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let newest = request.messages().last().map(|message| message.content.text().into_owned()).unwrap_or_default();
        let tools: Vec<_> = request.tools().map(|tool| tool.name.as_str()).collect();
        let answer = match newest.as_str() {
            "go" => {
                let args = json!({ "tasks": [{ "agent": "general", "task": "look" }] });
                json!({ "toolCalls": [{ "id": "call", "name": RUN, "args": args }], "finishReason": "tool-calls" })
            }
            "look" => json!({ "text": tools.join(" "), "finishReason": "stop" }),
            result => json!({ "text": result, "finishReason": "stop" }),
        };
        Box::pin(async { Ok(serde_json::from_value(answer)?) })
    }
}

/// Returns what the agent says that works for itself.
async fn itself(general: &str) -> String {
    let router = LocalRouter::new();
    let agent = Agent::builder("boss").model(Looking).router(router.clone());
    let agent = agent.plugin("subagents", "subagents", json!({ "general": general }));
    let agent = agent.plugin("json-query", "json-query", json!({})).build().unwrap();
    router.add(&agent);
    let instance = agent.instance("x").await.unwrap();
    let text = instance.run("go").await.unwrap().text().into_owned();
    assert_eq!(instance.messages().await.unwrap().len(), 4, "{text}");
    text
}

#[both_linkages]
#[covers("D-40")]
async fn the_agent_itself_works_on_tasks_with_tools_that_only_read_or_with_all() {
    let reads = itself("reads").await;
    assert!(reads.contains("json-query__count") && !reads.contains(RUN), "{reads}");
    let acts = itself("acts").await;
    assert!(acts.contains("json-query__count") && acts.contains(RUN), "{acts}");
}

#[both_linkages]
async fn settings_without_an_agent_or_with_two_of_a_name_are_refused() {
    let refusal = async |config: Value| {
        let agent = Agent::builder("boss").model(Looking).plugin("subagents", "subagents", config).build().unwrap();
        agent.instance("x").await.err().unwrap().report().to_string()
    };
    let nobody = refusal(json!({ "general": "no" })).await;
    assert!(nobody.contains("there is no agent to give tasks to"), "{nobody}");
    let twice = refusal(json!({ "agents": { "general": "works" } })).await;
    assert!(twice.contains("set `general: no`"), "{twice}");
}

/// One of 64 tasks waits for a person: the others do not, and without a person it alone fails.
#[both_linkages(start_paused = true)]
#[covers("D-40", "ASK-01")]
async fn a_question_of_one_task_is_asked_with_its_agents_and_holds_up_no_other() {
    const REPLACE: &str = "text-transform__replace";
    for has_person in [true, false] {
        let router = LocalRouter::new();
        let args = json!({ "text": "a", "search": "a", "replacement": "A" });
        let script =
            [ScriptItem::call(REPLACE, args).when("^ask$").unwrap().repeat(), ScriptItem::say("done").repeat()];
        let worker = Agent::builder("worker").model(ScriptedModel::new(script)).router(router.clone());
        let worker = worker.plugin("approval", "approval", json!({})).one_of("basics", "text-transform", json!({}));
        let worker = worker.build().unwrap();
        let texts: Vec<_> = (0..64).map(|number| if number == 7 { "ask" } else { "work" }.to_owned()).collect();
        let script = [ScriptItem::call(RUN, tasks(&texts)), ScriptItem::say("reported")];
        let boss = Agent::builder("boss").model(ScriptedModel::new(script)).router(router.clone());
        let boss = boss.plugin("subagents", "subagents", json!({ "agents": { "worker": "works" } })).build().unwrap();
        router.add(&worker);
        router.add(&boss);
        let mut questions = has_person.then(|| {
            let mut questions = boss.subscribe_questions();
            questions.follow(&worker);
            questions
        });
        let instance = boss.instance("x").await.unwrap();
        let person = async {
            let Some(questions) = &mut questions else { return };
            let LiveUpdate::Asked(question) = questions.next().await else { panic!("a question") };
            assert_eq!(question.agents().iter().map(|it| it.as_str()).collect::<Vec<_>>(), ["boss", "worker"]);
            assert_eq!(question.wait().tool, REPLACE);
            tokio::time::sleep(Duration::from_secs(500)).await;
            question.decide(Decision::approve(question.wait().call.clone())).unwrap();
        };
        let (result, ()) = tokio::join!(instance.run("go"), person);
        assert_eq!(result.unwrap().text(), "reported");
        let told: Value = json::from_str(&instance.messages().await.unwrap()[2].text()).unwrap();
        for (number, done) in told["results"].as_array().unwrap().iter().enumerate() {
            match done["error"].as_str() {
                Some(error) => assert!(number == 7 && !has_person && error.contains("AGENT_SUSPENDED"), "{error}"),
                None => assert!(done["answer"] == "done" && (number != 7 || has_person), "{number}: {done}"),
            }
        }
    }
}
