//! Extensions that panic or block: they affect their own turn and nothing else, in both linkages.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use goondan_core::{Error, ErrorCode, Result, TurnResult};
use goondan_runtime::{Instance, ScriptItem};
use serde_json::json;
use tempfile::TempDir;
use tokio::net::{UnixListener, UnixStream};

use crate::runtime::listen;
use crate::support::{BOTH, Linkage, agent};

/// All places where code of an extension runs, and where a panic in them is reported.
const PLACES: [(&str, Reported); 12] = [
    ("init", Reported::Start),
    ("turn before next", Reported::Turn),
    ("turn after next", Reported::Turn),
    ("step before next", Reported::Turn),
    ("step after next", Reported::Turn),
    ("call before next", Reported::Model),
    ("call after next", Reported::Model),
    ("tool", Reported::Model),
    ("blocking tool", Reported::Model),
    ("event handler", Reported::Log),
    ("cleanup", Reported::Log),
    ("drop", Reported::Nowhere),
];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Reported {
    /// The conversation cannot be opened.
    Start,
    /// Each turn ends with an error.
    Turn,
    /// The model receives it as the result of its call.
    Model,
    /// It is logged, because no caller waits for a result.
    Log,
    /// It appears in no result, because it cannot be attributed to the extension.
    Nowhere,
}

/// The outcome of two turns that call each tool.
#[derive(Debug, PartialEq)]
struct Outcome {
    turns: Vec<std::result::Result<String, String>>,
    messages: Vec<String>,
    closed: std::result::Result<(), String>,
}

fn report(error: &Error) -> String {
    error.report().to_string()
}

async fn panicking(linkage: Linkage, place: &str) -> Result<Outcome> {
    let tools = ["panicking__answer", "panicking__answer_slowly"].map(|tool| (tool, json!({})));
    let script = [ScriptItem::calls(tools).when("^hello$")?.repeat(), ScriptItem::say("done").repeat()];
    let config = json!({ "place": place, "tag": format!("{linkage:?}") });
    let agent = agent(script).described_extension("rough", linkage.extension("panicking"), config);
    let instance = agent.build()?.instance("one").await?;
    let mut turns = Vec::new();
    for _ in 0..2 {
        let turn = instance.run("hello").await;
        turns.push(turn.map(|turn| turn.text().into_owned()).map_err(|error| report(&error)));
    }
    let messages = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    let closed = instance.close().await.map_err(|error| report(&error));
    Ok(Outcome { turns, messages, closed })
}

#[tokio::test]
async fn a_panic_anywhere_is_reported_where_it_belongs_and_affects_nothing_else() {
    let log = listen();
    for (place, reported) in PLACES {
        let [linked, loaded] = [panicking(Linkage::Linked, place).await, panicking(Linkage::Library, place).await];
        for linkage in BOTH {
            let boom = format!("boom in {place} of {linkage:?}");
            // The panic hook of a library logs; a linked extension has the panic hook of the program.
            if reported == Reported::Log || linkage == Linkage::Library {
                // A spawned task drops the extension.
                for _ in 0..1000 {
                    if !log.text().contains(&boom) {
                        tokio::task::yield_now().await;
                    }
                }
                assert!(log.text().contains(&boom), "{boom}: {}", log.text());
            }
        }
        let same = |outcome: Result<Outcome>| match outcome {
            Ok(outcome) => format!("{outcome:#?}"),
            Err(error) => report(&error),
        };
        let linked_text = same(linked).replace("Linked", "Library");
        assert_eq!(same(loaded), linked_text, "{place}");
        let answered = !matches!(reported, Reported::Log | Reported::Nowhere);
        assert_eq!(linked_text.contains(&format!("boom in {place}")), answered, "{place}: {linked_text}");
        assert_eq!(linked_text.contains("turns"), reported != Reported::Start, "{place}: {linked_text}");
        assert_eq!(linked_text.contains("Err("), reported == Reported::Turn, "{place}: {linked_text}");
    }
}

/// Blocks tools until the stream that `knock` returned is dropped.
struct Door {
    listener: UnixListener,
    path: PathBuf,
    _directory: TempDir,
}

impl Door {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("door");
        Self { listener: UnixListener::bind(&path).unwrap(), path, _directory: directory }
    }

    /// Waits until a tool waits at the door.
    async fn knock(&self) -> UnixStream {
        self.listener.accept().await.unwrap().0
    }
}

async fn blocking(linkage: Linkage, tool: &str, door: &Path) -> Instance {
    let script = [ScriptItem::call(tool, json!({})).when("^block$").unwrap(), ScriptItem::say("done").repeat()];
    let agent = agent(script).described_extension("blocking", linkage.extension("blocking"), json!({ "door": door }));
    agent.build().unwrap().instance("one").await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_that_blocks_its_thread_delays_only_its_own_turn_and_is_named() {
    let log = listen();
    let named = || log.text().matches("`blocking__here` has blocked its thread").count();
    for linkage in BOTH {
        let before = named();
        let door = Door::new();
        let rude = blocking(linkage, "blocking__here", &door.path).await;
        let blocked = tokio::spawn(async move { rude.run("block").await });
        let waiting = door.knock().await;
        let other = blocking(linkage, "blocking__here", &door.path).await;
        assert_eq!(other.run("hello").await.unwrap().text(), "done");
        let until = Instant::now() + Duration::from_secs(60);
        while named() == before && Instant::now() < until {
            tokio::task::yield_now().await;
        }
        assert!(!blocked.is_finished());
        drop(waiting);
        assert_eq!(named(), before + 1, "once");
        assert_eq!(blocked.await.unwrap().unwrap().text(), "done");
    }
}

#[tokio::test]
async fn a_deadline_leaves_a_blocking_tool_behind() {
    for linkage in BOTH {
        let door = Door::new();
        let instance = blocking(linkage, "blocking__elsewhere", &door.path).await;
        let (turn, waiting): (TurnResult, _) = {
            let (turn, waiting) = tokio::join!(instance.run("block"), door.knock());
            (turn.unwrap(), waiting)
        };
        assert_eq!(turn.text(), "done");
        let result = instance.messages().await.unwrap()[2].text().into_owned();
        assert!(result.contains(ErrorCode::TOOL_TIMEOUT.as_str()), "{result}");
        instance.close().await.unwrap();
        // Its thread returns into the library, which is still loaded.
        drop(waiting);
    }
}
