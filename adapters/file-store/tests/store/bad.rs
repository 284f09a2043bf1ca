//! Bad disks, bad files, and processes that open the same instance: each results in a clear error or the documented
//! behaviour.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use goondan_core::{AgentName, Conversation, Error, ErrorCode, InstanceKey, Message, MessageEvent, TurnId};
use goondan_file_store::FileStore;
use goondan_runtime::store::{Commit, Durability, Opened, TurnStart};
use goondan_runtime::{Agent, InstanceId, ScriptItem, ScriptedModel, Store};
use tempfile::TempDir;

use super::records::checkpoint;

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

async fn open(workspace: &Path) -> Result<Opened, Error> {
    FileStore::open(workspace).unwrap().open(&id()).await
}

async fn refusal(workspace: &Path) -> Error {
    let error = open(workspace).await.err().expect("the instance must not open");
    assert!(error.suggestion().is_some(), "{error:?}");
    error
}

fn line(id: &str, text: &str, time: &str) -> String {
    format!(
        r#"{{"id":"{id}","data":{{"role":"user","content":"{text}"}},"metadata":{{}},"createdAt":"{time}","source":{{"type":"user"}}}}"#
    ) + "\n"
}

const NOW: &str = "2026-01-31T12:00:00.000Z";

/// Creates an instance by opening it once.
async fn instance() -> (TempDir, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    drop(open(workspace.path()).await.unwrap());
    let dir = FileStore::open(workspace.path()).unwrap().instance_dir(&id());
    (workspace, dir)
}

/// Runs one turn that appends a message with `text`.
async fn turn(opened: &mut Opened, turn: &str, text: String) -> Result<(), Error> {
    let (mut conversation, _) = Conversation::from_base(opened.base.iter().cloned());
    let turn = TurnId::from(turn);
    opened.journal.begin(TurnStart::new(&turn))?;
    let event = MessageEvent::append(Message::user(text));
    conversation.apply(event.clone())?;
    opened.journal.record(&event, None)?;
    opened.journal.flush(Durability::Flushed).await?;
    opened.journal.commit(Commit::new(&turn, &conversation, &BTreeMap::new())).await?;
    conversation.fold();
    opened.base = conversation.messages().cloned().collect();
    Ok(())
}

/// Runs one test of this program in another process, with the workspace in an environment variable. Run as an ordinary
/// test, without the variable, that test does nothing.
fn child(shell: &str, test: &str, workspace: &Path) -> Child {
    let program = std::env::current_exe().unwrap();
    let mut command = Command::new("sh");
    command.arg("-c").arg(format!("{shell} exec \"$0\" --exact bad::{test} --nocapture")).arg(program);
    command.env("GOONDAN_TEST_WORKSPACE", workspace).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

fn workspace_of_child() -> Option<PathBuf> {
    std::env::var_os("GOONDAN_TEST_WORKSPACE").map(PathBuf::from)
}

fn wait_for(output: &mut impl BufRead, word: &str) -> String {
    let mut line = String::new();
    while !line.contains(word) {
        line.clear();
        assert!(output.read_line(&mut line).unwrap() > 0, "the child ended without `{word}`");
    }
    line
}

#[tokio::test]
async fn child_that_holds_an_instance() {
    let Some(workspace) = workspace_of_child() else { return };
    let _opened = open(&workspace).await.unwrap();
    println!("\nholding");
    std::io::stdin().read_line(&mut String::new()).unwrap();
}

#[tokio::test]
async fn another_process_is_named_and_a_dead_one_holds_no_lock() {
    let workspace = tempfile::tempdir().unwrap();
    let mut holder = child("", "child_that_holds_an_instance", workspace.path());
    wait_for(&mut BufReader::new(holder.stdout.take().unwrap()), "holding");
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::STORE_LOCKED);
    assert!(error.message().contains(&format!("in process {}", holder.id())), "{error:?}");
    // SIGKILL: the process cannot clean up.
    holder.kill().unwrap();
    holder.wait().unwrap();
    assert!(open(workspace.path()).await.is_ok());
}

#[tokio::test]
async fn child_that_writes_until_the_disk_is_full() {
    let Some(workspace) = workspace_of_child() else { return };
    let mut opened = open(&workspace).await.unwrap();
    let mut committed = 0;
    let error = loop {
        match turn(&mut opened, &format!("t{committed}"), "x".repeat(1000)).await {
            Ok(()) => committed += 1,
            Err(error) => break error,
        }
        assert!(committed < 1000, "the limit is not there");
    };
    println!("\ncommitted {committed} {} {}", error.code(), error.source().is_some());
    std::io::stdout().flush().unwrap();
}

#[tokio::test]
async fn a_full_disk_fails_the_turn_and_keeps_those_before() {
    let workspace = tempfile::tempdir().unwrap();
    // Limit files to 16 KiB. With SIGXFSZ ignored, a write beyond that fails as on a full disk.
    let limits = "trap '' XFSZ; ulimit -f 32;";
    let mut full = child(limits, "child_that_writes_until_the_disk_is_full", workspace.path());
    let mut output = BufReader::new(full.stdout.take().unwrap());
    let said = wait_for(&mut output, "committed");
    full.wait().unwrap();
    let words: Vec<_> = said.split_whitespace().collect();
    let committed: usize = words[1].parse().unwrap();
    assert!(committed > 5, "{said}");
    assert_eq!(words[2..], ["E_STORE_IO", "true"]);
    // With space again, every acknowledged turn is stored exactly once, and the instance opens.
    let opened = open(workspace.path()).await.unwrap();
    assert!((committed..=committed + 1).contains(&opened.base.len()), "{said}: {}", opened.base.len());
    assert!(opened.base.iter().all(|message| message.text().len() == 1000));
}

