//! What becomes of failures: their codes, what is repeated, and what watchers are told.

use std::time::Duration;

use bytes::Bytes;
use goondan_core::{Error, ErrorCode};
use goondan_covers::covers;
use goondan_models::wire::Anthropic;
use goondan_models::{HttpModel, ModelConfig, providers};
use goondan_runtime::{DeltaSink, ModelDelta};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::time::Instant;

use crate::support::{Asked, Played, Reply, Sent, Server, Step, ask, call, config, result, text, told};

/// The events of an answer with the text `Hello there.`, of which the last one is the end.
const EVENTS: [&str; 6] = [
    r#"{"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":1,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hello "}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"there."}}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
    r#"{"type":"message_stop"}"#,
];

/// Returns the first `count` events as a stream.
fn stream(count: usize) -> String {
    EVENTS[..count].iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn played(config: ModelConfig, responses: impl IntoIterator<Item = Played>) -> (HttpModel<Anthropic>, Sent) {
    let sent = Sent::to(responses);
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_transport(sent.clone());
    (model, sent)
}

fn patient() -> ModelConfig {
    let mut config = config("http://127.0.0.1:9");
    config.retries.max = 4;
    config
}

fn report(kind: &str, message: &str) -> Value {
    json!({ "type": "error", "error": { "type": kind, "message": message }, "request_id": "req_body" })
}

async fn error_of(response: Played) -> Error {
    let (model, _) = played(config("http://127.0.0.1:9"), [response]);
    ask(&model).await.unwrap_err()
}

#[tokio::test(start_paused = true)]
async fn each_status_and_report_has_its_code() {
    let code = |text: &str| ErrorCode::from(text.to_owned());
    for (status, kind, message, expected, retryable) in [
        (401, "authentication_error", "invalid x-api-key", "E_MODEL_AUTH", false),
        (403, "permission_error", "not for you", "E_MODEL_AUTH", false),
        (402, "billing_error", "pay", "E_MODEL_QUOTA", false),
        (400, "invalid_request_error", "Your credit balance is too low to access the API.", "E_MODEL_QUOTA", false),
        (429, "insufficient_quota", "You exceeded your current quota", "E_MODEL_QUOTA", false),
        (429, "rate_limit_error", "slow down", "E_MODEL_RATE_LIMIT", true),
        (500, "api_error", "oops", "E_MODEL_OVERLOADED", true),
        (502, "", "", "E_MODEL_OVERLOADED", true),
        (529, "overloaded_error", "Overloaded", "E_MODEL_OVERLOADED", true),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "E_MODEL_CONTEXT_OVERFLOW", false),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 1 + 2 > 2",
            "E_MODEL_CONTEXT_OVERFLOW",
            false,
        ),
        (413, "request_too_large", "too many bytes", "E_MODEL_CONTEXT_OVERFLOW", false),
        (404, "not_found_error", "model: nope", "E_MODEL_REQUEST", false),
        (400, "invalid_request_error", "max_tokens: must be positive", "E_MODEL_REQUEST", false),
    ] {
        let error = error_of(Played::json(status, &report(kind, message)).header("request-id", "req_head")).await;
        assert_eq!((error.code(), error.is_retryable()), (&code(expected), retryable), "{status} {kind}: {error}");
        assert!(error.message().contains(message) && error.message().contains("req_head"), "{error}");
        assert!(error.suggestion().is_some());
        let details = json!(error.details());
        assert_eq!(details["status"], status);
        assert_eq!(details["requestId"], "req_head");
        assert_eq!(details["attempts"], 1);
        assert_eq!(details["providerCode"], kind);
    }
}

