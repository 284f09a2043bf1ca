//! What is asked and answered, with an app that needs no sign-in.

use goondan::Agent;
use goondan::json;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::testing::Chat;
use goondan_covers::{both_linkages, covers};

use super::server::{Server, browse};
use super::support::{ask, ask_all, ask_for, chat, chat_with, code, config, fingerprint, page};
use crate::linkage::WithPlugin;

#[both_linkages]
#[covers("LEGACY-OAUTH-01", "LEGACY-OAUTH-02", "LEGACY-OAUTH-05")]
async fn a_tool_and_a_middleware_of_another_extension_get_the_same_token() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let by_tool = ask(&mut chat, json!({ "app": "service", "scopes": ["read"] })).await;
    let by_middleware = ask_for(&chat, "42", json!({ "app": "service", "scopes": ["read"] })).await;
    assert_eq!(by_tool, by_middleware);
    let expected = json!({ "digest": fingerprint(&server.secrets()[0]), "scopes": ["read"], "kind": "Bearer" });
    assert_eq!(by_tool, expected);
    assert_eq!(server.log(), ["client_credentials ok"]);
    let by_tool = ask(&mut chat, json!({ "app": "service" })).await;
    assert_eq!(by_tool, ask_for(&chat, "42", json!({ "app": "service", "scopes": ["write", "read"] })).await);
    let expected =
        json!({ "digest": fingerprint(&server.secrets()[1]), "scopes": ["read", "write"], "kind": "Bearer" });
    assert_eq!(by_tool, expected);
    let granted: Vec<_> = chat.events("auth.granted").iter().map(|event| event.args()[0].clone()).collect();
    assert_eq!(granted, [json!({ "app": "service", "subject": "global", "scopes": ["read", "write"] })]);
    // It is kept.
    chat.restart().await.unwrap();
    assert_eq!(ask(&mut chat, json!({ "app": "service" })).await, expected);
    assert_eq!(server.log().len(), 2);
}

#[both_linkages]
#[covers("LEGACY-OAUTH-03")]
async fn what_is_out_of_scope_is_refused_for_a_tool_and_for_a_middleware() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let wanted = json!({ "app": "service", "scopes": ["read", "admin"] });
    let by_tool = ask(&mut chat, wanted.clone()).await;
    assert_eq!((code(&by_tool), &by_tool), ("scopeNotAllowed", &ask_for(&chat, "42", wanted).await));
    assert!(by_tool["message"].as_str().unwrap().contains("no scope `admin`"), "{by_tool}");
    assert_eq!(server.log(), [""; 0], "the server is not asked");
    // What the server grants may be less.
    server.set(|settings| settings.scope = Some("read"));
    assert_eq!(code(&ask(&mut chat, json!({ "app": "service", "scopes": ["write"] })).await), "scopeNotAllowed");
    assert_eq!(ask(&mut chat, json!({ "app": "service" })).await["scopes"], json!(["read"]));
}

#[both_linkages]
async fn who_asks_at_once_shares_one_request_and_its_failure() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    server.set(|settings| settings.failing = Some(503));
    let answers = ask_all(&mut chat, json!({ "app": "service", "times": 100 })).await;
    assert!(answers.len() == 100 && answers.iter().all(|answer| code(answer) == "refreshFailed"), "{answers:?}");
    let failures = server.log().len();
    assert!(failures < 100, "{failures} attempts");
    server.set(|settings| settings.failing = None);
    let answers = ask_all(&mut chat, json!({ "app": "service", "times": 100 })).await;
    assert!(answers.iter().all(|answer| *answer == answers[0] && answer["kind"] == "Bearer"), "{answers:?}");
    assert_eq!(server.log().len(), failures + 1);
}

#[both_linkages]
async fn what_cannot_be_asked_has_a_code() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    assert_eq!(code(&ask(&mut chat, json!({ "app": "nobody" })).await), "oauthAppNotFound");
    let no_user = ask(&mut chat, json!({ "app": "users" })).await;
    assert_eq!(code(&no_user), "subjectUnavailable");
    let mut wrong = config(&server);
    wrong["apps"]["service"]["clientSecret"] = json!("another secret");
    let mut chat = chat_with(wrong, |agent| agent).await;
    assert_eq!(code(&ask(&mut chat, json!({ "app": "service" })).await), "configurationError");
    let mut chat = chat_with(json!({}), |agent| agent).await;
    assert_eq!(code(&ask(&mut chat, json!({ "app": "service" })).await), "oauthAppNotFound");
    assert!(chat.logs().iter().any(|line| line.text.contains("no app is configured")));
}

#[tokio::test]
async fn a_request_that_no_extension_answers_says_what_to_add() {
    let chat = Chat::builder().with::<super::support::asker::Extension>(json!({}));
    let mut chat = chat.start().await.unwrap();
    goondan::testing::time::pause();
    let answer = ask(&mut chat, json!({ "app": "service" })).await;
    assert_eq!(code(&answer), "oauthUnanswered");
}

