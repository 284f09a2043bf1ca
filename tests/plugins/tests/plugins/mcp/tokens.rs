//! The odd server at a URL, behind a server that wants access tokens.

use goondan::agent::{Agent, AgentBuilder};
use goondan::conversation::Role;
use goondan::event::{AgentEvent, Auth, Principal};
use goondan::extension::LogLevel;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use super::over_http::Listening;
use super::support::{call, refused, tools};
use crate::front_end::{address, with_front_end};
use crate::linkage::WithPlugin;
use crate::oauth::discovery;
use crate::oauth::server::{Server, browse};
use crate::oauth::support::{ask_in, config, open_at, page};

/// Starts the odd server, and a server that passes requests with a token on to it.
async fn start() -> (Listening, Server) {
    let (odd, server) = (Listening::start().await, Server::start());
    server.guard(format!("127.0.0.1:{}", odd.port));
    (odd, server)
}

/// Adds the extensions `oauth` and `odd`, which sends a token of `app`.
fn agent(agent: AgentBuilder, server: &Server, app: &str, mut settings: Value) -> AgentBuilder {
    let auth = json!({ "oauth": app, "scopes": ["read"] });
    settings["transport"] = json!({ "type": "http", "endpoint": format!("{}/mcp", server.url), "auth": auth });
    agent.plugin("oauth", "oauth", config(server)).plugin("odd", "mcp", settings)
}

#[both_linkages]
async fn requests_have_a_token_which_is_renewed_once_when_it_is_refused() {
    let (_odd, server) = start().await;
    let chat = Chat::builder().agent(|builder| agent(builder, &server, "service", json!({})));
    let mut chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    assert_eq!(server.log(), ["client_credentials ok"]);
    server.refuse_access();
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(server.log().len(), 2, "{:?}", server.log());
    // A server that refuses every token.
    server.set(|settings| settings.useless = true);
    server.refuse_access();
    let (code, message) = refused(&mut chat, "echo", json!({ "text": "?" })).await;
    assert_eq!(code, "E_MCP_REFUSED", "{message}");
    assert!(message.contains("refuses the authorization"), "{message}");
    // One whose authorization server does not answer.
    server.set(|settings| settings.failing = Some(503));
    assert_eq!(refused(&mut chat, "echo", json!({ "text": "?" })).await.0, "refreshFailed");
    server.set(|settings| (settings.failing, settings.useless) = (None, false));
    assert_eq!(call(&mut chat, "echo", json!({ "text": "go on" })).await, "go on");
    chat.close().await.unwrap();
    assert!(server.calls().iter().all(|header| header.starts_with("Bearer access-")), "{:?}", server.calls());
}

#[both_linkages]
async fn a_server_that_needs_a_sign_in_says_where_and_is_there_after_it() {
    let (_odd, server) = start().await;
    let chat = Chat::builder().agent(|builder| agent(builder, &server, "page", json!({}))).start().await;
    let report = chat.unwrap_err().report().to_string();
    assert!(report.contains("E_MCP_START") && report.contains("open http://127.0.0.1:"), "{report}");

    let chat = Chat::builder().agent(|builder| agent(builder, &server, "page", json!({ "required": false })));
    let mut chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    assert!(!tools(&chat).await.contains(&"odd__echo".to_owned()));
    let page = chat.call("oauth__authorize", json!({ "app": "page" })).await.unwrap();
    browse(page.output().unwrap()["url"].as_str().unwrap()).await;
    while !tools(&chat).await.contains(&"odd__echo".to_owned()) {
        chat.say("go on").await.unwrap();
    }
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
}

/// One question, no line in the log, and the tools of the server are there in the next step.
#[both_linkages]
#[covers("ASK-04")]
async fn the_model_lets_the_person_sign_in_when_it_needs_the_server() {
    let (_odd, server) = start().await;
    let chat = Chat::builder().agent(|builder| agent(builder, &server, "page", json!({ "required": false })));
    let mut chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    assert!(tools(&chat).await.contains(&"odd__sign_in".to_owned()));
    let mut questions = chat.agent().subscribe_questions();
    let answer = with_front_end(call(&mut chat, "sign_in", json!({})), async {
        let (_, url) = address(&mut questions).await;
        browse(&url).await;
    });
    assert!(answer.await.contains("signed in"));
    chat.say("go on").await.unwrap();
    let request = chat.last_request();
    let offered: Vec<_> = request.tools.iter().map(|tool| tool.name.to_string()).collect();
    assert!(offered.contains(&"odd__echo".to_owned()) && !offered.contains(&"odd__sign_in".to_owned()), "{offered:?}");
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    let lines: Vec<_> = chat
        .logs()
        .into_iter()
        .filter(|line| line.level >= LogLevel::Info && !line.target.starts_with("rmcp") || line.level >= LogLevel::Warn)
        .collect();
    assert!(lines.is_empty(), "{lines:?}");

    // The access has ended: the call after the one that learns it asks again, and is sent then.
    server.revoke();
    server.refuse_access();
    assert_eq!(refused(&mut chat, "echo", json!({ "text": "?" })).await.0, "tokenRevoked");
    let answer = with_front_end(call(&mut chat, "echo", json!({ "text": "again" })), async {
        let (_, url) = address(&mut questions).await;
        browse(&url).await;
    });
    assert_eq!(answer.await, "again");
}