#[tokio::test(start_paused = true)]
async fn reports_of_other_providers_are_understood() {
    for (status, body, expected) in [
        (
            400,
            json!({ "error": { "message": "The maximum context length is 8192.", "code": "context_length_exceeded" } }),
            "E_MODEL_CONTEXT_OVERFLOW",
        ),
        (
            400,
            json!([{ "error": { "code": 400, "message": "API key not valid.", "status": "INVALID_ARGUMENT" } }]),
            "E_MODEL_AUTH",
        ),
        (503, json!({ "error": { "code": 503, "message": "busy", "status": "UNAVAILABLE" } }), "E_MODEL_OVERLOADED"),
        (400, json!({ "error": "model `x` is unknown" }), "E_MODEL_REQUEST"),
        (422, json!({ "detail": "no such thing" }), "E_MODEL_REQUEST"),
        (200, json!({ "error": { "code": 429, "message": "upstream", "type": "provider" } }), "E_MODEL_RATE_LIMIT"),
    ] {
        let error = error_of(Played::json(status, &body).header("content-type", "application/json")).await;
        assert_eq!(error.code().as_str(), expected, "{body}: {error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_limit_is_waited_for_and_hidden() {
    let limited = |header, value| Played::json(429, &report("rate_limit_error", "slow down")).header(header, value);
    for (response, wait) in [
        (limited("retry-after", "2"), 2000),
        (limited("retry-after-ms", "1500"), 1500),
        (
            limited("retry-after", "Sun, 06 Nov 1994 08:49:47 GMT").header("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
            10_000,
        ),
    ] {
        let (model, sent) = played(patient(), [response, Played::events(&stream(6))]);
        let start = Instant::now();
        let (answer, told) = told(&model, &Asked::default()).await;
        assert_eq!(answer.unwrap().to_text(), "Hello there.");
        let waited = start.elapsed();
        assert!((wait..wait + 10).contains(&(waited.as_millis() as u64)), "{waited:?} instead of {wait} ms");
        assert_eq!(told[..1], ["restart status 429: slow down"], "{told:?}");
        assert_eq!(sent.bodies().len(), 2);
    }
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_wants_no_wait_gets_the_least_one() {
    let limited = |value| Played::json(429, &report("rate_limit_error", "slow down")).header("retry-after", value);
    for value in ["0", "Sun, 06 Nov 1994 08:49:37 GMT"] {
        let (model, sent) = played(patient(), [limited(value), limited(value), Played::events(&stream(6))]);
        let start = Instant::now();
        assert_eq!(ask(&model).await.unwrap().to_text(), "Hello there.");
        let waited = start.elapsed().as_millis();
        assert!((500..=1010).contains(&waited), "{waited} ms");
        assert_eq!(sent.bodies().len(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_beyond_the_budget_is_not_begun() {
    let limited = Played::json(429, &report("rate_limit_error", "slow down")).header("retry-after", "7");
    let mut config = patient();
    config.retries.budget_ms = 9000;
    let (model, sent) = played(config, [limited]);
    let start = Instant::now();
    let error = ask(&model).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_RATE_LIMIT);
    assert_eq!((&error.details()["retryAfterMs"], &error.details()["attempts"]), (&json!(7000), &json!(2)));
    assert!(start.elapsed() < Duration::from_secs(8), "the second wait is not begun");
    assert_eq!((sent.bodies().len(), error.retry_delay()), (2, None));
}

#[tokio::test(start_paused = true)]
async fn waits_double_and_attempts_are_limited() {
    let (model, sent) = played(patient(), [Played::json(529, &report("overloaded_error", "Overloaded"))]);
    let start = Instant::now();
    let error = ask(&model).await.unwrap_err();
    assert_eq!((sent.bodies().len(), &error.details()["attempts"]), (4, &json!(4)));
    // Half a second, one and two, or as little as half of each.
    let waited = start.elapsed().as_millis();
    assert!((1750..=3510).contains(&waited), "{waited} ms");
}

#[tokio::test(start_paused = true)]
async fn what_cannot_help_is_not_repeated() {
    for status in [400, 401, 402, 404, 413] {
        let (model, sent) = played(patient(), [Played::json(status, &report("x", "no"))]);
        ask(&model).await.unwrap_err();
        assert_eq!(sent.bodies().len(), 1, "{status}");
    }
}

#[tokio::test(start_paused = true)]
#[covers("MODEL-02")]
async fn an_answer_that_breaks_is_asked_for_again_and_told_once_more() {
    let cut = Played::events(&stream(3));
    let broken = Played::events(&stream(3)).then(Step::Break);
    let reported = Played::events(&format!("{}data: {}\n\n", stream(3), report("overloaded_error", "Overloaded")));
    let untyped = Played::events(&format!("{}data: {{}}\n\n", stream(3)));
    let gateway = Played::events(&format!("{}data: {}\n\n", stream(3), json!({ "error": { "message": "upstream" } })));
    let unreadable = Played::events(&format!("{}data: {{oops\n\n", stream(3)));
    let silent = Played::events(&stream(3)).then(Step::Wait(Duration::from_secs(3600)));
    for (response, reason) in [
        (cut, "the answer ended before it was complete"),
        (broken, "the connection to the provider broke"),
        (reported, "Overloaded"),
        (gateway, "upstream"),
        (untyped, "the provider sent an event without a type"),
        (unreadable, "the provider sent an event that cannot be read"),
        (silent, "the provider sent nothing for 60s in the middle of the answer (`idleMs`)"),
    ] {
        let (model, _) = played(patient(), [response, Played::events(&stream(6))]);
        let (answer, told) = told(&model, &Asked::default()).await;
        assert_eq!(answer.unwrap().to_text(), "Hello there.", "{reason}");
        let restart = format!("restart {reason}");
        assert_eq!(told, ["0 text Hello ", &restart, "0 text Hello ", "0 text there."]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refused_signature_is_asked_again_once_without_reasoning() {
    let refused = || {
        Played::json(
            400,
            &report("invalid_request_error", "messages.1.content.0: Invalid `signature` in `thinking` block"),
        )
    };
    let provider = json!({ "api": "anthropic", "model": "m", "rest": { "signature": "stale" } });
    let asked = Asked::messages(json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [
            { "type": "reasoning", "text": "hm", "provider": provider },
            { "type": "text", "text": "b" },
        ] },
        { "role": "user", "content": "c" },
    ]));
    let (model, sent) = played(patient(), [refused(), Played::events(&stream(6))]);
    let (answer, _) = told(&model, &asked).await;
    assert_eq!(answer.unwrap().to_text(), "Hello there.");
    let types: Vec<_> = sent.bodies().iter().map(|body| body["messages"][1]["content"][0]["type"].clone()).collect();
    assert_eq!(types, ["thinking", "text"]);

    let (model, sent) = played(patient(), [refused()]);
    let (answer, _) = told(&model, &asked).await;
    assert_eq!((*answer.unwrap_err().code()).as_str(), "E_MODEL_REQUEST");
    assert_eq!(sent.bodies().len(), 2);

    // Without reasoning in it, the request cannot become another one.
    let (model, sent) = played(patient(), [refused()]);
    ask(&model).await.unwrap_err();
    assert_eq!(sent.bodies().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn reasoning_that_is_refused_because_other_models_called_tools_is_turned_off() {
    let message =
        "when `thinking` is enabled, a tool-loop continuation assistant turn must begin with a `thinking` block";
    let refused = Played::json(400, &report("invalid_request_error", message));
    let asked = Asked::messages(json!([
        { "role": "user", "content": "a" },
        { "role": "assistant", "content": [call("1", json!({}), None)] },
        result("1", text("done")),
        { "role": "assistant", "content": "b" },
        { "role": "user", "content": "c" },
    ]));
    let asked = asked.options(json!({ "reasoning": { "budgetTokens": 2048 } }));
    let (model, sent) = played(patient(), [refused, Played::events(&stream(6))]);
    let (answer, told) = told(&model, &asked).await;
    assert_eq!(answer.unwrap().to_text(), "Hello there.");
    assert_eq!(told[0], format!("restart status 400: {message}"));
    let thinking: Vec<_> = sent.bodies().iter().map(|body| body["thinking"]["type"].clone()).collect();
    assert_eq!(thinking, ["enabled", "disabled"]);
}

#[tokio::test(start_paused = true)]
async fn long_messages_of_providers_are_cut() {
    let long = format!("first line\n\u{1b}[31m{}", "x".repeat(5000));
    let error = error_of(Played::json(400, &report("x", &long))).await;
    let message = error.message().into_owned();
    assert!(message.contains("first line [31mxxx") && message.ends_with('…'), "{message}");
    assert!((500..600).contains(&message.chars().count()));
}

/// Asks a model at a server, whose failures are not repeated.
async fn at(server: &Server) -> goondan_core::Result<goondan_runtime::ModelResponse> {
    ask(&config(server.url()).model(&providers::ANTHROPIC, Anthropic).unwrap()).await
}

#[tokio::test]
async fn a_server_may_send_an_answer_in_any_form() {
    let whole = || Reply::events(&stream(6)).header("request-id", "req_7");
    for reply in [whole(), whole().in_pieces(1), whole().with_crlf(), whole().with_crlf().in_pieces(1)] {
        let server = Server::start([reply]).await;
        let answer = at(&server).await.unwrap();
        assert_eq!((&*answer.to_text(), answer.request_id.as_deref()), ("Hello there.", Some("req_7")));
        let request = server.requests().remove(0);
        assert_eq!(request.path, "/v1/messages");
        assert_eq!(request.header("x-api-key"), Some("key-for-tests-4711"));
        assert_eq!(request.header("anthropic-version"), Some("2023-06-01"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
        assert_eq!(request.body["stream"], true);
    }
}

#[tokio::test]
async fn a_connection_is_used_again_after_an_answer() {
    let server = Server::start([Reply::events(&stream(6))]).await;
    let model = config(server.url()).model(&providers::ANTHROPIC, Anthropic).unwrap();
    for _ in 0..3 {
        ask(&model).await.unwrap();
    }
    assert_eq!((server.requests().len(), server.connections()), (3, 1));
}

#[tokio::test]
async fn a_server_may_fail_in_any_way() {
    let html = Reply::new("200 OK", "<html>Sign in</html>").header("content-type", "text/html; charset=utf-8");
    let compressed = Reply::events("\u{1f}\u{8b}…").header("content-encoding", "gzip");
    let elsewhere = Reply::new("302 Found", "").header("location", "https://elsewhere.example/v1/messages");
    for (reply, code, message) in [
        (Reply::events(&stream(4)), "E_MODEL_NETWORK", "ended before it was complete"),
        (Reply::events(&stream(6)).cut(300), "E_MODEL_NETWORK", "ended before it was complete"),
        (Reply::events(&stream(4)).closed(), "E_MODEL_NETWORK", "connection to the provider broke"),
        (Reply::events(&stream(4)).reset(), "E_MODEL_NETWORK", "connection to the provider broke"),
        (Reply::new("502 Bad Gateway", "<html>nginx</html>"), "E_MODEL_OVERLOADED", "502 Bad Gateway"),
        (html, "E_MODEL_ANSWER", "sent `text/html` instead of a stream"),
        (compressed, "E_MODEL_ANSWER", "compressed its answer with `gzip`"),
        (Reply::events("data: not json\n\n"), "E_MODEL_ANSWER", "an event that cannot be read"),
        (
            Reply::events(&format!("data: {}", "x".repeat(1 << 16))).endless(),
            "E_MODEL_ANSWER",
            "more than 67108864 bytes (`answer.maxBytes`)",
        ),
        (elsewhere, "E_MODEL_REQUEST", "redirects the request to `elsewhere.example`"),
    ] {
        let server = Server::start([reply]).await;
        let error = at(&server).await.unwrap_err();
        assert_eq!(error.code().as_str(), code, "{error:?}");
        assert!(error.message().contains(message), "{error}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn nobody_listening_is_a_failure_of_the_network() {
    let url = Server::start([]).await.url().to_owned();
    let error = ask(&config(&url).model(&providers::ANTHROPIC, Anthropic).unwrap()).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_NETWORK);
    assert!(format!("{error:?}").contains("caused by"), "{error:?}");
}

#[tokio::test]
async fn a_server_without_tls_is_a_failure_of_the_network() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", listener.local_addr().unwrap());
    tokio::spawn(
        async move { listener.accept().await.unwrap().0.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await },
    );
    let error = ask(&config(&url).model(&providers::ANTHROPIC, Anthropic).unwrap()).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::MODEL_NETWORK, "{error:?}");
}

#[tokio::test]
async fn dropping_a_call_closes_the_connection() {
    let server = Server::start([Reply::events(&stream(3)).stalled()]).await;
    let model = config(server.url()).model(&providers::ANTHROPIC, Anthropic).unwrap();
    let begun = tokio::sync::Notify::new();
    let asked = Asked::default();
    let tell = |_: ModelDelta<'_>| begun.notify_one();
    let answer = asked.of(&model, DeltaSink::to(&tell));
    tokio::select! {
        answer = answer => panic!("an answer without an end: {answer:?}"),
        () = begun.notified() => {}
    }
    server.closed().await;
}

#[tokio::test]
async fn bytes_that_are_not_text_are_no_answer() {
    let (model, _) =
        played(config("http://127.0.0.1:9"), [Played::new(200, [Step::Bytes(Bytes::from_static(b"data: \xff\n\n"))])]);
    assert_eq!(*ask(&model).await.unwrap_err().code(), ErrorCode::MODEL_ANSWER);
}