#[tokio::test]
async fn a_directory_instead_of_a_file_is_named() {
    for name in ["messages/base.jsonl", "messages/events.jsonl", "lock", "extensions/notes.json"] {
        let (workspace, dir) = instance().await;
        _ = fs::remove_file(dir.join(name));
        fs::create_dir_all(dir.join(name)).unwrap();
        let error = open(workspace.path()).await.err().unwrap();
        assert!([ErrorCode::STORE_IO, ErrorCode::EXT_STATE].contains(error.code()), "{error:?}");
        assert!(error.message().contains(name), "{error:?}");
    }
}

#[tokio::test]
async fn a_file_instead_of_a_directory_is_named() {
    for name in ["instances", "instances/bot:k", "instances/bot:k/messages", "instances/bot:k/extensions"] {
        let workspace = tempfile::tempdir().unwrap();
        let path = workspace.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "in the way").unwrap();
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_IO);
        assert!(error.message().contains(name), "{error:?}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "in the way");
    }
}

/// Uses `/proc`, because permissions do not stop tests that run as root.
#[tokio::test]
async fn a_place_that_cannot_be_written_is_named() {
    let error = open(Path::new("/proc/goondan")).await.err().unwrap();
    assert_eq!(error.code(), &ErrorCode::STORE_IO);
    assert!(error.message().contains("/proc/goondan") && error.source().is_some(), "{error:?}");
}

#[tokio::test]
async fn a_link_out_of_the_state_root_is_refused() {
    for name in ["", "messages", "messages/base.jsonl", "messages/events.jsonl", "metadata.json", "lock"] {
        let (workspace, dir) = instance().await;
        let (outside, inside) = (tempfile::tempdir().unwrap(), dir.join(name));
        let inside = if name.is_empty() { dir.clone() } else { inside };
        let target = outside.path().join("target");
        fs::rename(&inside, &target).unwrap();
        symlink(&target, &inside).unwrap();
        let error = refusal(workspace.path()).await;
        assert_eq!(error.code(), &ErrorCode::STORE_IO, "{name}");
        assert!(error.message().contains("symbolic link"), "{error:?}");
    }
}

/// Makes this the base of the instance.
fn write_base(dir: &Path, base: &str) {
    fs::write(dir.join("messages/base.jsonl"), base).unwrap();
    fs::write(dir.join("messages/events.jsonl"), checkpoint(base, &"{}")).unwrap();
}

#[tokio::test]
async fn a_very_long_line_is_a_message_like_any_other() {
    let (workspace, dir) = instance().await;
    let long = line("a", &"x".repeat(100 << 20), NOW);
    write_base(&dir, &long);
    let opened = open(workspace.path()).await.unwrap();
    assert_eq!(opened.base[0].text().len(), 100 << 20);
}

#[tokio::test]
async fn invalid_utf_8_is_damage() {
    let (workspace, dir) = instance().await;
    let base = line("a", "one", NOW) + &line("b", "two", NOW);
    write_base(&dir, &base);
    let mut bytes = base.into_bytes();
    let at = bytes.windows(3).position(|text| text == b"one").unwrap();
    bytes[at] = 0xff;
    fs::write(dir.join("messages/base.jsonl"), &bytes).unwrap();
    let error = refusal(workspace.path()).await;
    assert_eq!(error.code(), &ErrorCode::STORE_DAMAGED);
    assert!(error.message().contains("base.jsonl, line 1:"), "{error:?}");
    assert_eq!(fs::read(dir.join("messages/base.jsonl")).unwrap(), bytes);
}

async fn say(workspace: &Path) -> Vec<String> {
    let store = FileStore::open(workspace).unwrap();
    let agent = Agent::builder("bot").store(store.clone()).model(ScriptedModel::new([ScriptItem::say("yes")]));
    let instance = agent.build().unwrap().instance("k").await.unwrap();
    instance.run("and now?").await.unwrap();
    instance.close().await.unwrap();
    store.read(&id()).unwrap().messages.iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn of_messages_with_one_id_the_first_counts() {
    let (workspace, dir) = instance().await;
    let base = line("a", "first", NOW) + &line("a", "second", NOW) + &line("b", "third", NOW);
    write_base(&dir, &base);
    say(workspace.path()).await;
    let stored = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    assert!(stored.starts_with(&base), "nothing is dropped from the file: {stored}");
    assert_eq!(say(workspace.path()).await[..2], ["first", "third"]);
}

/// Messages are in the order of their lines; no clock is read to sort them.
#[tokio::test]
async fn a_clock_that_goes_backwards_changes_nothing() {
    let (workspace, dir) = instance().await;
    let future = "2999-01-01T00:00:00.000Z";
    let metadata = fs::read_to_string(dir.join("metadata.json")).unwrap();
    let year = metadata.find("\"createdAt\":\"").unwrap() + 13;
    fs::write(dir.join("metadata.json"), format!("{}2999{}", &metadata[..year], &metadata[year + 4..])).unwrap();
    let base = line("a", "from the future", future) + &line("b", "before it", NOW);
    write_base(&dir, &base);
    assert_eq!(say(workspace.path()).await, ["from the future", "before it", "and now?", "yes"]);
    assert!(fs::read_to_string(dir.join("metadata.json")).unwrap().contains("\"createdAt\":\"2999"));
}
