//! Links, pipes and directories in place of the files of an instance, for each operation: nothing outside of the
//! workspace is changed or read through them.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use goondan_core::{
    AgentName, Conversation, Error, ErrorCode, ExtensionName, InstanceKey, Message, MessageEvent, RuntimeEvent, TurnId,
};
use goondan_file_store::FileStore;
use goondan_file_store::Fsync;
use goondan_runtime::store::{Commit, Durability, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::json;
use tempfile::TempDir;

const INSTANCE: &str = "instances/bot:k";

/// Everything that the store reads or writes below a workspace. The text of each file says `hidden` if it has one.
const NAMES: [&str; 18] = [
    "instances",
    INSTANCE,
    "instances/bot:k/lock",
    "instances/bot:k/metadata.json",
    "instances/bot:k/metadata.json.tmp",
    "instances/bot:k/messages",
    "instances/bot:k/messages/base.jsonl",
    "instances/bot:k/messages/base.jsonl.tmp",
    "instances/bot:k/messages/base.jsonl.corrupt-1",
    "instances/bot:k/messages/events.jsonl",
    "instances/bot:k/messages/events.jsonl.tmp",
    "instances/bot:k/messages/events.jsonl.corrupt-1",
    "instances/bot:k/messages/runtime-events.jsonl",
    "instances/bot:k/messages/runtime-events.1.jsonl",
    "instances/bot:k/extensions",
    "instances/bot:k/extensions/notes.json",
    "instances/bot:k/extensions/notes.json.tmp",
    "instances/bot:k/workspace",
];

/// What takes the place of a name.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Plant {
    /// A symbolic link to what had the name, moved outside.
    Link,
    /// A symbolic link to an outside path with nothing there.
    Dangling,
    /// A symbolic link to an outside directory, or to a file where a directory is expected.
    OtherKind,
    /// A hard link to a file, moved outside.
    HardLink,
}

const PLANTS: [Plant; 4] = [Plant::Link, Plant::Dangling, Plant::OtherKind, Plant::HardLink];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Operation {
    /// Opens the instance, runs a turn that rewrites everything, and drops it.
    Run,
    Read,
    RuntimeEvents,
    List,
    Export,
    Import,
    Inspect,
    Repair,
    Delete,
}

use Operation::{Delete, Export, Import, Inspect, List, Read as Show, Repair, Run, RuntimeEvents};

const OPERATIONS: [Operation; 9] = [Run, Show, RuntimeEvents, List, Export, Import, Inspect, Repair, Delete];

fn id(key: &str) -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new(key).unwrap() }
}

fn runtime_event() -> RuntimeEvent {
    let scope = r#""agentName":"bot","instanceKey":"k","timestamp":"2026-01-31T12:00:00.000Z","turnId":"t",
        "traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331""#;
    serde_json::from_str(&format!("{{\"type\":\"turn.started\",{scope}}}")).unwrap()
}

/// Runs a turn with a new message. If there is an older one, removes it, so that the base is rewritten.
async fn turn(opened: Opened, text: &str) -> Result<(), Error> {
    let Opened { base, interrupted, mut journal, .. } = opened;
    let (mut conversation, _) = Conversation::from_base(base.iter().cloned());
    let turn = match interrupted {
        Some(interrupted) => {
            interrupted.events.into_iter().for_each(|event| _ = conversation.apply(event).unwrap());
            interrupted.turn
        }
        None => {
            let turn = TurnId::from("t");
            journal.begin(TurnStart::new(&turn))?;
            turn
        }
    };
    let mut events = vec![MessageEvent::append(Message::user(text))];
    events.extend(base.first().map(|message| MessageEvent::remove(message.id().clone())));
    for event in events {
        conversation.apply(event.clone())?;
        journal.record(&event, None)?;
    }
    journal.flush(Durability::Synced).await?;
    journal.note(&[runtime_event()])?;
    let state = BTreeMap::from([(ExtensionName::new("notes").unwrap(), json!("hidden"))]);
    journal.commit(Commit::new(&turn, &conversation, &state)).await
}

