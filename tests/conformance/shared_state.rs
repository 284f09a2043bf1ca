//! D-42: state that the conversations of an extension share.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use conformance_extensions::shared_state::unshared;
use goondan::agent::Agent;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::{FileStore, MemoryStore, Store};
use goondan::{Error, ErrorCode, json};
use goondan_covers::{both_linkages, covers};
use tempfile::tempdir;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// Builds an agent whose extension has the name `extension`. Its model fails after the input `fail`.
fn sharing(name: &str, extension: &str, log: &Log, store: impl Store) -> Agent {
    let script = [
        ScriptItem::fail("as asked", false).when("^fail$").unwrap().repeat(),
        ScriptItem::call("sharing__fail", json!({})).when("^try$").unwrap().repeat(),
        ScriptItem::say("fine").repeat(),
    ];
    let agent = Agent::builder(name).model(ScriptedModel::new(script)).store(store);
    agent.with_named(extension, "sharing", log.config()).build().unwrap()
}

fn store(workspace: &Path) -> FileStore {
    FileStore::open(workspace).unwrap()
}

fn file(workspace: &Path) -> PathBuf {
    workspace.join("extensions/sharing.json")
}

async fn opening(agent: &Agent) -> Error {
    agent.instance("one").await.map(drop).unwrap_err()
}

