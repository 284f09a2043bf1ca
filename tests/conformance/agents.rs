//! AGENTS: one agent asks another.

use std::sync::Arc;
use std::time::Duration;

use conformance_extensions::agents::{Asking, AskingItself, AskingOddly, AskingWithFiles, Receiving};
use goondan::agent::LocalRouter;
use goondan::conversation::{FilePart, Message, Part};
use goondan::event::{AgentEvent, Auth, Principal};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
use goondan::{Agent, BoxFuture, ErrorCode, Result, json};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::is_long_run;
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, SilentModel};

/// Builds two agents behind one router: `a` asks from this function, `b` answers.
async fn pair(log: &Log, from: &str, script: Vec<ScriptItem>) -> (Agent, Agent, LocalRouter) {
    let router = LocalRouter::new();
    let asking = json!({ "log": log, "target": "b", "from": from });
    let a = Agent::builder("a").model(ScriptedModel::new(script)).with::<Asking>(asking);
    let answer = ScriptedModel::new([ScriptItem::say("answer").repeat()]);
    let b = Agent::builder("b").model(answer).with::<Receiving>(json!({ "log": log }));
    let a = a.router(router.clone()).build().unwrap();
    let b = b.router(router.clone()).build().unwrap();
    router.add(&a);
    router.add(&b);
    (a, b, router)
}

fn event() -> AgentEvent {
    let mut event = AgentEvent::input("hello");
    event.trace_id = Some("0123456789abcdef0123456789abcdef".parse().unwrap());
    event.auth = Some(Auth::new(Principal::new("user", "ada")));
    event
}

#[both_linkages]
#[covers("AGENTS-01", "AGENTS-03", "AGENTS-06", "AGENTS-07")]
async fn a_request_runs_a_turn_of_the_other_agent_and_brings_its_answer() {
    for from in ["turn", "step"] {
        let log = Log::new();
        let (a, _b, _router) = pair(&log, from, vec![ScriptItem::say("done")]).await;
        a.instance("user:1").await.unwrap().run(event()).await.unwrap();
        let expected = "b user:1 \"question\" from agent a, callers [\"a\"], for Some(\"ada\"), metadata \
                        Some(String(\"asking\")), reply true";
        assert_eq!(log.take(), [expected, "0123456789abcdef0123456789abcdef", "received", "b: answer"]);
    }
}

#[both_linkages]
#[covers("DISPATCH-01")]
async fn a_tool_asks_in_the_same_way() {
    let log = Log::new();
    let script =
        vec![ScriptItem::call("asking__ask_tool", json!({})), ScriptItem::say("done").when("^answer$").unwrap()];
    let (a, _b, _router) = pair(&log, "none", script).await;
    assert_eq!(a.instance("user:1").await.unwrap().run("hello").await.unwrap().text(), "done");
    assert_eq!(log.take().len(), 3);
}

#[both_linkages]
#[covers("AGENTS-08")]
async fn a_notice_is_accepted_or_not_and_the_sender_does_not_wait() {
    let log = Log::new();
    let (a, b, _router) = pair(&log, "send", vec![ScriptItem::say("done")]).await;
    a.instance("user:1").await.unwrap().run("hello").await.unwrap();
    let before = log.take();
    assert!(before.contains(&"b accepted: true".to_owned()), "{before:?}");
    assert!(before.contains(&"nobody accepted: false".to_owned()), "{before:?}");
    // The input is behind the notice in the queue of the other instance.
    let instance = b.instance("user:1").await.unwrap();
    instance.run("after").await.unwrap();
    assert_eq!(instance.messages().await.unwrap()[0].text(), "notice");
}

#[both_linkages]
#[covers("AGENTS-05")]
async fn a_circle_is_refused_with_its_chain() {
    for (hop, expected) in [("a", "a -> b -> a"), ("c", "a -> b -> c -> a")] {
        let log = Log::new();
        let router = LocalRouter::new();
        let mut agents = Vec::new();
        for (name, target) in [("a", "b"), ("b", hop), ("c", "a")] {
            let model = ScriptedModel::new([ScriptItem::say("done").repeat()]);
            let config = json!({ "log": log, "target": target, "from": "turn" });
            let agent = Agent::builder(name).model(model).with::<Asking>(config).router(router.clone());
            let agent = agent.build().unwrap();
            router.add(&agent);
            agents.push(agent);
        }
        agents[0].instance("x").await.unwrap().run("hello").await.unwrap();
        let lines = log.take();
        assert!(lines[0].starts_with("CIRCULAR_CALL_DETECTED") && lines[0].ends_with(expected), "{lines:?}");
        router.close().await.unwrap();
    }
}