/// Creates an instance with messages, state, runtime events, and an interrupted turn whose last record is torn.
async fn workspace() -> (TempDir, FileStore) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap().fsync(Fsync::Never).journal_limit(1);
    turn(store.open(&id("k")).await.unwrap(), "hidden").await.unwrap();
    let mut journal = store.open(&id("k")).await.unwrap().journal;
    journal.begin(TurnStart::new(&"interrupted".into())).unwrap();
    journal.record(&MessageEvent::append(Message::user("hidden")), None).unwrap();
    drop(journal);
    let messages = workspace.path().join(INSTANCE).join("messages");
    let events = fs::read_to_string(messages.join("events.jsonl")).unwrap();
    fs::write(messages.join("events.jsonl"), events + "{\"type\":\"app").unwrap();
    fs::write(messages.join("runtime-events.1.jsonl"), "{\"hidden\":1}\n").unwrap();
    fs::create_dir(workspace.path().join(INSTANCE).join("workspace")).unwrap();
    (workspace, store)
}

/// Replaces `name` by `plant`. Returns `false` if there is no such thing.
fn plant(plant: Plant, at: &Path, outside: &Path) -> bool {
    let target = outside.join("target");
    let is_dir = at.is_dir();
    match plant {
        Plant::HardLink if is_dir => return false,
        Plant::Link | Plant::HardLink if at.exists() => fs::rename(at, &target).unwrap(),
        Plant::Link | Plant::HardLink => fs::write(&target, "hidden\n").unwrap(),
        Plant::OtherKind | Plant::Dangling if is_dir => fs::remove_dir_all(at).unwrap(),
        Plant::OtherKind | Plant::Dangling if at.exists() => fs::remove_file(at).unwrap(),
        Plant::OtherKind | Plant::Dangling => {}
    }
    match plant {
        Plant::OtherKind if is_dir => fs::write(&target, "hidden\n").unwrap(),
        Plant::OtherKind => fs::create_dir(&target).unwrap(),
        _ => {}
    }
    if plant == Plant::HardLink {
        fs::hard_link(&target, at).unwrap();
    } else {
        reveal(outside);
        symlink(&target, at).unwrap();
    }
    true
}

/// Changes `hidden` to `CANARY` in all files, so that what is outside can be told from what is inside.
fn reveal(path: &Path) {
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| reveal(&entry.unwrap().path()));
    } else {
        fs::write(path, fs::read_to_string(path).unwrap().replace("hidden", "CANARY")).unwrap();
    }
}

/// Runs an operation. Returns what it shows.
async fn run(operation: Operation, store: &FileStore, export: &[u8]) -> Result<String, Error> {
    let id = &id("k");
    match operation {
        Run => turn(store.open(id).await?, "new").await.map(|()| String::new()),
        Show => store.read(id).map(|read| format!("{read:?}")),
        RuntimeEvents => {
            let mut text = String::new();
            store.runtime_events(id)?.read_to_string(&mut text).unwrap();
            Ok(text)
        }
        List => store.instances().map(|all| format!("{all:?}")),
        Export => {
            let mut export = Vec::new();
            store.export(id, &mut export)?;
            Ok(String::from_utf8(export).unwrap())
        }
        Import => store.import(export, Some(self::id("copy"))).map(|id| id.to_string()),
        Inspect => store.inspect(id).map(|faults| format!("{faults:?}")),
        Repair => store.repair(id).map(|faults| format!("{faults:?}")),
        Delete => store.delete(id).map(|()| String::new()),
    }
}

/// Whether the operation reads or writes what has this name, so that it must fail. Other links are left alone, or
/// removed like the leftover of a crash.
fn uses(operation: Operation, name: &str) -> bool {
    match name.strip_prefix(INSTANCE).unwrap_or(name) {
        "instances" => true,
        "" => ![List, Import].contains(&operation),
        "/lock" => [Run, Export, Inspect, Repair, Delete].contains(&operation),
        "/metadata.json" => [Run, Export].contains(&operation),
        "/messages" => ![List, Import, Delete].contains(&operation),
        "/messages/base.jsonl" | "/messages/events.jsonl" => [Run, Show, Export, Inspect, Repair].contains(&operation),
        "/messages/runtime-events.jsonl" | "/messages/runtime-events.1.jsonl" => {
            [Run, RuntimeEvents].contains(&operation)
        }
        "/extensions" | "/extensions/notes.json" => [Run, Export, Inspect, Repair].contains(&operation),
        "/workspace" => operation == Run,
        temporary => {
            assert!(temporary.ends_with(".tmp") || temporary.ends_with(".corrupt-1"), "{temporary}");
            false
        }
    }
}

