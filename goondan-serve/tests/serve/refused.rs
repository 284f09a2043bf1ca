//! Requests that are refused.

use std::sync::Arc;

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::{Agent, Value, json};
use goondan_covers::covers;
use goondan_serve::{Grant, Limits, Right, Service, Tokens};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::support::{Served, events, hello, json_of, paced};

fn agent() -> goondan::agent::AgentBuilder {
    Agent::builder("assistant").model(ScriptedModel::new([ScriptItem::say("hi").repeat()]))
}

async fn with_tokens() -> Served {
    // Of `one` and `two`.
    let tokens = "ada: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed\n\
                  bob: 3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3\n";
    let tokens = Tokens::parse(tokens).unwrap();
    Served::with(agent(), Arc::new(MemoryStore::new()), |service| service.tokens(tokens)).await
}

#[tokio::test]
#[covers("SERVE-03")]
async fn a_principal_has_a_token_and_conversations_of_its_own() {
    let served = with_tokens().await;
    let ask = async |key: &str, token: Option<&str>| {
        let request = served.client.post(served.at(key, "/turns")).body(hello().to_string());
        let request = token.into_iter().fold(request, |request, token| request.header("authorization", token));
        json_of(request.send().await.unwrap()).await
    };
    for token in [None, Some("Bearer three"), Some("one"), Some("Bearer "), Some("Basic one")] {
        let (status, problem) = ask("ada:x", token).await;
        assert_eq!((status, &problem["code"]), (401, &json!("E_SERVE_TOKEN")), "{token:?}");
    }
    assert_eq!(ask("ada:x", Some("Bearer one")).await.0, 200);
    for other in ["bob:x", "ada", "adam:x", "x", "..%2Fada:x", ":", "%00"] {
        assert_eq!(ask(other, Some("Bearer one")).await.0, 404, "{other}");
    }
    let get = async |path: &str, token: &str| {
        let request = served.client.get(format!("{}{path}", served.url)).header("authorization", token);
        json_of(request.send().await.unwrap()).await
    };
    let list = "/v1/agents/assistant/instances";
    assert_eq!(get(list, "Bearer one").await.1["instances"].as_array().unwrap().len(), 1);
    assert_eq!(get(list, "Bearer two").await.1["instances"], json!([]));
    assert_eq!(get(&format!("{list}/ada:x/messages"), "Bearer two").await.0, 404);
    assert_eq!(get(&format!("{list}/ada:x/messages"), "Bearer one").await.0, 200);
    for text in
        ["", "# nobody\n", "ada", "ada: 12", "a b: 7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed"]
    {
        assert_eq!(Tokens::parse(text).unwrap_err().code(), "E_SERVE_TOKENS", "{text}");
    }
}