/// Lets the agent ask another one if it is told to go, and says something else.
struct Going;

impl Model for Going {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let last = request.messages().last().unwrap();
        let call = json!({ "id": "call", "name": "asking__ask_tool", "args": {} });
        let answer = match last.content.text() == "go" {
            true => json!({ "toolCalls": [call], "finishReason": "tool-calls" }),
            false => json!({ "text": json!(last.content).to_string(), "finishReason": "stop" }),
        };
        Box::pin(async { Ok(serde_json::from_value(answer)?) })
    }
}

#[both_linkages(start_paused = true)]
#[covers("AGENTS-05")]
async fn conversations_do_not_wait_for_one_another_in_a_circle() {
    let most = if is_long_run() { 1_000 } else { 100 };
    for count in [2, 3, most] {
        let (log, router) = (Log::new(), LocalRouter::new());
        let agent = |at: usize| {
            let target = format!("a{}", (at + 1) % count);
            let config = json!({ "log": log, "target": target, "from": "tool" });
            let agent = Agent::builder(format!("a{at}")).model(Going).with::<Asking>(config).router(router.clone());
            let agent = agent.build().unwrap();
            router.add(&agent);
            agent
        };
        let agents: Vec<_> = (0..count).map(agent).collect();
        // Twice: the second time shows that nothing of the first is left.
        for _ in 0..2 {
            let start = tokio::time::Instant::now();
            let mut turns = Vec::new();
            for agent in &agents {
                let instance = agent.instance("x").await.unwrap();
                turns.push(tokio::spawn(async move { instance.run("go").await }));
            }
            let mut refused = 0;
            for turn in turns {
                let text = turn.await.unwrap().unwrap().text().into_owned();
                match text.contains("CIRCULAR_CALL_DETECTED") {
                    true => refused += 1,
                    false => assert!(text.contains("question"), "{text}"),
                }
                if text.contains("CIRCULAR") && count == 2 {
                    assert!(text.contains("a0:x -> a1:x -> a0:x") || text.contains("a1:x -> a0:x -> a1:x"), "{text}");
                }
            }
            assert_eq!((refused, start.elapsed()), (1, Duration::ZERO), "{count}");
        }
    }
}

#[both_linkages]
async fn an_unknown_agent_is_named() {
    let log = Log::new();
    let router = LocalRouter::new();
    let config = json!({ "log": log, "target": "nobody", "from": "turn" });
    let model = ScriptedModel::new([ScriptItem::say("done")]);
    let a = Agent::builder("a").model(model).with::<Asking>(config).router(router.clone()).build().unwrap();
    router.add(&a);
    a.instance("x").await.unwrap().run("hello").await.unwrap();
    assert_eq!(log.take(), ["AGENT_NOT_FOUND there is no agent `nobody`"]);
}

#[both_linkages(start_paused = true)]
#[covers("AGENTS-04")]
async fn a_silent_agent_is_given_up_after_fifteen_seconds() {
    let log = Log::new();
    let (a, _b, router) = pair(&log, "turn", vec![ScriptItem::say("done")]).await;
    let asked = Arc::new(Notify::new());
    let b = Agent::builder("b").model(SilentModel(Arc::clone(&asked))).build().unwrap();
    router.add(&b);
    let start = tokio::time::Instant::now();
    a.instance("x").await.unwrap().run("hello").await.unwrap();
    let waited = start.elapsed();
    assert!(waited >= Duration::from_secs(15) && waited < Duration::from_secs(16), "{waited:?}");
    let lines = log.take();
    assert_eq!(lines, [format!("{} the agent `b` did not answer within 15s", ErrorCode::AGENT_REQUEST_TIMEOUT)]);
}