/// Returns content, times and mode of everything below a directory.
fn snapshot(path: &Path) -> BTreeMap<PathBuf, (Vec<u8>, SystemTime, u32)> {
    let mut all = BTreeMap::new();
    let mut rest = vec![path.to_owned()];
    while let Some(path) = rest.pop() {
        let found = path.symlink_metadata().unwrap();
        let content = if found.is_dir() {
            rest.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
            Vec::new()
        } else if found.is_file() {
            fs::read(&path).unwrap()
        } else {
            Vec::new()
        };
        all.insert(path, (content, found.modified().unwrap(), found.mode()));
    }
    all
}

/// Sets the times of everything below a directory to the past, so that a change of them shows.
fn age(path: &Path) {
    for path in snapshot(path).into_keys() {
        let past = SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
        File::open(path).unwrap().set_modified(past).unwrap();
    }
}

#[tokio::test]
async fn nothing_outside_is_changed_or_read_through_a_link() {
    let (_exported, store) = workspace().await;
    let mut export = Vec::new();
    store.export(&id("k"), &mut export).unwrap();
    let (mut combinations, mut refused) = (0, 0);
    for name in NAMES {
        for operation in OPERATIONS {
            for kind in PLANTS {
                let ((workspace, store), outside) = (workspace().await, tempfile::tempdir().unwrap());
                if !plant(kind, &workspace.path().join(name), outside.path()) {
                    continue;
                }
                age(outside.path());
                let before = snapshot(outside.path());
                let what = format!("{operation:?} with {kind:?} at {name}");
                match run(operation, &store, &export).await {
                    Ok(shown) => {
                        // A file with two names may be read, and may be replaced by another one.
                        assert!(kind == Plant::HardLink || !uses(operation, name), "{what} must fail");
                        assert!(!shown.contains("CANARY"), "{what} shows {shown}");
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(uses(operation, name), "{what}: {error:?}");
                        assert_eq!(error.code(), &ErrorCode::STORE_IO, "{what}: {error:?}");
                        let link = if kind == Plant::HardLink { "hard link" } else { "symbolic link" };
                        let message = error.message();
                        assert!(message.contains(link) && message.contains(name), "{what}: {error:?}");
                        assert!(error.suggestion().is_some(), "{what}: {error:?}");
                    }
                }
                if operation == Delete && !uses(operation, name) {
                    // Without its last name inside, a file outside may have one name less.
                    assert!(!workspace.path().join(INSTANCE).exists(), "{what}");
                }
                assert_eq!(snapshot(outside.path()), before, "{what}");
                combinations += 1;
            }
        }
    }
    println!("links × operations: {combinations} combinations, {refused} refused, 0 changed anything outside");
    assert_eq!(combinations, 18 * 9 * 4 - 5 * 9);
}

#[tokio::test]
async fn a_pipe_or_a_directory_in_place_of_a_file_is_an_error_and_no_hang() {
    for name in NAMES {
        for operation in OPERATIONS {
            for pipe in [true, false] {
                let (workspace, store) = workspace().await;
                let at = workspace.path().join(name);
                if at.is_dir() {
                    if !pipe {
                        continue;
                    }
                    fs::remove_dir_all(&at).unwrap();
                } else if at.exists() {
                    fs::remove_file(&at).unwrap();
                }
                match pipe {
                    true => assert!(Command::new("mkfifo").arg(&at).status().unwrap().success()),
                    false => fs::create_dir(&at).unwrap(),
                }
                let what = format!("{operation:?} at {name}, {}", if pipe { "a pipe" } else { "a directory" });
                match run(operation, &store, b"").await {
                    Ok(_) => assert!(!uses(operation, name), "{what} must fail"),
                    // There is nothing to import.
                    Err(error) if operation == Import => assert!(error.suggestion().is_some()),
                    Err(error) => {
                        assert!(uses(operation, name) || (name.ends_with(".tmp") && !pipe), "{what}: {error:?}");
                        assert_eq!(error.code(), &ErrorCode::STORE_IO, "{what}: {error:?}");
                        assert!(error.message().contains(name), "{what}: {error:?}");
                    }
                }
            }
        }
    }
}

