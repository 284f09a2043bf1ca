//! No token, code or key is in a file, in the log, in what programs see of a turn, or in what the model reads.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use goondan::agent::Agent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};
use tempfile::TempDir;

use super::server::{CLIENT, Server, browse};
use super::support::{KEY, ask, ask_for, ask_in, asker, chat_with, code, config, config_at, open_at, page};
use crate::call::{call, effects};
use crate::linkage::WithPlugin;

/// Returns the contents of all files below a directory, each with its path.
fn files(directory: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
    found
}

fn has(text: &[u8], secret: &str) -> bool {
    text.windows(secret.len()).any(|part| part == secret.as_bytes())
}

#[both_linkages]
#[covers("LEGACY-OAUTH-04")]
async fn no_secret_is_in_a_file_the_log_the_stream_or_the_conversation() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    let call = |name: &str, arguments: Value| ScriptItem::call(name, arguments);
    let script = [
        call("asker__ask_tool", json!({ "app": "service" })),
        call("asker__ask_tool", json!({ "app": "page" })),
        call("asker__leak", json!({ "app": "page" })),
        call("oauth__status", json!({})),
        ScriptItem::say("fine").repeat(),
    ];
    let agent = Agent::builder("assistant").store(FileStore::open(root.path()).unwrap());
    let agent = agent.model(ScriptedModel::new(script)).extension::<asker::Extension>(json!({}));
    let agent = agent.plugin("oauth", "oauth", config(&server)).build().unwrap();
    let instance = agent.instance("a").await.unwrap();
    let first = ask_in(&instance, None, json!({ "app": "page" })).await.remove(0);
    browse(&page(&first)).await;
    let first = ask_in(&instance, Some("ada"), json!({ "app": "users" })).await.remove(0);
    browse(&page(&first)).await;
    let mut seen = Vec::new();
    let mut turn = instance.run_stream("go");
    while let Some(update) = turn.next().await {
        seen.push(format!("{update:?}"));
    }
    turn.finish().await.unwrap();
    ask_in(&instance, Some("ada"), json!({ "app": "users", "refused": true })).await;
    seen.extend(instance.messages().await.unwrap().iter().map(|message| json!(message.data()).to_string()));
    seen.extend(instance.states().await.unwrap().iter().map(|state| format!("{state:?}")));
    instance.close().await.unwrap();

    let secrets = server.secrets();
    assert!(secrets.len() >= 10, "{secrets:?}");
    let secrets: Vec<&str> = secrets.iter().map(String::as_str).chain([CLIENT.1, KEY]).collect();
    let files = files(root.path());
    assert!(files.iter().any(|(path, _)| path.ends_with("/extensions/oauth.json")), "{files:?}");
    for secret in secrets {
        for (path, bytes) in &files {
            assert!(!has(bytes, secret), "{path} has {secret}");
        }
        for text in &seen {
            assert!(!text.contains(secret), "{text} has {secret}");
        }
    }
    for (path, _) in files.iter().filter(|(path, _)| path.contains("/extensions/oauth")) {
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600, "{path}");
    }
}

#[both_linkages]
#[covers("LEGACY-OAUTH-04")]
async fn no_tool_and_no_answer_tells_a_token_or_a_path() {
    let server = Server::start();
    let mut chat = chat_with(config(&server), |agent| agent).await;
    browse(&page(&ask(&mut chat, json!({ "app": "page" })).await)).await;
    let status = call(&mut chat, "oauth__status", json!({})).await.to_string();
    let authorize = call(&mut chat, "oauth__authorize", json!({ "app": "page" })).await.to_string();
    let answer = ask(&mut chat, json!({ "app": "page" })).await.to_string();
    let events = chat.events("*").into_iter().filter(|event| !event.name().starts_with("oauth."));
    let told: Vec<_> = events.map(|event| format!("{event:?}")).chain([status, authorize, answer]).collect();
    let logged = chat.logs().into_iter().map(|line| format!("{line:?}"));
    for text in told.into_iter().chain(logged) {
        assert!(!text.contains("extensions/oauth"), "{text}");
        for secret in server.secrets() {
            assert!(!text.contains(&secret), "{text}");
        }
    }
    let tools = effects(&chat).await;
    let tools: Vec<_> = tools.iter().map(|(name, _)| name.as_str()).filter(|name| name.starts_with("oauth")).collect();
    assert_eq!(tools, ["oauth__status", "oauth__authorize"]);
}

#[both_linkages]
async fn another_key_reads_nothing_and_loses_nothing() {
    let (root, server) = (TempDir::new().unwrap(), Server::start());
    let wanted = json!({ "app": "page" });
    let chat = open_at(root.path(), "a", config_at(&server.url)).await;
    browse(&page(&ask_in(&chat, None, wanted.clone()).await[0])).await;
    let token = ask_in(&chat, None, wanted.clone()).await;
    chat.close().await.unwrap();

    let mut other = config_at(&server.url);
    other["store"]["key"] = json!("ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=");
    let chat = open_at(root.path(), "b", other).await;
    assert_eq!(code(&ask_in(&chat, None, wanted.clone()).await[0]), "configurationError");
    chat.close().await.unwrap();

    let mut other = config_at(&server.url);
    other["apps"]["page"]["clientId"] = json!("another client");
    let chat = open_at(root.path(), "c", other).await;
    assert_eq!(code(&ask_in(&chat, None, wanted.clone()).await[0]), "authorizationRequired", "of another client");
    chat.close().await.unwrap();

    let chat = open_at(root.path(), "d", config_at(&server.url)).await;
    assert_eq!(ask_in(&chat, None, wanted.clone()).await, token);
    // A file that was changed.
    let (path, bytes) = files(root.path()).into_iter().find(|(path, _)| path.ends_with("/oauth.json")).unwrap();
    let text = String::from_utf8(bytes).unwrap();
    let place = text.find("ciphertext\":\"").unwrap() + 20;
    let changed = if &text[place..=place] == "A" { "B" } else { "A" };
    fs::write(&path, [&text[..place], changed, &text[place + 1..]].concat()).unwrap();
    assert_eq!(code(&ask_in(&chat, None, wanted).await[0]), "configurationError");
    chat.close().await.unwrap();
}

#[both_linkages]
async fn a_token_of_one_user_is_no_use_as_that_of_another() {
    let server = Server::start();
    let chat = chat_with(config(&server), |agent| agent).await;
    let wanted = json!({ "app": "users" });
    browse(&page(&ask_for(&chat, "ada", wanted.clone()).await)).await;
    assert_eq!(code(&ask_for(&chat, "ada ", wanted.clone()).await), "authorizationRequired");
    let states = chat.instance().states().await.unwrap();
    let state = format!("{states:?}");
    assert!(state.contains("ciphertext") && state.contains("user:ada"), "{state}");
}