#[tokio::test]
#[covers("SERVE-03")]
async fn pages_of_other_origins_send_nothing_and_other_names_mean_no_service() {
    let served = Served::new(agent()).await;
    let send = async |name: &'static str, value: &str| {
        let request = served.client.post(served.at("ada", "/turns")).header(name, value).body(hello().to_string());
        request.send().await.unwrap().status().as_u16()
    };
    for host in ["evil.example", "127.0.0.1.evil.example", "evil.example:80"] {
        assert_eq!(send("host", host).await, 403, "{host}");
    }
    for host in ["localhost:1", "127.0.0.1", "[::1]:80"] {
        assert_eq!(send("host", host).await, 200, "{host}");
    }
    for origin in ["https://evil.example", "null", "http://localhost:1"] {
        assert_eq!(send("origin", origin).await, 403, "{origin}");
    }
    assert_eq!(send("origin", &served.url).await, 200, "its own page");
    let allowed =
        Served::with(agent(), Arc::new(MemoryStore::new()), |it| it.allow_origin("https://app.example")).await;
    let preflight = allowed.client.request(reqwest::Method::OPTIONS, allowed.at("ada", "/turns"));
    let preflight = preflight.header("origin", "https://app.example").send().await.unwrap();
    assert_eq!(
        (preflight.status().as_u16(), &preflight.headers()["access-control-allow-origin"]),
        (204, &"https://app.example".parse::<reqwest::header::HeaderValue>().unwrap())
    );
    let request = allowed.client.post(allowed.at("ada", "/turns")).header("origin", "https://app.example");
    assert_eq!(request.body(hello().to_string()).send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn what_cannot_be_understood_is_refused_with_a_code() {
    let served = Served::new(agent()).await;
    let nested = format!("{}{}", "[".repeat(100), "]".repeat(100));
    let bodies: Vec<(Vec<u8>, u16, &str)> = vec![
        (b"".into(), 400, "E_SERVE_REQUEST"),
        (b"{".into(), 400, "E_SERVE_REQUEST"),
        (b"{\"input\": \"\xff\"}".into(), 400, "E_SERVE_REQUEST"),
        (b"{}".into(), 400, "E_SERVE_REQUEST"),
        (b"{\"input\": \"a\", \"content\": []}".into(), 400, "E_SERVE_REQUEST"),
        (b"{\"input\": \"a\", \"unknown\": 1}".into(), 400, "E_SERVE_REQUEST"),
        (b"{\"input\": \" \"}".into(), 400, "E_INPUT"),
        (format!("{{\"input\": \"a\", \"metadata\": {{ \"a\": {nested} }}}}").into(), 400, "E_VALUE_DEPTH"),
        (b"{\"input\": \"a\", \"answer\": { \"schema\": { \"type\": 7 } }}".into(), 400, "E_SCHEMA_INVALID"),
        (vec![b' '; 9 << 20], 413, "E_SERVE_REQUEST"),
    ];
    for (body, status, code) in bodies {
        let shown = String::from_utf8_lossy(&body[..body.len().min(40)]).into_owned();
        let response = served.client.post(served.at("ada", "/turns")).body(body).send().await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{shown}");
        let (found, problem) = json_of(response).await;
        assert_eq!((found, problem["code"].as_str()), (status, Some(code)), "{shown}: {problem}");
        assert!(problem["suggestion"].is_string() && problem["type"].is_string(), "{problem}");
    }
    assert_eq!(served.turn("ada", &hello(), Some(&"k".repeat(256))).await.status(), 400);
    let (status, problem) = served.post(&served.url.clone(), &Value::Null).await;
    assert_eq!((status, &problem["code"]), (404, &json!("E_SERVE_NOT_FOUND")));
    let (status, _) = served.get(&served.at("ada", "/turns")).await;
    assert_eq!(status, 405);
    let other = served.at("ada", "/turns").replace("assistant", "other");
    assert_eq!(served.post(&other, &hello()).await.0, 404);
    assert_eq!(served.get(&served.at("ada", "/turns/none")).await.0, 404);
    assert_eq!(served.get(&served.at("ada", "/turns/none/events")).await.0, 404);
    assert_eq!(served.turn(&"k".repeat(2000), &hello(), None).await.status(), 400);
}

#[tokio::test]
async fn more_turns_than_the_limit_are_refused_and_those_that_run_go_on() {
    let (agent, model) = paced();
    let limits = Limits::default().turns(2);
    let served = Served::with(agent, Arc::new(MemoryStore::new()), |service| service.limits(limits)).await;
    let mut one = served.turn("one", &hello(), None).await;
    let mut queued = served.turn("one", &hello(), None).await;
    let refused = served.turn("three", &hello(), None).await;
    assert_eq!(
        (refused.status().as_u16(), &refused.headers()["retry-after"]),
        (429, &"1".parse::<reqwest::header::HeaderValue>().unwrap())
    );
    model.let_through(8);
    for response in [&mut one, &mut queued] {
        assert!(events(response, usize::MAX).await.last().unwrap().json()["response"].is_string());
    }
    model.let_through(4);
    assert_eq!(served.turn("three", &hello(), None).await.status(), 200);
}

/// Sends bytes, and returns what comes back until the connection ends.
async fn raw(address: &str, bytes: &[u8]) -> String {
    let mut connection = TcpStream::connect(address).await.unwrap();
    // The other side may be gone before all is sent.
    let _ = connection.write_all(bytes).await;
    let mut answer = Vec::new();
    let _ = connection.read_to_end(&mut answer).await;
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn connections_that_say_nothing_or_nonsense_end() {
    let service = Service::new(agent().build().unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let server = tokio::spawn(goondan_serve::listen(listener, service.router(), async { _ = stopped.await }));
    let head = "POST /v1/agents/assistant/instances/ada/turns HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n";
    let many = format!("{head}x: {}\r\n\r\n", "y".repeat(1 << 20));
    for (bytes, status) in [
        (format!("{head}content-length: 2\r\n\r\n{{}}"), " 400 "),
        (format!("{head}transfer-encoding: chunked\r\n\r\n{}0\r\n\r\n", "1\r\n{\r\n".repeat(3)), " 400 "),
        (format!("{head}content-length: 99\r\ncontent-length: 2\r\n\r\n{{}}"), " 400 "),
        ("nonsense\r\n\r\n".to_owned(), " 400 "),
        (many, " 431 "),
    ] {
        let answer = raw(&address, bytes.as_bytes()).await;
        assert!(answer.lines().next().unwrap_or_default().contains(status), "{}: {answer}", &bytes[..20]);
    }
    // A whole request is answered while others are half done.
    let mut half = TcpStream::connect(&address).await.unwrap();
    half.write_all(head.as_bytes()).await.unwrap();
    let body = r#"{"input":"hello","wait":"result"}"#;
    let whole = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    assert!(raw(&address, whole.as_bytes()).await.contains("\"response\":\"hi\""));
    drop(half);
    drop(stop);
    server.await.unwrap();
    assert!(TcpStream::connect(&address).await.is_err(), "nothing is accepted any more");
}

#[tokio::test]
#[covers("SERVE-03")]
async fn a_token_is_good_for_what_it_was_given() {
    let digest = |token: &str| match token {
        "one" => "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed",
        _ => "3fc4ccfe745870e2c0d99f71f30ff0656c8dedd41cc1d7d3d376b0dbe685e2f3",
    };
    let support = Grant::new("support", digest("one")).unwrap().keys("*").rights([Right::Read, Right::Decide]);
    let other = Grant::new("bob", digest("two")).unwrap().keys("desk").agents(["other".parse().unwrap()]);
    let tokens = Tokens::from_iter([support, other]);
    let served = Served::with(agent(), Arc::new(MemoryStore::new()), |service| service.tokens(tokens)).await;
    let send = async |method: reqwest::Method, path: &str, token: &str, body: &Value| {
        let url = format!("{}{path}", served.url);
        let request = served.client.request(method, url).bearer_auth(token).body(body.to_string());
        json_of(request.send().await.unwrap()).await
    };
    let (get, post, delete) = (reqwest::Method::GET, reqwest::Method::POST, reqwest::Method::DELETE);
    let at = |key: &str, rest: &str| format!("/v1/agents/assistant/instances/{key}{rest}");
    let (status, problem) = send(post.clone(), &at("ada", "/turns"), "one", &hello()).await;
    assert_eq!((status, &problem["code"]), (403, &json!("E_SERVE_FORBIDDEN")), "{problem}");
    assert_eq!(send(delete, &at("ada", ""), "one", &Value::Null).await.0, 403);
    assert_eq!(send(get.clone(), &at("ada", "/messages"), "one", &Value::Null).await.0, 404, "it may look");
    assert_eq!(send(post.clone(), &at("ada", "/decisions"), "one", &json!([])).await.0, 404, "and decide");
    assert_eq!(send(get.clone(), "/v1/agents", "one", &Value::Null).await.1["agents"], json!(["assistant"]));
    assert_eq!(send(get, "/v1/agents", "two", &Value::Null).await.1["agents"], json!([]), "that of another agent");
    assert_eq!(send(post, &at("desk", "/turns"), "two", &hello()).await.0, 404);
    assert!(Grant::new("a b", digest("one")).is_err() && Grant::new("ada", "00").is_err());
}