#[tokio::test]
async fn the_workspace_and_what_is_above_it_may_be_links() {
    let outside = tempfile::tempdir().unwrap();
    let links = tempfile::tempdir().unwrap();
    symlink(outside.path(), links.path().join("root")).unwrap();
    let inside = links.path().join("root/workspace");
    fs::create_dir(outside.path().join("elsewhere")).unwrap();
    symlink(outside.path().join("elsewhere"), &inside).unwrap();
    let store = FileStore::open(&inside).unwrap();
    for operation in [Run, Show, RuntimeEvents, List, Export, Inspect, Repair, Delete] {
        assert!(run(operation, &store, b"").await.is_ok(), "{operation:?}");
    }
    assert!(!outside.path().join("elsewhere").join(INSTANCE).exists());
}

/// Looking at an instance that was closed properly, or whose last turn was interrupted, changes nothing, not even a
/// time. Exporting one that a crash left damaged repairs it first, like each opening.
#[tokio::test]
async fn what_only_looks_changes_nothing() {
    for interrupted in [false, true] {
        let (workspace, store) = workspace().await;
        if interrupted {
            let events = workspace.path().join(INSTANCE).join("messages/events.jsonl");
            let text = fs::read_to_string(&events).unwrap();
            fs::write(&events, text.rsplit_once('\n').unwrap().0.to_owned() + "\n").unwrap();
        } else {
            turn(store.open(&id("k")).await.unwrap(), "closed").await.unwrap();
        }
        age(workspace.path());
        let before = snapshot(workspace.path());
        for operation in [Inspect, Show, RuntimeEvents, List, Export] {
            run(operation, &store, b"").await.unwrap();
            assert_eq!(snapshot(workspace.path()), before, "{operation:?}");
        }
    }
    // Nor is a file made, and damage stays as it is.
    let (workspace, store) = workspace().await;
    let dir = workspace.path().join(INSTANCE);
    fs::remove_file(dir.join("lock")).unwrap();
    fs::write(dir.join("extensions/notes.json"), "{").unwrap();
    let base = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    fs::write(dir.join("messages/base.jsonl"), format!("rubbish\n{base}")).unwrap();
    age(workspace.path());
    let before = snapshot(workspace.path());
    for operation in [Inspect, RuntimeEvents, List] {
        run(operation, &store, b"").await.unwrap();
    }
    assert!(store.inspect(&id("k")).unwrap().len() >= 2);
    assert!(run(Show, &store, b"").await.is_err());
    assert_eq!(snapshot(workspace.path()), before);
}

/// No path is checked first and used later, so it does not matter when the link appears.
#[test]
fn a_directory_that_is_swapped_with_a_link_while_it_is_used_leads_nowhere() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let ((workspace, store), outside) = (runtime.block_on(workspace()), tempfile::tempdir().unwrap());
    for file in ["base.jsonl", "events.jsonl", "runtime-events.jsonl"] {
        fs::write(outside.path().join(file), "").unwrap();
    }
    age(outside.path());
    let before = snapshot(outside.path());
    let dir = workspace.path().join(INSTANCE);
    let (messages, link, away) = (dir.join("messages"), dir.join("link"), dir.join("away"));
    symlink(outside.path(), &link).unwrap();
    let stop = AtomicBool::new(false);
    let swap = || {
        while !stop.load(Ordering::Relaxed) {
            // Each may fail, where the store has made a directory in the meantime.
            let moves = [(&messages, &away), (&link, &messages), (&messages, &link), (&away, &messages)];
            moves.into_iter().for_each(|(from, to)| _ = fs::rename(from, to));
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(swap);
        for operation in [Run, Show, RuntimeEvents, Export, Repair].into_iter().cycle().take(500) {
            _ = runtime.block_on(run(operation, &store, b""));
        }
        stop.store(true, Ordering::Relaxed);
    });
    assert_eq!(snapshot(outside.path()), before);
}
