//! Every status that the description has, of every route.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use goondan::agent::AgentBuilder;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::{MemoryQueue, MemoryStore};
use goondan::{Agent, BoxFuture, Value, json};
use goondan_covers::covers;
use goondan_serve::{Limits, Service, Tokens};
use reqwest::{Method, RequestBuilder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::described::{DOCUMENT, check, path_of};
use crate::support::{Served, Shop};

/// A model that does what the newest message says.
struct Obedient;

impl Model for Obedient {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let newest = request.messages().last().unwrap().content.text().into_owned();
        Box::pin(async move {
            let answer = match newest.as_str() {
                "wait" => std::future::pending().await,
                "refund" => json!({ "toolCalls": [{ "id": "call-1", "name": "shop__refund", "args": {} }] }),
                _ => json!({ "text": "hi" }),
            };
            Ok(serde_json::from_value(answer)?)
        })
    }
}

fn agent() -> AgentBuilder {
    Agent::builder("assistant").model(Obedient).extension::<Shop>(json!({}))
}

type Seen = BTreeSet<(String, String, u16)>;

/// A service, and the statuses that it has answered with.
struct Asked<'s> {
    served: Served,
    seen: &'s mut Seen,
    /// The path of the turn that was asked for last.
    place: String,
}

impl<'s> Asked<'s> {
    async fn new(seen: &'s mut Seen, configure: impl FnOnce(Service) -> Service) -> Self {
        let configure = |service: Service| configure(service.queue(Arc::new(MemoryQueue::new())));
        Self {
            served: Served::with(agent(), Arc::new(MemoryStore::new()), configure).await,
            seen,
            place: String::new(),
        }
    }

    fn request(&self, method: &str, path: &str) -> RequestBuilder {
        let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
        self.served.client.request(method, format!("{}{path}", self.served.url))
    }

    /// Sends a request, and does not wait for the end of a stream.
    async fn send(&mut self, method: &str, path: &str, change: impl FnOnce(RequestBuilder) -> RequestBuilder) -> u16 {
        let response = change(self.request(method, path)).send().await.unwrap();
        let status = response.status().as_u16();
        if let Some(place) = response.headers().get("location") {
            place.to_str().unwrap().clone_into(&mut self.place);
        }
        let path = path.split('?').next().unwrap();
        let kind = response.headers().get("content-type").map(|kind| kind.to_str().unwrap().to_owned());
        let kind = kind.unwrap_or_default();
        let body = match kind.as_str() {
            "text/event-stream" => Value::String(String::new()),
            _ => {
                let text = response.text().await.unwrap();
                serde_json::from_str(&text).unwrap_or(Value::String(text))
            }
        };
        check(path, status, &kind, &body);
        let described = path_of(path).unwrap().0;
        self.seen.insert((described.to_owned(), method.to_owned(), status));
        status
    }

    async fn get(&mut self, path: &str) -> u16 {
        self.send("get", path, |request| request).await
    }

    async fn post(&mut self, path: &str, body: &Value) -> u16 {
        self.send("post", path, |request| request.body(body.to_string())).await
    }

    /// Runs a turn of the conversation `key`, up to its end or its place in it.
    async fn turn(&mut self, key: &str, input: &str) -> u16 {
        self.post(&at(key, "/turns"), &json!({ "input": input })).await
    }
}

fn at(key: &str, rest: &str) -> String {
    format!("/v1/agents/assistant/instances/{key}{rest}")
}

const UI: &str = "/v1/agents/assistant/ui";
const AG_UI: &str = "/v1/agents/assistant/ag-ui";

fn chat(id: &str, text: &str) -> Value {
    json!({ "id": id, "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": text }] }] })
}

fn run(thread: &str, text: &str) -> Value {
    json!({ "threadId": thread, "runId": "r", "messages": [{ "role": "user", "content": text }] })
}

/// The description's methods and paths, with names in place of what is in braces.
fn routes() -> Vec<(String, String)> {
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let named = |path: &str| {
        let path = path.replace("{agent}", "assistant").replace("{key}", "ada");
        path.replace("{event}", "none").replace("{id}", "ada")
    };
    let methods = |(path, operations): (&String, &Value)| {
        let methods: Vec<_> = operations.as_object().unwrap().keys().cloned().collect();
        let path = named(path);
        methods.into_iter().map(move |method| (method, path.clone()))
    };
    paths.iter().flat_map(methods).collect()
}

