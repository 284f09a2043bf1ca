//! Tokens are refreshed, and never lost by a failure that passes.

use goondan::json;
use goondan::testing::Chat;
use goondan_covers::both_linkages;

use super::server::{Server, browse};
use super::support::{ask, ask_all, ask_for, chat, code, page};

/// Opens a conversation whose user has signed in, with a token that has expired.
async fn expired(server: &Server) -> Chat {
    let mut chat = chat(server).await;
    server.set(|settings| settings.expires_in = 0);
    browse(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    server.set(|settings| settings.expires_in = 3600);
    chat
}

#[both_linkages]
async fn of_a_hundred_requests_one_refreshes_the_token() {
    let server = Server::start();
    let mut chat = expired(&server).await;
    let answers = ask_all(&mut chat, json!({ "app": "page", "times": 100 })).await;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer["kind"] == "Bearer"), "{answers:?}");
    assert_eq!(server.log(), ["authorization_code ok", "refresh_token ok"]);
    // The next one uses the refresh token that came with it.
    assert_eq!(ask(&mut chat, json!({ "app": "page", "refused": true })).await["kind"], "Bearer");
    assert_eq!((server.log().len(), server.logouts()), (3, 0));
}

#[both_linkages]
async fn a_token_that_was_refused_is_replaced_once() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let first = ask(&mut chat, json!({ "app": "service" })).await;
    let answers = ask_all(&mut chat, json!({ "app": "service", "refused": true, "times": 20 })).await;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer["kind"] == "Bearer"), "{answers:?}");
    assert_ne!(answers[0], first);
    assert_eq!(server.log().len(), 2);
}

#[both_linkages]
async fn a_failure_that_passes_removes_no_token() {
    let server = Server::start();
    let mut chat = expired(&server).await;
    for status in [500, 503, 429, 404] {
        server.set(|settings| settings.failing = Some(status));
        assert_eq!(code(&ask(&mut chat, json!({ "app": "page" })).await), "refreshFailed");
    }
    server.set(|settings| settings.failing = None);
    assert_eq!(ask(&mut chat, json!({ "app": "page" })).await["kind"], "Bearer");
    assert_eq!(server.logouts(), 0);
}

#[both_linkages]
async fn a_token_that_expires_soon_is_used_while_the_server_fails() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    server.set(|settings| settings.expires_in = 200);
    browse(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    let first = ask(&mut chat, json!({ "app": "page" })).await;
    assert_eq!(server.log(), ["authorization_code ok"], "a new one would not live longer");
    server.set(|settings| settings.failing = Some(500));
    assert_eq!(ask(&mut chat, json!({ "app": "page" })).await, first);
    assert_eq!(code(&ask(&mut chat, json!({ "app": "page", "refused": true })).await), "refreshFailed");
    assert_eq!(ask(&mut chat, json!({ "app": "page" })).await, first);
}

#[both_linkages]
async fn an_access_that_was_revoked_is_asked_for_again() {
    let server = Server::start();
    let mut chat = expired(&server).await;
    browse(&page(&ask_for(&chat, "ada", json!({ "app": "users" })).await)).await;
    let ada = ask_for(&chat, "ada", json!({ "app": "users" })).await;
    server.revoke();
    assert_eq!(code(&ask(&mut chat, json!({ "app": "page" })).await), "tokenRevoked");
    assert_eq!(ask_for(&chat, "ada", json!({ "app": "users" })).await, ada, "what was not used is kept");
    let url = page(&ask(&mut chat, json!({ "app": "page" })).await);
    assert_eq!(browse(&url).await.0, 200);
    assert_eq!(ask(&mut chat, json!({ "app": "page" })).await["kind"], "Bearer");
}