#[both_linkages]
async fn a_config_that_cannot_work_is_refused() {
    let server = Server::start();
    for (change, about) in [
        (json!({ "/store": {} }), "`store.key` is missing"),
        (json!({ "/store/key": "c2hvcnQ=" }), "`store.key` is not 32 bytes in base64"),
        (json!({ "/apps/service/subject": "user" }), "acts for itself"),
        (json!({ "/apps/service/tokenUrl": "http://example.com/token" }), "does not begin with `https://`"),
        (json!({ "/apps/service/tokenUrl": "no url" }), "`tokenUrl` of the app `service` is no URL"),
        (json!({ "/apps/page/authorizeUrl": null }), "the app `page` has no `authorizeUrl`"),
        (json!({ "/apps/device/deviceUrl": null }), "the app `device` has no `deviceUrl`"),
    ] {
        let mut config = config(&server);
        for (pointer, value) in change.as_object().unwrap() {
            *config.pointer_mut(pointer).unwrap() = value.clone();
        }
        let chat = Chat::builder().agent(|agent| agent.plugin("oauth", "oauth", config));
        let report = chat.start().await.unwrap_err().report().to_string();
        assert!(report.contains("E_EXT_CONFIG") && report.contains(about), "{report}");
    }
    let mut config = config(&server);
    config["apps"]["../up"] = config["apps"]["service"].clone();
    let chat = Chat::builder().agent(|agent| agent.plugin("oauth", "oauth", config));
    assert!(chat.start().await.unwrap_err().report().to_string().contains("`../up`"));
}

/// Asks for a token of `service` when it is made.
#[goondan::extension(name = "early")]
mod early {
    use goondan::prelude::*;
    use goondan_oauth_client::{TokenRequest, get_access_token};

    #[init]
    async fn new(api: ExtensionApi) -> Result<()> {
        get_access_token(&api, &TokenRequest::new("service")).await.map(drop)
    }
}

#[both_linkages]
async fn an_extension_that_is_made_asks_the_new_config() {
    let server = Server::start();
    let mut before = config(&server);
    before["apps"].as_object_mut().unwrap().remove("service");
    let described = || Agent::builder("assistant").store(MemoryStore::new().with_directories());
    let described = || described().model(ScriptedModel::new([ScriptItem::say("fine").repeat()]));
    let agent = described().plugin("oauth", "oauth", before).build().unwrap();
    let instance = agent.instance("a").await.unwrap();
    instance.run("hello").await.unwrap();
    let changed = described().plugin("oauth", "oauth", config(&server)).extension::<early::Extension>(json!({}));
    agent.reload(&changed.build().unwrap()).await.unwrap();
    assert_eq!(server.log(), ["client_credentials ok"]);
    instance.run("hello").await.unwrap();
    instance.close().await.unwrap();
}

#[both_linkages]
async fn a_token_that_was_asked_for_some_scopes_has_no_others() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let wanted = |scopes: &[&str]| json!({ "app": "page", "scopes": scopes });
    browse(&page(&ask(&mut chat, wanted(&["read"])).await)).await;
    let all = ask(&mut chat, wanted(&[])).await;
    let read = ask(&mut chat, wanted(&["read"])).await;
    assert_eq!((&read["scopes"], &all["scopes"]), (&json!(["read"]), &json!(["read", "write"])));
    let write = ask(&mut chat, wanted(&["write"])).await;
    assert_eq!(write["scopes"], json!(["write"]));
    assert_eq!(server.log(), ["authorization_code ok", "refresh_token ok", "refresh_token ok"]);
    // Each is kept, and the refresh token that came with it is that of the whole access.
    for (scopes, token) in [(&["read"][..], read), (&["write"], write), (&[], all.clone()), (&["write", "read"], all)] {
        assert_eq!(ask(&mut chat, wanted(scopes)).await, token);
    }
    chat.restart().await.unwrap();
    assert_eq!(ask(&mut chat, wanted(&["read"])).await["scopes"], json!(["read"]));
    assert_eq!((server.log().len(), server.logouts()), (4, 0));
}

#[both_linkages]
async fn a_server_that_gives_no_token_with_fewer_scopes_is_named() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    browse(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    server.set(|settings| settings.scope = Some("read write"));
    for app in ["page", "service"] {
        let answer = ask(&mut chat, json!({ "app": app, "scopes": ["read"] })).await;
        assert_eq!(code(&answer), "scopeNotAllowed", "{answer}");
        assert!(answer["message"].as_str().unwrap().contains("gets no token for `read` alone"), "{answer}");
        assert_eq!(ask(&mut chat, json!({ "app": app })).await["kind"], "Bearer");
    }
    assert_eq!(server.logouts(), 0);
}
