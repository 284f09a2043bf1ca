//! Keys are in no error, although servers repeat them, and follow no redirect.

use goondan_core::{ErrorCode, Secret};
use goondan_models::wire::Anthropic;
use goondan_models::{ModelConfig, providers};
use serde_json::json;

use crate::support::{Asked, Played, Reply, Sent, Server, ask, config, told};

const KEY: &str = "sk-test-0123456789abcdef";

fn with_key(url: &str) -> ModelConfig {
    let mut config = config(url);
    config.api_key = Some(Secret::new(KEY));
    config.headers.insert("x-gateway".to_owned(), "gateway".to_owned());
    config
}

#[tokio::test]
async fn a_key_that_a_server_repeats_is_masked() {
    let body = json!({ "error": { "type": KEY, "message": format!("Incorrect API key provided: {KEY}.") } });
    let page = Reply::new("500 Oops", &format!("headers: x-api-key: {KEY}")).header("request-id", KEY);
    for reply in [Reply::json("401 Unauthorized", &body), page] {
        let server = Server::start([reply]).await;
        let model = with_key(server.url()).model(&providers::ANTHROPIC, Anthropic).unwrap();
        assert!(!format!("{model:?}").contains(KEY));
        let error = ask(&model).await.unwrap_err();
        assert_eq!(server.requests()[0].header("x-api-key"), Some(KEY));
        let shown = format!("{error} {error:?} {} {:?}", error.report(), error.details());
        assert!(!shown.contains(KEY) && shown.contains("***"), "{shown}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_key_that_a_server_repeats_is_not_told_to_watchers() {
    let filler = "x".repeat(490);
    let body = json!({ "error": { "type": "rate_limit_error", "message": format!("{filler} {KEY}") } });
    let end = "data: {\"type\":\"message_start\",\"message\":{}}\n\ndata: {\"type\":\"message_stop\"}\n\n";
    let sent = Sent::to([Played::json(429, &body), Played::events(end)]);
    let mut config = with_key("http://127.0.0.1:9");
    config.retries.max = 2;
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap().with_transport(sent);
    let (_, told) = told(&model, &Asked::default()).await;
    assert_eq!(told, [format!("restart status 429: {filler} ***")], "the mask, and no part of the key");
}

#[tokio::test]
async fn a_key_follows_no_redirect() {
    let other = Server::start([Reply::new("200 OK", "")]).await;
    for status in ["301 Moved Permanently", "302 Found", "307 Temporary Redirect", "308 Permanent Redirect"] {
        let server = Server::start([Reply::new(status, "").header("location", other.url())]).await;
        let error = ask(&with_key(server.url()).model(&providers::ANTHROPIC, Anthropic).unwrap()).await.unwrap_err();
        assert_eq!(*error.code(), ErrorCode::MODEL_REQUEST, "{error}");
    }
    assert_eq!((other.connections(), other.requests().len()), (0, 0));
}

#[tokio::test]
async fn a_missing_key_is_told_before_anything_is_sent() {
    let server = Server::start([]).await;
    let mut config = with_key(server.url());
    config.api_key = None;
    let error = ask(&config.model(&providers::ANTHROPIC, Anthropic).unwrap()).await.unwrap_err();
    assert_eq!((error.code(), server.connections()), (&ErrorCode::MODEL_AUTH, 0));
}

#[test]
fn a_key_that_no_header_can_have_is_not_shown() {
    let mut config = with_key("http://127.0.0.1:9");
    config.api_key = Some(Secret::new("sk-test\nbroken-in-two"));
    let error = config.model(&providers::ANTHROPIC, Anthropic).unwrap_err();
    assert!(!format!("{error:?}").contains("broken"), "{error:?}");
}
