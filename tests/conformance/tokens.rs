//! Secrets that an extension makes while it runs are masked, and forgotten.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use conformance_extensions::tokens::Tokens;
use goondan::agent::{Instance, TurnUpdate};
use goondan::event::RuntimeEvent;
use goondan::model::ScriptItem;
use goondan::secret::mask;
use goondan::testing::Chat;
use goondan::{Value, json};
use goondan_covers::both_linkages;
use goondan_lock::Lock;
use tracing_subscriber::prelude::*;

use crate::linkage::Extended;
use crate::support::agent;

/// Returns what the tokens of a case begin with: all cases run in one process.
fn prefix() -> String {
    static CASES: AtomicU32 = AtomicU32::new(0);
    format!("token-of-case-{}-", CASES.fetch_add(1, Ordering::Relaxed))
}

/// Runs turns with one tool call each.
async fn call(calls: &[(&str, Value)]) -> Instance {
    let script = calls
        .iter()
        .flat_map(|(tool, args)| [ScriptItem::call(format!("tokens__{tool}"), args.clone()), ScriptItem::say("done")]);
    let agent = agent(script).with::<Tokens>(json!({})).build().unwrap();
    agent.instance("test").await.unwrap()
}

#[both_linkages]
async fn of_the_tokens_that_an_extension_rotates_the_last_one_is_masked() {
    let prefix = prefix();
    let instance = call(&[("rotate", json!({ "prefix": prefix, "tokens": 1000 }))]).await;
    instance.run("sign in").await.unwrap();
    let last = format!("{prefix}999");
    assert_eq!(mask(&format!("401 for {last}")), "401 for ***");
    for number in 0..999 {
        let old = format!("{prefix}{number}");
        assert_eq!(mask(&old), old);
    }
    instance.close().await.unwrap();
    assert_eq!(mask(&last), last, "it is gone with the extension");
}

#[both_linkages]
async fn a_token_is_masked_as_long_as_a_clone_of_it_exists() {
    let prefix = prefix();
    let one = json!({ "prefix": format!("{prefix}a"), "tokens": 1 });
    let two = json!({ "prefix": format!("{prefix}b"), "tokens": 1 });
    let instance = call(&[("rotate", one), ("keep", json!({})), ("rotate", two), ("forget", json!({}))]).await;
    let (one, two) = (format!("{prefix}a0"), format!("{prefix}b0"));
    for masked in [[true, false], [true, false], [true, true], [false, true]] {
        instance.run("go on").await.unwrap();
        assert_eq!([mask(&one) == "***", mask(&two) == "***"], masked);
    }
    instance.close().await.unwrap();
}

#[both_linkages]
async fn a_token_is_in_no_error_event_or_progress_and_the_program_masks_it_in_the_log() {
    let prefix = prefix();
    let token = format!("{prefix}0");
    let issued = json!({ "prefix": prefix, "tokens": 1 });
    let script = [("rotate", issued), ("fail", json!({})), ("panic", json!({}))];
    let script = script.map(|(tool, args)| ScriptItem::call(format!("tokens__{tool}"), args));
    let chat = Chat::builder().script(script.into_iter().chain([ScriptItem::say("done")]));
    let chat = chat.agent(|agent| agent.with::<Tokens>(json!({}))).start().await.unwrap();
    let mut turn = chat.instance().run_stream("sign in");
    let mut updates = Vec::new();
    while let Some(update) = turn.next().await {
        updates.push(update);
    }
    let told = format!("{updates:?}");
    assert!(!told.contains(&token), "{told}");
    let progress = updates
        .iter()
        .any(|update| matches!(update, TurnUpdate::Progress { text, .. } if text == "signing in with ***"));
    assert!(progress, "{told}");
    let failures = updates.iter().filter_map(|update| match update {
        TurnUpdate::Event(event) => match &**event {
            RuntimeEvent::ToolCompleted { error_message, .. } => error_message.clone(),
            _ => None,
        },
        _ => None,
    });
    let failures: Vec<_> = failures.collect();
    assert_eq!(failures.len(), 2, "{told}");
    assert!(failures.iter().all(|failure| failure.contains("refused: ***")), "{failures:?}");
    let messages = chat.messages().await;
    assert!(messages[4..].iter().all(|message| !message.text().contains(&token)), "{messages:?}");
    let lines: Vec<_> = chat.logs().into_iter().filter(|line| line.text.contains("refused")).collect();
    assert!(!lines.is_empty() && lines.iter().all(|line| line.text.contains("refused: ***")), "{lines:?}");
    let all = format!("{:?}", chat.logs());
    assert!(all.contains("token=\"***\"") && !all.contains(&token), "{all}");
    chat.close().await.unwrap();
}

/// The lines that a subscriber has written.
#[derive(Clone, Default)]
struct Written(Arc<Lock<Vec<u8>>>);

impl io::Write for Written {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.0.lock().extend_from_slice(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[both_linkages]
async fn the_layer_for_programs_masks_what_extensions_log() {
    let prefix = prefix();
    let token = format!("{prefix}0");
    let instance = call(&[("rotate", json!({ "prefix": prefix, "tokens": 1 })), ("fail", json!({}))]).await;
    let written = Written::default();
    let writer = written.clone();
    let layer = goondan::log::writing_to(move || writer.clone());
    let _subscriber = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    instance.run("sign in").await.unwrap();
    instance.run("go on").await.unwrap();
    tracing::warn!(token, "by the program itself: {token}");
    instance.close().await.unwrap();
    let log = String::from_utf8(written.0.lock().clone()).unwrap();
    assert!(log.contains("refused: ***") && log.contains("by the program itself: ***"), "{log}");
    assert!(!log.contains(&token), "{log}");
}