#[tokio::test]
#[covers("SERVE-01", "SERVE-02", "SERVE-03")]
async fn every_status_is_made() {
    let mut seen = Seen::new();
    closed(&mut seen).await;
    refused(&mut seen).await;
    answered(&mut seen).await;
    busy(&mut seen).await;
    draining(&mut seen).await;
    late(&mut seen);
    let mut described = Seen::new();
    for (path, operations) in DOCUMENT["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let statuses = operation["responses"].as_object().unwrap().keys();
            described.extend(statuses.map(|status| (path.clone(), method.clone(), status.parse().unwrap())));
        }
    }
    let never: Vec<_> = described.difference(&seen).collect();
    assert!(never.is_empty(), "described, and never seen: {never:?}");
}

/// 401 and 403.
async fn closed(seen: &mut Seen) {
    // Of `one`.
    let tokens = "ada: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
    let mut asked = Asked::new(seen, |service| service.tokens(Tokens::parse(tokens).unwrap())).await;
    for (method, path) in routes() {
        let is_open = ["/healthz", "/readyz", "/openapi.json"].contains(&path.as_str());
        let status = asked.send(&method, &path, |request| request).await;
        assert_eq!(status == 401, !is_open, "{path}");
        let foreign = |request: RequestBuilder| request.header("origin", "https://evil.example");
        let status = asked.send(&method, &path, foreign).await;
        assert_eq!(status == 403, !is_open, "{path}");
    }
}

/// Requests that cannot be understood, are too large, or name something that is not there.
async fn refused(seen: &mut Seen) {
    let mut asked = Asked::new(seen, |service| service).await;
    for (method, path) in routes() {
        if path.contains("assistant") {
            let unreadable = path.replace("assistant", "%ff");
            assert_eq!(asked.send(&method, &unreadable, |request| request).await, 400, "{unreadable}");
            let other = path.replace("assistant", "other");
            let body = if path.ends_with("decisions") { json!([]) } else { json!({ "input": "hi" }) };
            let body = match path.as_str() {
                UI => chat("ada", "hi"),
                AG_UI => run("ada", "hi"),
                _ => body,
            };
            assert_eq!(asked.send(&method, &other, |request| request.body(body.to_string())).await, 404, "{other}");
        }
        let has_body = DOCUMENT["paths"][path_of(&path).unwrap().0][&method].get("requestBody").is_some();
        if has_body {
            assert_eq!(asked.send(&method, &path, |request| request.body("{")).await, 400, "{path}");
            let large = vec![b' '; 9 << 20];
            assert_eq!(asked.send(&method, &path, |request| request.body(large)).await, 413, "{path}");
        }
    }
    assert_eq!(asked.get("/v1/agents/assistant/instances?limit=0").await, 400);
    assert_eq!(asked.get("/v1/agents/assistant/instances?status=no").await, 400);
    assert_eq!(asked.send("delete", &at("none", ""), |request| request).await, 404);
    asked.turn("ada", "hi").await;
    let keyed = |input: &str| {
        let body = json!({ "input": input, "wait": "result" }).to_string();
        move |request: RequestBuilder| request.header("idempotency-key", "k").body(body)
    };
    assert_eq!(asked.send("post", &at("ada", "/turns"), keyed("one")).await, 200);
    assert_eq!(asked.send("post", &at("ada", "/turns"), keyed("two")).await, 422);
    for (path, body) in [(UI, chat as fn(&str, &str) -> Value), (AG_UI, run)] {
        assert_eq!(asked.post(path, &body("bob", "one")).await, 200);
        assert_eq!(asked.post(path, &body("bob", "two")).await, 422);
    }
    assert_eq!(asked.post(&at("ada", "/decisions"), &json!([{ "call": "c" }])).await, 409);
    let part = json!({
        "type": "dynamic-tool", "toolCallId": "c", "state": "approval-responded", "approval": { "approved": true },
    });
    let decides = json!({ "id": "ada", "messages": [{ "id": "m", "role": "assistant", "parts": [part] }] });
    assert_eq!(asked.post(UI, &decides).await, 409);
    let mut resumes = run("ada", "hi");
    resumes["resume"] = json!([{ "interruptId": "c", "status": "resolved" }]);
    assert_eq!(asked.post(AG_UI, &resumes).await, 409);
}