#[both_linkages]
async fn the_answer_to_an_asynchronous_request_arrives_before_a_later_step() {
    let log = Log::new();
    let (a, b, _router) = pair(&log, "later", vec![ScriptItem::say("one"), ScriptItem::say("two")]).await;
    let instance = a.instance("x").await.unwrap();
    instance.run("hello").await.unwrap();
    // `messages` waits for the queue: when the other agent's turn has ended, its answer is in the inbox.
    while b.instance("x").await.unwrap().messages().await.unwrap().len() < 2 {
        tokio::task::yield_now().await;
    }
    tokio::task::yield_now().await;
    let mut delivered = None;
    for _ in 0..100 {
        instance.run("again").await.ok();
        let messages = instance.messages().await.unwrap();
        delivered =
            messages.iter().find(|message| message.metadata().contains_key("__goondanInterAgentResponse")).cloned();
        if delivered.is_some() {
            break;
        }
        tokio::task::yield_now().await;
    }
    let message = delivered.unwrap();
    let metadata = &message.metadata()["__goondanInterAgentResponse"];
    assert_eq!(
        (&metadata["status"], &metadata["fromAgentId"], &metadata["async"]),
        (&json!("ok"), &json!("b"), &json!(true))
    );
    assert!(message.text().contains("answer"), "{}", message.text());
}

#[both_linkages]
async fn the_caller_is_not_listed_zero_is_the_default_timeout_and_a_blank_input_is_refused() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let a = Agent::builder("a").model(ScriptedModel::new([ScriptItem::say("done")]));
    let a = a.with::<AskingOddly>(log.config()).router(router.clone()).build().unwrap();
    let answer = || Agent::builder("b").model(ScriptedModel::new([ScriptItem::say("answer").repeat()]));
    let (b, c) = (answer().build().unwrap(), Agent::builder("c").model(ScriptedModel::new([])).build().unwrap());
    for agent in [&a, &b, &c] {
        router.add(agent);
    }
    a.instance("x").await.unwrap().run("hello").await.unwrap();
    let (refused, own) = ("E_INPUT the input is empty", "of its own: E_INPUT E_INPUT E_INPUT");
    assert_eq!(log.take(), [r#"others: ["b", "c"]"#, "answer", refused, refused, refused, own, "answer"]);
}

/// A model that draws a picture of the files that it is sent.
struct Drawing;

impl Model for Drawing {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let newest = request.messages().last().map(|message| message.content.parts().to_vec()).unwrap_or_default();
        let seen = newest.iter().map(|part| match part {
            Part::File(file) => file.label(),
            Part::Text(part) => part.text.clone(),
            part => panic!("{part:?}"),
        });
        let seen: Vec<_> = seen.collect();
        let mut answer = ModelResponse::text(format!("saw {}", seen.join(" and ")));
        answer.content.push(FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("out.png").into());
        Box::pin(async { Ok(answer) })
    }
}

#[both_linkages]
#[covers("D-40")]
async fn files_go_to_another_agent_and_come_back() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let a = Agent::builder("a").model(ScriptedModel::new([ScriptItem::say("done").repeat()]));
    let a = a.with::<AskingWithFiles>(log.config()).router(router.clone()).build().unwrap();
    let b = Agent::builder("b").model(Drawing).build().unwrap();
    router.add(&a);
    router.add(&b);
    let instance = a.instance("x").await.unwrap();
    let answer = loop {
        instance.run("hello").await.unwrap();
        let answers = [
            "saw look and [image/png in.png]: [\"[image/png out.png]\"]",
            "saw [image/png in.png]: [\"[image/png out.png]\"]",
            "E_INPUT",
        ];
        assert_eq!(log.take(), answers);
        let messages = instance.messages().await.unwrap();
        let is_answer = |message: &&_| Message::metadata(message).contains_key("__goondanInterAgentResponse");
        if let Some(answer) = messages.iter().map(|message| &**message).find(is_answer) {
            break answer.clone();
        }
    };
    let [Part::Text(text), Part::File(file)] = answer.content().parts() else { panic!("{answer:?}") };
    assert_eq!(text.text, "Answer of the agent `b`: saw later and [image/png in.png]");
    assert_eq!(file.label(), "[image/png out.png]");
}

#[both_linkages]
#[covers("AGENTS-05", "D-40")]
async fn an_agent_asks_itself_for_a_conversation_of_its_own_and_not_without_an_end() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let agent = Agent::builder("a").model(ScriptedModel::new([ScriptItem::say("done").repeat()]));
    let agent = agent.with::<AskingItself>(log.config()).router(router.clone()).build().unwrap();
    router.add(&agent);
    let instance = agent.instance("x").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    assert_eq!(log.take(), ["32 CIRCULAR_CALL_DETECTED CIRCULAR_CALL_DETECTED"]);
    assert_eq!(instance.messages().await.unwrap().len(), 2);
}
