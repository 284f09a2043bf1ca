//! A person signs in, on a page or by a code.

use goondan::decision::Decision;
use goondan::event::AgentEvent;
use goondan::extension::LogLevel;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use super::server::{Server, browse, leads_to};
use super::support::{ask, ask_for, chat, chat_with, code, config, page};
use crate::call::call;
use crate::front_end::{address, says, with_front_end};

/// Signs in, and returns what the browser shows.
async fn sign_in(url: &str) -> String {
    let (status, text) = browse(url).await;
    assert_eq!(status, 200, "{text}");
    text
}

async fn status(chat: &mut Chat, app: &str) -> Value {
    let apps = call(chat, "oauth__status", json!({})).await;
    apps.as_array().unwrap().iter().find(|status| status["app"] == app).unwrap().clone()
}

#[both_linkages]
#[covers("LEGACY-OAUTH-01", "LEGACY-OAUTH-05")]
async fn a_person_allows_an_access_on_a_page() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let url = page(&ask(&mut chat, json!({ "app": "page" })).await);
    assert_eq!(page(&ask(&mut chat, json!({ "app": "page" })).await), url, "one sign-in is under way");
    assert_eq!(call(&mut chat, "oauth__authorize", json!({ "app": "page" })).await["url"], url);
    assert_eq!(status(&mut chat, "page").await["state"], "signInNeeded");
    // The server asserts S256 and the parameters, and checks the verifier.
    assert!(sign_in(&url).await.contains("is allowed"));
    assert_eq!(server.log(), ["authorization_code ok"]);
    assert_eq!(ask(&mut chat, json!({ "app": "page", "scopes": ["write", "read"] })).await["kind"], "Bearer");
    assert_eq!(status(&mut chat, "page").await["state"], "ready");
    assert_eq!(chat.events("auth.granted")[0].args()[0]["scopes"], json!(["read", "write"]));
    chat.restart().await.unwrap();
    assert_eq!(ask(&mut chat, json!({ "app": "page" })).await["kind"], "Bearer");
    assert_eq!(server.log().len(), 1);
}

#[both_linkages]
async fn the_state_of_a_sign_in_is_told_to_the_browser_alone() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let answer = ask(&mut chat, json!({ "app": "page" })).await;
    let url = page(&answer);
    assert!(url.starts_with("http://127.0.0.1:") && url.ends_with("/sign-in"), "{url}");
    assert!(answer["message"].as_str().unwrap().ends_with("it leads to 127.0.0.1"), "{answer}");
    let authorized = call(&mut chat, "oauth__authorize", json!({ "app": "page" })).await;
    let target = leads_to(&url).await;
    assert!(target.starts_with(&format!("{}/authorize?", server.url)), "{target}");
    let state = form_urlencoded::parse(target.split_once('?').unwrap().1.as_bytes()).find(|(name, _)| name == "state");
    let state = state.unwrap().1.into_owned();
    let told = format!("{answer}{authorized}{:?}{:?}", chat.messages().await, chat.events("*"));
    assert!(told.contains(&url) && !told.contains(&state) && !told.contains("state="), "{told}");
    // It may be opened again.
    assert_eq!(leads_to(&url).await, target);
    assert!(sign_in(&url).await.contains("is allowed"));
}

#[both_linkages]
async fn a_browser_with_another_state_is_refused_and_the_listener_is_closed_in_the_end() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let url = leads_to(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    let parameters: Vec<_> = form_urlencoded::parse(url.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
    let callback = parameters.iter().find(|(name, _)| name == "redirect_uri").unwrap().1.clone();
    let state = parameters.iter().find(|(name, _)| name == "state").unwrap().1.clone();
    assert!(callback.starts_with("http://127.0.0.1:"), "{callback}");
    for other in [
        format!("{callback}?code=stolen"),
        format!("{callback}?code=stolen&state="),
        format!("{callback}?code=stolen&state={}", &state[1..]),
        callback.replace("/callback", "/favicon.ico"),
        format!("{}?code=stolen&state={state}", callback.replace("/callback", "/other")),
    ] {
        assert_eq!(browse(&other).await.0, 400, "{other}");
    }
    assert_eq!(server.log(), [""; 0]);
    // A connection that says nothing does not keep others from being answered.
    let address = callback.strip_prefix("http://").unwrap().split('/').next().unwrap().to_owned();
    let _silent = std::net::TcpStream::connect(&address).unwrap();
    assert!(sign_in(&url).await.contains("is allowed"));
    assert!(std::net::TcpStream::connect(&address).is_err(), "the listener is closed");
    // A sign-in that is not finished ends with the conversation.
    let url = call(&mut chat, "oauth__authorize", json!({ "app": "page" })).await["url"].as_str().unwrap().to_owned();
    let port = url.split_once("127.0.0.1:").unwrap().1.split('/').next().unwrap().to_owned();
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_ok());
    chat.close().await.unwrap();
    assert!(std::net::TcpStream::connect(format!("127.0.0.1:{port}")).is_err());
}

