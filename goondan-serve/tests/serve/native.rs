//! The native interface.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::{Agent, Value, json};
use goondan_covers::covers;

use crate::support::{Keeping, PIECES, Served, Shop, events, hello, paced, text_of};

fn scripted(script: Vec<ScriptItem>) -> goondan::agent::AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new(script))
}

/// Returns the path of the turn that a response is about.
fn place(served: &Served, response: &reqwest::Response) -> String {
    format!("{}{}", served.url, response.headers()["location"].to_str().unwrap())
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_turn_outlives_its_connection_and_is_watched_from_any_place() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let mut response = served.turn("ada", &hello(), None).await;
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let place = place(&served, &response);
    model.let_through(1);
    let mut seen = Vec::new();
    while text_of(&seen) != PIECES[0] {
        seen.extend(events(&mut response, 1).await);
    }
    // The client goes away.
    drop(response);
    assert_eq!(served.get(&place).await, (202, json!({ "status": "running" })));
    model.let_through(3);
    let last = seen.last().unwrap().id.clone();
    let watched = |last: String| {
        let request = served.client.get(format!("{place}/events"));
        let request = if last.is_empty() { request } else { request.header("last-event-id", last) };
        async move { request.send().await.unwrap() }
    };
    let rest = events(&mut watched(last.clone()).await, usize::MAX).await;
    assert_eq!(text_of(&rest), PIECES[1..].concat(), "from there on");
    let whole = events(&mut watched(String::new()).await, usize::MAX).await;
    assert_eq!(text_of(&whole), PIECES.concat());
    assert_eq!([&seen[..], &rest[..]].concat(), whole);
    let end = whole.last().unwrap().json();
    assert_eq!((&end["type"], &end["response"]), (&json!("turn"), &json!(PIECES.concat())));
    // Any place of the log: what was read before it and what follows are the whole.
    for (read, event) in whole.iter().enumerate() {
        let rest = events(&mut watched(event.id.clone()).await, usize::MAX).await;
        assert_eq!([&whole[..=read], &rest[..]].concat(), whole);
    }
    let (event, _) = last.rsplit_once(':').unwrap();
    let future = events(&mut watched(format!("{event}:9999")).await, usize::MAX).await;
    assert_eq!(future, whole, "a place that the log does not have");
    let (event, _) = event.rsplit_once(':').unwrap();
    let earlier = events(&mut watched(format!("{event}:0:3")).await, usize::MAX).await;
    assert_eq!(earlier, whole, "a place in the log of an earlier process");
    for foreign in ["other:0:1", "x", &format!("{event}:0"), &format!("{event}:0:x")] {
        assert_eq!(watched(foreign.to_owned()).await.status(), 400, "{foreign}");
    }
    assert_eq!(served.get(&place).await.0, 200);
    assert_eq!(model.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
#[covers("SERVE-02")]
async fn the_same_key_is_the_same_turn() {
    let (agent, model) = paced();
    let store = Arc::new(MemoryStore::new());
    let served = Served::with(agent, store.clone(), |service| service).await;
    let mut first = served.turn("ada", &hello(), Some("k")).await;
    let mut again = served.turn("ada", &hello(), Some("k")).await;
    let other = served.turn("ada", &json!({ "input": "bye" }), Some("k")).await;
    assert_eq!(other.status(), 422);
    model.let_through(4);
    let (first, again) = (events(&mut first, usize::MAX).await, events(&mut again, usize::MAX).await);
    assert_eq!(first, again);
    let after = served.turn("ada", &json!({ "input": "hello", "wait": "result" }), Some("k")).await;
    let (status, end) = crate::support::json_of(after).await;
    assert_eq!((status, &end["response"]), (200, &json!(PIECES.concat())));
    // After a restart.
    let (agent, later) = paced();
    let restarted = Served::with(agent, store, |service| service).await;
    let after = restarted.turn("ada", &json!({ "input": "hello", "wait": "result" }), Some("k")).await;
    let (status, end) = crate::support::json_of(after).await;
    assert_eq!((status, &end["response"]), (200, &json!(PIECES.concat())));
    assert_eq!(restarted.turn("ada", &json!({ "input": "bye" }), Some("k")).await.status(), 422);
    assert_eq!((model.asked.load(Ordering::SeqCst), later.asked.load(Ordering::SeqCst)), (1, 0));
    // The key of another conversation is another one.
    later.let_through(4);
    let (status, _) =
        crate::support::json_of(restarted.turn("bob", &json!({ "input": "hello", "wait": "result" }), Some("k")).await)
            .await;
    assert_eq!((status, later.asked.load(Ordering::SeqCst)), (200, 1));
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_turn_is_cancelled_once_and_others_go_on() {
    let (agent, model) = paced();
    let served = Served::new(agent).await;
    let mut response = served.turn("ada", &hello(), None).await;
    let place = place(&served, &response);
    model.let_through(1);
    events(&mut response, 1).await;
    let cancel = format!("{place}/cancel");
    assert_eq!(served.post(&cancel, &Value::Null).await, (200, json!({ "cancelled": true })));
    let end = events(&mut response, usize::MAX).await.last().unwrap().json();
    assert_eq!(end["error"]["code"], "E_TURN_CANCELLED");
    assert_eq!(served.post(&cancel, &Value::Null).await, (200, json!({ "cancelled": false })));
    let (status, end) = served.get(&place).await;
    assert_eq!((status, &end["error"]["code"]), (200, &json!("E_TURN_CANCELLED")));
}

#[tokio::test]
#[covers("SERVE-01", "ASK-01")]
async fn a_call_that_waits_is_decided_and_the_turn_goes_on() {
    let script = vec![ScriptItem::call("shop__refund", json!({})), ScriptItem::say("done")];
    let served = Served::new(scripted(script).extension::<Shop>(json!({}))).await;
    let (_, end) =
        crate::support::json_of(served.turn("ada", &json!({ "input": "refund", "wait": "result" }), None).await).await;
    assert_eq!(end["finishReason"], "suspended");
    let decisions = served.at("ada", "/decisions");
    let (_, waits) = served.get(&decisions).await;
    let call = waits[0]["call"].clone();
    assert_eq!(waits[0]["questions"][0]["question"]["text"], "Pay the money back?");
    let (status, problem) = served.post(&decisions, &json!([{ "call": "other" }])).await;
    assert_eq!((status, &problem["code"]), (409, &json!("E_NOT_WAITING")));
    let request = served.client.post(&decisions).body(json!([{ "call": call }]).to_string());
    let mut response = request.send().await.unwrap();
    let end = events(&mut response, usize::MAX).await.last().unwrap().json();
    assert_eq!((&end["response"], &end["toolCalls"][0]["status"]), (&json!("done"), &json!("ok")));
    assert_eq!(served.post(&decisions, &json!([{ "call": call }])).await.0, 409);
    let (_, messages) = served.get(&served.at("ada", "/messages")).await;
    assert_eq!(messages.as_array().unwrap().len(), 4);
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_turn_that_is_left_open_goes_on_in_the_next_process() {
    let (agent, model) = paced();
    let store = Arc::new(MemoryStore::new());
    let served = Served::with(agent, store.clone(), |service| service).await;
    let mut response = served.turn("ada", &hello(), Some("k")).await;
    let place = place(&served, &response);
    model.let_through(2);
    let mut seen = Vec::new();
    while text_of(&seen) != PIECES[..2].concat() {
        seen.extend(events(&mut response, 1).await);
    }
    assert!(!served.service.drain(Duration::ZERO).await, "it runs");
    let last = events(&mut response, usize::MAX).await;
    assert_eq!(last.last().unwrap().event, "handover");
    assert_eq!(served.turn("bob", &hello(), None).await.status(), 503);
    assert_eq!(served.get(&format!("{}/readyz", served.url)).await.0, 503);
    assert_eq!(served.get(&format!("{}/healthz", served.url)).await.0, 200);
    let path = place.strip_prefix(&served.url).unwrap().to_owned();
    drop(served);

    let (agent, later) = paced();
    let restarted = Served::with(agent, store, |service| service).await;
    assert_eq!(restarted.service.resume().await.unwrap(), 1);
    later.let_through(4);
    let request = restarted.client.get(format!("{}{path}/events", restarted.url));
    let request = request.header("last-event-id", &seen.last().unwrap().id);
    let events = events(&mut request.send().await.unwrap(), usize::MAX).await;
    assert_eq!(text_of(&events), PIECES.concat(), "the whole message once");
    assert_eq!(events.last().unwrap().json()["response"], PIECES.concat());
    let (_, messages) = restarted.get(&restarted.at("ada", "/messages")).await;
    assert_eq!(messages.as_array().unwrap().len(), 2, "one input, one answer");
}

#[tokio::test]
#[covers("SERVE-01")]
async fn conversations_are_listed_and_outcomes_known_without_a_log() {
    let store = Arc::new(MemoryStore::new());
    let script = || vec![ScriptItem::say("hi").repeat()];
    let served = Served::with(scripted(script()), store.clone(), |service| service).await;
    let mut places = Vec::new();
    for key in ["ada", "bob", "a%2Fb"] {
        let response = served.turn(key, &json!({ "input": "hello", "wait": "result" }), Some("k")).await;
        places.push(place(&served, &response));
    }
    let list = format!("{}/v1/agents/assistant/instances", served.url);
    let (_, all) = served.get(&list).await;
    let keys: Vec<_> = all["instances"].as_array().unwrap().iter().map(|it| it["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["a/b", "ada", "bob"]);
    let (_, page) = served.get(&format!("{list}?limit=1&after=a%2Fb")).await;
    assert_eq!((&page["instances"][0]["key"], &page["next"]), (&json!("ada"), &json!("ada")));
    assert_eq!(served.get(&format!("{list}?limit=0")).await.0, 400);
    assert_eq!(served.get(&format!("{}/v1/agents", served.url)).await.1, json!({ "agents": ["assistant"] }));
    let restarted = Served::with(scripted(script()), store, |service| service).await;
    for place in places {
        let path = place.strip_prefix(&served.url).unwrap();
        let (status, end) = restarted.get(&format!("{}{path}", restarted.url)).await;
        assert_eq!((status, &end["response"], &end["finishReason"]), (200, &json!("hi"), &json!("text_response")));
        let mut response = restarted.client.get(format!("{}{path}/events", restarted.url)).send().await.unwrap();
        let events = events(&mut response, usize::MAX).await;
        assert_eq!((events.len(), &events[0].json()["response"]), (1, &json!("hi")));
    }
}

#[tokio::test]
#[covers("SERVE-01", "VALUE-01")]
async fn a_value_is_the_answer_if_one_is_expected() {
    let served = Served::new(scripted(vec![ScriptItem::say("seven"), ScriptItem::say("7")])).await;
    let body = json!({ "input": "a number", "wait": "result", "answer": { "schema": { "type": "integer" } } });
    let (status, end) = crate::support::json_of(served.turn("ada", &body, None).await).await;
    assert_eq!((status, &end["value"], &end["steps"]), (200, &json!(7), &json!(2)));
}

#[tokio::test]
#[covers("SERVE-01", "ASK-02")]
async fn decisions_that_come_at_once_are_all_taken() {
    let calls = ScriptItem::calls([("shop__refund", json!({})), ("shop__refund", json!({}))]);
    let served = Served::new(scripted(vec![calls, ScriptItem::say("done")]).extension::<Shop>(json!({}))).await;
    served.turn("ada", &json!({ "input": "refund", "wait": "result" }), None).await;
    let decisions = served.at("ada", "/decisions");
    // The second call waits behind the first one, and is asked about then.
    let mut ends = Vec::new();
    for _ in 0..2 {
        let (_, waits) = served.get(&decisions).await;
        let asked = waits.as_array().unwrap().iter().filter(|wait| !wait["questions"].as_array().unwrap().is_empty());
        let posts: Vec<_> = asked
            .map(|wait| served.client.post(&decisions).body(json!([{ "call": wait["call"] }]).to_string()).send())
            .collect();
        for post in posts {
            let mut response = post.await.unwrap();
            assert_eq!(response.status(), 200);
            ends.push(events(&mut response, usize::MAX).await.last().unwrap().json());
        }
    }
    assert_eq!(ends.last().unwrap()["response"], "done", "{ends:?}");
}

#[tokio::test]
#[covers("SERVE-01", "MASK-01")]
async fn looking_makes_no_conversation_and_secrets_are_masked() {
    let secret = goondan::Secret::new("sesame-of-forty-robbers");
    let script = vec![ScriptItem::say("It is sesame-of-forty-robbers.").repeat()];
    let served = Served::new(scripted(script)).await;
    for rest in ["/messages", "/decisions"] {
        assert_eq!(served.get(&served.at("nobody", rest)).await.0, 404, "{rest}");
    }
    let list = format!("{}/v1/agents/assistant/instances", served.url);
    assert_eq!(served.get(&list).await.1["instances"], json!([]));
    let mut response = served.turn("ada", &json!({ "input": "Is it sesame-of-forty-robbers?" }), None).await;
    let streamed = format!("{:?}", events(&mut response, usize::MAX).await);
    let (_, end) =
        crate::support::json_of(served.turn("ada", &json!({ "input": "hi", "wait": "result" }), None).await).await;
    let (_, messages) = served.get(&served.at("ada", "/messages")).await;
    let chat = json!({ "id": "ada", "messages": [{ "id": "1", "role": "user", "parts": [{ "type": "text", "text": "hi" }] }] });
    let (_, ui) = served.post(&format!("{}/v1/agents/assistant/ui", served.url), &chat).await;
    let run = json!({ "threadId": "ada", "runId": "1", "messages": [{ "role": "user", "content": "hi" }] });
    let (_, ag_ui) = served.post(&format!("{}/v1/agents/assistant/ag-ui", served.url), &run).await;
    for shown in [streamed, end.to_string(), messages.to_string(), ui.to_string(), ag_ui.to_string()] {
        assert!(shown.contains("***") && !shown.contains("sesame"), "{shown}");
    }
    drop(secret);
}

#[tokio::test]
#[covers("SERVE-02", "ASK-01")]
async fn the_key_of_a_turn_that_waits_returns_what_it_waits_for() {
    let store = Arc::new(MemoryStore::new());
    let script = || vec![ScriptItem::call("shop__refund", json!({})), ScriptItem::say("done")];
    let agent = || scripted(script()).extension::<Shop>(json!({}));
    let served = Served::with(agent(), store.clone(), |service| service).await;
    let body = json!({ "input": "refund", "wait": "result" });
    let ask = async |served: &Served| crate::support::json_of(served.turn("ada", &body, Some("k")).await).await.1;
    let first = ask(&served).await;
    assert_eq!((&first["finishReason"], first["waits"].as_array().unwrap().len()), (&json!("suspended"), 1));
    assert_eq!(ask(&served).await, first);
    served.service.drain(Duration::ZERO).await;
    drop(served);
    // After a restart, too: no step is run.
    let restarted = Served::with(agent(), store, |service| service).await;
    assert_eq!(restarted.service.resume().await.unwrap(), 0, "it waits for a person");
    let again = ask(&restarted).await;
    assert_eq!((&again["waits"], &again["turnId"]), (&first["waits"], &first["turnId"]));
    // It is cancelled while it waits, once.
    let response = restarted.turn("ada", &body, Some("k")).await;
    let cancel = format!("{}/cancel", place(&restarted, &response));
    assert_eq!(restarted.post(&cancel, &Value::Null).await, (200, json!({ "cancelled": true })));
    assert_eq!(restarted.post(&cancel, &Value::Null).await, (200, json!({ "cancelled": false })));
    assert_eq!(restarted.get(&restarted.at("ada", "/decisions")).await.1, json!([]));
}

#[tokio::test]
#[covers("SERVE-01")]
async fn a_stream_begins_before_a_model_that_keeps_the_thread() {
    let (go_on, keeping) = Keeping::new();
    let served = Served::new(Agent::builder("assistant").model(keeping)).await;
    let address = served.url.trim_start_matches("http://").to_owned();
    let (path, body) = (served.at("ada", "/turns").replace(&served.url, ""), hello().to_string());
    let first = tokio::task::spawn_blocking(move || {
        let mut connection = TcpStream::connect(address).unwrap();
        let length = body.len();
        write!(connection, "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: {length}\r\n\r\n{body}")
            .unwrap();
        let mut lines = BufReader::new(connection).lines().map(Result::unwrap);
        let first = lines.find(|line| line.starts_with("data: ")).unwrap();
        go_on.send(()).unwrap();
        let last = lines.find(|line| line.contains("\"response\"")).unwrap();
        (first, last)
    });
    let (first, last) = first.await.unwrap();
    assert!(first.contains("turn.started"), "{first}");
    assert!(last.contains("It went on."), "{last}");
}