#[both_linkages]
#[covers("D-42")]
async fn all_conversations_of_a_workspace_share_the_state_of_a_name() {
    let (dir, log) = (tempdir().unwrap(), Log::new());
    let bot = sharing("bot", "sharing", &log, store(dir.path()));
    let one = bot.instance("one").await.unwrap();
    let two = bot.instance("two").await.unwrap();
    let other = sharing("other", "sharing", &log, store(dir.path())).instance("one").await.unwrap();
    for instance in [&one, &two, &other, &one] {
        instance.run("hello").await.unwrap();
    }
    let last = r#"{"bot:one": 2, "bot:two": 1, "other:one": 1}"#;
    assert_eq!(log.take().last().unwrap(), last);
    assert_eq!(one.states().await.unwrap().len(), 0, "it is no state of a conversation");

    let named = sharing("bot", "named", &log, store(dir.path())).instance("three").await.unwrap();
    named.run("hello").await.unwrap();
    assert_eq!(log.take(), [r#"{"bot:three": 1}"#], "another name has its own");

    one.close().await.unwrap();
    let one = sharing("bot", "sharing", &log, store(dir.path())).instance("four").await.unwrap();
    one.run("hello").await.unwrap();
    assert_eq!(log.take(), [r#"{"bot:four": 1, "bot:one": 2, "bot:two": 1, "other:one": 1}"#]);
}

#[both_linkages]
#[covers("D-42")]
async fn a_change_is_in_the_file_at_once_and_stays_when_the_turn_fails() {
    let (dir, log) = (tempdir().unwrap(), Log::new());
    let instance = sharing("bot", "sharing", &log, store(dir.path())).instance("one").await.unwrap();
    assert!(!file(dir.path()).exists(), "reading makes no file");
    instance.run("fail").await.unwrap_err();
    assert_eq!(fs::read_to_string(file(dir.path())).unwrap(), "{\"bot:one\":1}\n");
    let extensions = dir.path().join("extensions");
    let mode = |path: PathBuf| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(extensions.clone()), 0o700);
    let mut names: Vec<_> = fs::read_dir(&extensions).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["sharing.json", "sharing.lock"]);
    for name in names {
        assert_eq!(mode(extensions.join(&name)), 0o600, "{name:?} is for its owner alone");
    }
}

#[both_linkages]
#[covers("D-42")]
async fn a_change_that_fails_or_panics_leaves_the_old_value() {
    let log = Log::new();
    let dir = tempdir().unwrap();
    let in_files = sharing("bot", "sharing", &log, store(dir.path())).instance("one").await.unwrap();
    let memory = MemoryStore::new().with_directories();
    let in_memory = sharing("bot", "sharing", &log, memory).instance("one").await.unwrap();
    for instance in [in_files, in_memory] {
        instance.run("try").await.unwrap();
        let messages = instance.messages().await.unwrap();
        assert_eq!(messages[2].text(), "null", "the tool made its changes: {messages:?}");
        instance.run("hello").await.unwrap();
        assert_eq!(log.take(), [r#"{"bot:one": 1}"#, r#"{"bot:one": 2}"#]);
    }
}

#[both_linkages]
#[covers("D-42")]
async fn a_store_without_directories_has_no_shared_state() {
    let log = Log::new();
    let error = opening(&sharing("bot", "sharing", &log, MemoryStore::new())).await;
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "sharing"));
    let report = error.report().to_string();
    assert!(report.contains("E_STORE_UNSUPPORTED") && report.contains("`sharing` has no shared state"), "{report}");
    assert!(error.suggestion().unwrap().contains("`FileStore`"), "{error:?}");

    let memory = MemoryStore::new().with_directories();
    for key in ["one", "two"] {
        sharing("bot", "sharing", &log, memory.clone()).instance(key).await.unwrap().run("hello").await.unwrap();
    }
    assert_eq!(log.take(), [r#"{"bot:one": 1}"#, r#"{"bot:one": 1, "bot:two": 1}"#]);
}

#[both_linkages]
#[covers("D-42")]
async fn a_file_that_cannot_be_read_fails_the_opening_and_is_kept() {
    let (dir, log) = (tempdir().unwrap(), Log::new());
    let path = file(dir.path());
    fs::create_dir(path.parent().unwrap()).unwrap();
    for content in ["", "{", "{\"bot:one\":1}}", "\0\0", "[1]", "{\"bot:one\":-1}"] {
        fs::write(&path, content).unwrap();
        let error = opening(&sharing("bot", "sharing", &log, store(dir.path()))).await;
        let report = error.report().to_string();
        let names_it = report.contains("E_EXT_STATE") && report.contains("extensions/sharing.json");
        assert!(names_it, "{content}: {report}");
        assert_eq!(fs::read_to_string(&path).unwrap(), content);
    }
    fs::remove_file(&path).unwrap();
    let outside = dir.path().join("outside");
    fs::write(&outside, "{}").unwrap();
    symlink(&outside, &path).unwrap();
    let error = opening(&sharing("bot", "sharing", &log, store(dir.path()))).await;
    let report = error.report().to_string();
    assert!(report.contains("sharing.json is a symbolic link"), "{report}");
}

#[both_linkages]
#[covers("D-42")]
async fn a_file_that_breaks_while_a_conversation_is_open_fails_its_turns() {
    let (dir, log) = (tempdir().unwrap(), Log::new());
    let instance = sharing("bot", "sharing", &log, store(dir.path())).instance("one").await.unwrap();
    instance.run("hello").await.unwrap();
    fs::write(file(dir.path()), "broken").unwrap();
    let error = instance.run("hello").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_STATE, "{error:?}");
    assert!(error.message().contains(&file(dir.path()).display().to_string()), "{error:?}");
    assert_eq!(fs::read_to_string(file(dir.path())).unwrap(), "broken");
    fs::write(file(dir.path()), "{\"bot:one\":7}").unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(log.take().last().unwrap(), r#"{"bot:one": 8}"#);
}

#[both_linkages]
#[covers("D-42")]
async fn a_value_without_json_is_refused_and_so_is_another_shape() {
    let dir = tempdir().unwrap();
    let agent = agent([]).with::<unshared::Extension>(json!({})).store(store(dir.path())).build().unwrap();
    let report = opening(&agent).await.report().to_string();
    assert!(report.contains("the shared state of `unshared` is of another shape"), "{report}");
    assert_eq!(fs::read_to_string(dir.path().join("extensions/unshared.json")).unwrap(), "[1.0]\n");
}