/// Everything that goes well.
async fn answered(seen: &mut Seen) {
    let mut asked = Asked::new(seen, |service| service).await;
    for path in ["/healthz", "/readyz", "/openapi.json", "/v1/agents"] {
        assert_eq!(asked.get(path).await, 200);
    }
    assert_eq!(asked.turn("ada", "refund").await, 200);
    asked.served.until_ended().await;
    for rest in ["", "/messages", "/decisions", "/events"] {
        assert_eq!(asked.get(&at("ada", rest)).await, 200, "{rest}");
    }
    assert_eq!(asked.get("/v1/agents/assistant/instances?status=idle&limit=1").await, 200);
    assert_eq!(asked.post(&at("ada", "/decisions"), &json!([{ "call": "call-1" }])).await, 200);
    asked.served.until_ended().await;
    assert_eq!(asked.send("delete", &at("ada", ""), |request| request).await, 204);
    assert_eq!(asked.post(&at("bob", "/turns"), &json!({ "input": "hi", "wait": "result" })).await, 200);
    let place = asked.place.clone();
    assert_eq!(asked.get(&place).await, 200);
    assert_eq!(asked.get(&format!("{place}/events")).await, 200);
    let foreign = |request: RequestBuilder| request.header("last-event-id", "other:1:1");
    assert_eq!(asked.send("get", &format!("{place}/events"), foreign).await, 400);
    assert_eq!(asked.post(&format!("{place}/cancel"), &Value::Null).await, 200);
    assert_eq!(asked.post(&at("bob", "/turns"), &json!({ "input": "hi", "wait": "accepted" })).await, 202);
    assert_eq!(asked.get(&format!("{UI}/bob/stream")).await, 204);
    assert_eq!(asked.post(&format!("{UI}/bob/cancel"), &Value::Null).await, 200);
    assert_eq!(asked.post(UI, &chat("eve", "wait")).await, 200);
    assert_eq!(asked.get(&format!("{UI}/eve/stream")).await, 200);
    assert_eq!(asked.send("delete", &at("eve", ""), |request| request).await, 409);
}

/// 429, and a turn that runs.
async fn busy(seen: &mut Seen) {
    let limits = Limits::default().turns(1);
    let mut asked = Asked::new(seen, |service| service.limits(limits)).await;
    assert_eq!(asked.turn("ada", "refund").await, 200);
    asked.served.until_ended().await;
    asked.turn("bob", "wait").await;
    let place = asked.place.clone();
    assert_eq!(asked.get(&place).await, 202);
    assert_eq!(asked.turn("eve", "hi").await, 429);
    assert_eq!(asked.post(&at("ada", "/decisions"), &json!([{ "call": "call-1" }])).await, 429);
    assert_eq!(asked.post(UI, &chat("eve", "hi")).await, 429);
    assert_eq!(asked.post(AG_UI, &run("eve", "hi")).await, 429);
}

/// 503.
async fn draining(seen: &mut Seen) {
    let mut asked = Asked::new(seen, |service| service).await;
    assert_eq!(asked.turn("ada", "refund").await, 200);
    asked.served.until_ended().await;
    asked.turn("bob", "wait").await;
    let place = asked.place.clone();
    asked.served.service.drain(Duration::ZERO).await;
    for path in ["/readyz", &at("ada", "/events"), &place] {
        assert_eq!(asked.get(path).await, 503, "{path}");
    }
    assert_eq!(asked.turn("eve", "hi").await, 503);
    assert_eq!(asked.post(&at("ada", "/decisions"), &json!([{ "call": "call-1" }])).await, 503);
    assert_eq!(asked.post(UI, &chat("eve", "hi")).await, 503);
    assert_eq!(asked.post(AG_UI, &run("eve", "hi")).await, 503);
    // What is there can be read.
    assert_eq!(asked.get(&at("ada", "/messages")).await, 200);
}

/// 408, in a runtime whose clock goes as far as the next thing that waits for it.
fn late(seen: &mut Seen) {
    let paused = std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let mut seen = Seen::new();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let served = Served::new(agent()).await;
                let address = served.url.strip_prefix("http://").unwrap();
                for path in [at("ada", "/turns"), at("ada", "/decisions"), UI.to_owned(), AG_UI.to_owned()] {
                    let mut stream = TcpStream::connect(address).await.unwrap();
                    let head = format!("POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{{");
                    stream.write_all(head.as_bytes()).await.unwrap();
                    let mut answer = vec![0; 1 << 10];
                    let length = stream.read(&mut answer).await.unwrap();
                    let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
                    assert!(answer.starts_with("HTTP/1.1 408 ") && answer.contains("E_SERVE_REQUEST"), "{answer}");
                    seen.insert((path_of(&path).unwrap().0.to_owned(), "post".to_owned(), 408));
                }
            });
            seen
        });
        thread.join().unwrap()
    });
    seen.extend(paused);
}