#[both_linkages]
async fn an_access_that_is_not_allowed_can_be_asked_for_again() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let url = leads_to(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    let parameters: Vec<_> = form_urlencoded::parse(url.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
    let value = |name: &str| parameters.iter().find(|(key, _)| key == name).unwrap().1.clone();
    let denied = format!("{}?error=access_denied&state={}", value("redirect_uri"), value("state"));
    assert!(sign_in(&denied).await.contains("is not allowed"));
    let again = page(&ask(&mut chat, json!({ "app": "page" })).await);
    assert_ne!(again, url);
    // A code that the server refuses.
    server.set(|settings| settings.failing = Some(500));
    assert!(sign_in(&again).await.contains("is not allowed"));
    server.set(|settings| settings.failing = None);
    let last = page(&ask(&mut chat, json!({ "app": "page" })).await);
    assert!(sign_in(&last).await.contains("is allowed"));
}

#[both_linkages]
async fn each_user_has_a_token_of_their_own() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let wanted = json!({ "app": "users" });
    let mut granted = chat.instance().events().subscribe("auth.granted").unwrap();
    let url = page(&ask_for(&chat, "ada", wanted.clone()).await);
    assert!(sign_in(&url).await.contains("is allowed"));
    assert_eq!(granted.next().await.unwrap().args()[0]["subject"], "user:ada");
    let ada = ask_for(&chat, "ada", wanted.clone()).await;
    assert_eq!(ada["kind"], "Bearer");
    let url = page(&ask_for(&chat, "bob", wanted.clone()).await);
    assert!(sign_in(&url).await.contains("is allowed"));
    let bob = ask_for(&chat, "bob", wanted.clone()).await;
    assert_ne!(ada["digest"], bob["digest"]);
    chat.restart().await.unwrap();
    assert_eq!((ask_for(&chat, "ada", wanted.clone()).await, ask_for(&chat, "bob", wanted.clone()).await), (ada, bob));
    assert_eq!(code(&ask(&mut chat, wanted).await), "subjectUnavailable", "no user");
}

#[both_linkages]
async fn a_person_enters_a_code() {
    let server = Server::start();
    server.set(|settings| settings.pending = 1);
    let mut chat = chat(&server).await;
    let granted = chat.instance().events().subscribe("auth.granted");
    let answer = ask(&mut chat, json!({ "app": "device" })).await;
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains(&format!("open {}/enter and enter the code WDJB-MJHT", server.url)), "{message}");
    granted.unwrap().next().await.unwrap();
    assert_eq!(server.log(), ["device_code authorization_pending", "device_code ok"]);
    assert_eq!(ask(&mut chat, json!({ "app": "device" })).await["kind"], "Bearer");
}

#[both_linkages]
async fn a_server_without_device_codes_is_named() {
    let server = Server::start();
    let mut config = config(&server);
    config["apps"]["device"]["deviceUrl"] = json!(format!("{}/none", server.url));
    let mut chat = chat_with(config, |agent| agent).await;
    assert_eq!(code(&ask(&mut chat, json!({ "app": "device" })).await), "deviceCodeUnsupported");
    let itself = call_refused(&mut chat, "service").await;
    assert!(itself.0 == "configurationError" && itself.1.contains("acts for itself"), "{itself:?}");
    chat.say(AgentEvent::input("go on")).await.unwrap();
}

async fn call_refused(chat: &mut Chat, app: &str) -> (String, String) {
    crate::call::refused(chat, "oauth__authorize", json!({ "app": app })).await
}

/// The token is used in the call that has asked, without a line in the log, however the person says that it is done.
#[both_linkages]
#[covers("ASK-04", "LEGACY-OAUTH-05")]
async fn a_person_is_asked_once_and_the_call_goes_on() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let mut questions = chat.agent().subscribe_questions();
    let used = with_front_end(call(&mut chat, "asker__in_call", json!({ "app": "page" })), async {
        let (question, url) = address(&mut questions).await;
        assert!(url.ends_with("/sign-in") && question.wait().questions[0].question.text.contains("`page`"), "{url}");
        sign_in(&url).await;
    });
    let used = used.await;
    assert_eq!(used, ask(&mut chat, json!({ "app": "page" })).await["digest"]);
    assert_eq!(server.log(), ["authorization_code ok"]);
    assert!(chat.logs().iter().all(|line| line.level < LogLevel::Info), "{:?}", chat.logs());

    // By the model, which asks again after it was allowed.
    let ready = with_front_end(call(&mut chat, "oauth__authorize", json!({ "app": "page" })), async {
        let (question, url) = address(&mut questions).await;
        sign_in(&url).await;
        // It may be answered already.
        _ = question.decide(says(&question, true));
    });
    assert_eq!(ready.await, json!({ "app": "page", "state": "ready" }));
}

#[both_linkages]
#[covers("ASK-04")]
async fn a_person_may_refuse_to_sign_in_or_not_be_there() {
    let server = Server::start();
    let mut chat = chat(&server).await;
    let arguments = json!({ "app": "page" });
    let (code, message) = crate::call::refused(&mut chat, "asker__in_call", arguments.clone()).await;
    assert!(code == "authorizationRequired" && message.contains("/sign-in"), "{code}: {message}");
    let mut questions = chat.agent().subscribe_questions();
    for tool in ["asker__in_call", "oauth__authorize"] {
        let refused = with_front_end(crate::call::refused(&mut chat, tool, arguments.clone()), async {
            let (question, _) = address(&mut questions).await;
            question.decide(Decision::reject(question.wait().call.clone(), "not there")).unwrap();
        });
        let (code, message) = refused.await;
        assert!(code == "E_TOOL_REJECTED" && message.contains("not there"), "{code}: {message}");
    }
    assert!(server.log().is_empty());
}
