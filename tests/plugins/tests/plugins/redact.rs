//! REVIEW-01: `redact` masks addresses, numbers and keys.

use std::collections::BTreeMap;
use std::fs;
use std::num::NonZeroU32;
use std::path::Path;

use goondan::agent::TurnUpdate;
use goondan::conversation::{FilePart, TextPart};
use goondan::event::AgentEvent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::FileStore;
use goondan::testing::Chat;
use goondan::{Agent, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

const EMAIL: &str = "ada.lovelace+notes@mail.example.org";
const CARD: &str = "4111 1111 1111 1111";
const IBAN: &str = "DE89 3704 0044 0532 0130 00";
const KEY: &str = "sk-proj-0123456789abcdefghij";

/// A text with one of each, and what becomes of it.
fn all() -> (String, &'static str) {
    let text = format!("Mail {EMAIL}, call +49 (30) 1234-5678; pay {CARD} or {IBAN}. {KEY}!");
    (text, "Mail [email], call [phone]; pay [card] or [iban]. [key]!")
}

async fn chat(config: Value, script: impl IntoIterator<Item = ScriptItem>) -> Chat {
    let agent = |agent: goondan::agent::AgentBuilder| {
        agent.plugin("redact", "redact", config).one_of("basics", "text-transform", json!({}))
    };
    Chat::builder().agent(agent).script(script).start().await.unwrap()
}

/// Returns what becomes of an input.
async fn masked(text: &str, config: Value) -> String {
    let chat = chat(config, [ScriptItem::say("fine")]).await;
    chat.say(text).await.unwrap();
    chat.instance().messages().await.unwrap()[0].text().into_owned()
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_is_found_and_what_is_not() {
    let (text, expected) = all();
    assert_eq!(masked(&text, json!({})).await, expected);
    assert_eq!(masked(expected, json!({})).await, expected, "masked once more");
    for stays in [
        "on 2026-11-28 at 12:30, version 1.2.3, 1,234,567 of 10000000",
        "4111 1111 1111 1112 and GB82WEST12345698765433 have wrong check digits",
        "a@b is no address, and sk-something-else no key",
        "order 12345678901, id 550e8400-e29b-41d4-a716-446655440000",
    ] {
        assert_eq!(masked(stays, json!({})).await, stays);
    }
    for (text, expected) in [
        ("030 12345678, (555) 123-4567", "[phone], [phone]"),
        ("5500005555555559x 5500005555555559", "5500005555555559x [card]"),
        ("GB82WEST12345698765432 and on", "[iban] and on"),
        ("Ünal <ü@x.de> schreibt an jo@x.de.", "Ünal <ü@x.de> schreibt an [email]."),
    ] {
        assert_eq!(masked(text, json!({})).await, expected);
    }
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn the_config_says_what_is_looked_for_and_what_happens() {
    let text = format!("{EMAIL} {CARD} C-123456");
    let pattern = json!([{ "name": "customer", "pattern": "C-[0-9]{6}" }]);
    assert_eq!(masked(&text, json!({ "kinds": ["card"] })).await, format!("{EMAIL} [card] C-123456"));
    let config = json!({ "kinds": [], "patterns": pattern });
    assert_eq!(masked(&text, config).await, format!("{EMAIL} {CARD} [customer]"));
    let hash = |salt: &str| json!({ "kinds": ["email"], "action": "hash", "salt": salt });
    let hashed = masked(EMAIL, hash("a")).await;
    assert!(hashed.starts_with("[email:") && hashed.len() == 16, "{hashed}");
    assert_eq!(masked(EMAIL, hash("a")).await, hashed);
    assert_ne!(masked(EMAIL, hash("b")).await, hashed);
    assert_eq!(masked(&hashed, hash("a")).await, hashed, "masked once more");
    let error = Chat::builder()
        .agent(|agent| agent.plugin("redact", "redact", json!({ "patterns": [{ "name": "x", "pattern": "(" }] })));
    let error = error.start().await.unwrap_err();
    assert!(error.report().to_string().contains("the pattern of `x` is no regular expression"), "{}", error.report());
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn an_answer_is_masked_wherever_it_is_cut() {
    let (text, expected) = all();
    for pieces in [1, 2, 3, 7, 50, text.len()] {
        let answer = ScriptItem::say(&text).reasoning(&text).pieces(NonZeroU32::new(pieces as u32).unwrap());
        let chat = chat(json!({}), [answer]).await;
        let mut turn = chat.instance().run_stream("hello");
        let (mut told, mut thought) = (String::new(), String::new());
        while let Some(update) = turn.next().await {
            match update {
                TurnUpdate::Text { text, .. } => told.push_str(&text),
                TurnUpdate::Reasoning { text, .. } => thought.push_str(&text),
                TurnUpdate::Restart { reason, .. } => panic!("{reason}"),
                _ => {}
            }
        }
        assert_eq!((told.as_str(), thought.as_str()), (expected, expected), "{pieces}");
        assert_eq!(turn.finish().await.unwrap().text(), expected);
    }
}

/// The first word is told when it is whole, and digits when they can be no number that is looked for.
#[both_linkages]
#[covers("REVIEW-01")]
async fn little_is_held_back() {
    let text = "Paris is the capital of France.";
    let pieces = NonZeroU32::new(text.len() as u32).unwrap();
    let chat = chat(json!({}), [ScriptItem::say(text).pieces(pieces)]).await;
    let mut turn = chat.instance().run_stream("hello");
    let mut told = Vec::new();
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            told.push(text);
        }
    }
    assert_eq!(told.concat(), text);
    assert_eq!(told[0], "Paris ");
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn outputs_of_tools_and_arguments_are_masked_and_counted() {
    let (text, expected) = all();
    let call = |args: Value| ScriptItem::call("text-transform__replace", args);
    let script = [call(json!({ "text": text, "search": "Mail", "replacement": "MAIL" })), ScriptItem::say("done")];
    let chat = chat(json!({ "in": ["tools"] }), script).await;
    chat.say("go").await.unwrap();
    let told = format!("{:?}", chat.instance().messages().await.unwrap()[2]);
    assert!(told.contains(&expected.replace("Mail", "MAIL")), "{told}");
    let counted: BTreeMap<String, u64> =
        serde_json::from_value(chat.events("redact.masked")[0].args()[0]["kinds"].clone()).unwrap();
    assert_eq!(counted.values().sum::<u64>(), 5, "{counted:?}");
    assert_eq!(chat.events("redact.masked")[0].args()[0]["place"], "tools");

    let script = [call(json!({ "text": EMAIL, "search": "a", "replacement": "b" })), ScriptItem::say("done")];
    let chat = self::chat(json!({}), script).await;
    chat.say("go").await.unwrap();
    let messages = format!("{:?}", chat.instance().messages().await.unwrap());
    assert!(!messages.contains("lovelace") && messages.contains("[emb") || messages.contains("[email]"), "{messages}");
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_is_refused_is_stored_nowhere() {
    let refuse = || json!({ "kinds": [{ "kind": "card", "action": "refuse" }, "email"] });
    let error = chat(refuse(), []).await.say(format!("pay {CARD}")).await.unwrap_err();
    assert_eq!((error.code().as_str(), error.extension().unwrap().as_str()), ("E_REDACT_REFUSED", "redact"));
    let refused = chat(refuse(), [ScriptItem::say(format!("pay with {CARD}"))]).await;
    assert_eq!(refused.say("how?").await.unwrap_err().code().as_str(), "E_REDACT_REFUSED");
    assert_eq!(refused.instance().messages().await.unwrap().len(), 1);
    let args = json!({ "text": "4111-1111-1111-111x", "search": "x", "replacement": "1" });
    let script = [ScriptItem::call("text-transform__replace", args), ScriptItem::say("done")];
    let chat = chat(refuse(), script).await;
    assert_eq!(chat.say("go").await.unwrap().text(), "done");
    let messages = format!("{:?}", chat.instance().messages().await.unwrap());
    assert!(messages.contains("E_REDACT_REFUSED") && !messages.contains("1111-1111-1111-1111"), "{messages}");
}

fn files_with(directory: &Path, text: &str) -> usize {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let count = |path: std::path::PathBuf| match path.is_dir() {
        true => files_with(&path, text),
        false => usize::from(String::from_utf8_lossy(&fs::read(&path).unwrap()).contains(text)),
    };
    entries.map(count).sum()
}

#[both_linkages]
#[covers("REVIEW-01")]
async fn what_is_masked_is_in_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let (text, _) = all();
    let answer = ScriptItem::say(&text).reasoning(&text).pieces(NonZeroU32::new(9).unwrap());
    let transform = json!({ "text": text, "search": "Mail", "replacement": "MAIL" });
    let script = [ScriptItem::call("text-transform__replace", transform), answer];
    let agent = Agent::builder("clerk").model(ScriptedModel::new(script)).plugin("redact", "redact", json!({}));
    let agent = agent.one_of("basics", "text-transform", json!({}));
    let agent = agent.store(FileStore::open(directory.path()).unwrap()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let file = FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named(format!("{EMAIL}.png"));
    let mut turn = instance.run_stream(AgentEvent::content(vec![TextPart::new(&text).into(), file.into()]));
    while turn.next().await.is_some() {
        for part in ["lovelace", "1234-5678", "1111 1111", "3704 0044", "0123456789abc"] {
            assert_eq!(files_with(directory.path(), part), 0, "{part}");
        }
    }
    turn.finish().await.unwrap();
    instance.close().await.unwrap();
    assert!(files_with(directory.path(), "[email]") > 0);
    assert_eq!(files_with(directory.path(), "lovelace"), 0);
}