#[both_linkages]
async fn each_turn_has_the_token_of_its_user() {
    let (_odd, server) = start().await;
    let root = TempDir::new().unwrap();
    let instance = open_at(root.path(), "a", config(&server)).await;
    for user in ["ada", "bob"] {
        let answers = ask_in(&instance, Some(user), json!({ "app": "users" })).await;
        browse(&page(&answers[0])).await;
    }
    instance.close().await.unwrap();

    let script = ["of ada", "of bob"]
        .map(|text| [ScriptItem::call("odd__echo", json!({ "text": text })), ScriptItem::say("fine")]);
    let builder = Agent::builder("assistant").store(FileStore::open(root.path()).unwrap());
    let builder = builder.model(ScriptedModel::new(script.into_iter().flatten()));
    let instance = agent(builder, &server, "users", json!({ "required": false })).build().unwrap().instance("a").await;
    let instance = instance.unwrap();
    let mut tokens = Vec::new();
    for user in ["ada", "bob"] {
        let before = server.calls().len();
        let mut event = AgentEvent::input("go");
        event.auth = Some(Auth::new(Principal::new("user", user)));
        instance.run(event).await.unwrap();
        let messages = instance.messages().await.unwrap();
        let result = messages.iter().rev().find(|message| message.role() == Role::Tool).unwrap().data().clone();
        assert!(json!(result).to_string().contains(&format!("of {user}")), "{result:?}");
        let mut used = server.calls().split_off(before);
        used.dedup();
        assert_eq!(used.len(), 1, "{used:?}");
        tokens.extend(used);
    }
    assert!(tokens[0] != tokens[1] && tokens.iter().all(|token| token.starts_with("Bearer access-")), "{tokens:?}");
    instance.close().await.unwrap();
}

#[both_linkages]
async fn a_connection_with_a_token_is_not_shared() {
    let server = Server::start();
    for scope in ["instance", "shared"] {
        let settings = json!({ "attach": { "scope": scope } });
        let chat = Chat::builder().agent(|builder| agent(builder, &server, "service", settings)).start().await;
        let report = chat.unwrap_err().report().to_string();
        assert!(report.contains("E_EXT_CONFIG") && report.contains("belongs to one conversation"), "{report}");
    }
}

#[both_linkages]
async fn a_server_that_announces_its_authorization_server_needs_its_url_alone() {
    let (_odd, server) = start().await;
    let resource = discovery::announce(&server);
    let transport = json!({ "type": "http", "endpoint": resource, "auth": { "oauth": "announced" } });
    let chat = Chat::builder().agent(|agent| {
        let agent = agent.plugin("oauth", "oauth", discovery::config(&server));
        agent.plugin("odd", "mcp", json!({ "required": false, "transport": transport }))
    });
    let mut chat = chat.script([ScriptItem::say("fine").repeat()]).start().await.unwrap();
    let page = chat.call("oauth__authorize", json!({ "app": "announced" })).await.unwrap();
    assert_eq!(browse(page.output().unwrap()["url"].as_str().unwrap()).await.0, 200);
    while !tools(&chat).await.contains(&"odd__echo".to_owned()) {
        chat.say("go on").await.unwrap();
    }
    assert_eq!(call(&mut chat, "echo", json!({ "text": "hello" })).await, "hello");
    assert_eq!((server.registrations().len(), server.log()), (1, vec!["authorization_code ok".to_owned()]));
    // Its access ends, and is renewed.
    server.refuse_access();
    assert_eq!(call(&mut chat, "echo", json!({ "text": "again" })).await, "again");
    assert_eq!(server.log().len(), 2);
}
