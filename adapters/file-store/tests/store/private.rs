//! What the file store makes is for its owner alone, whatever the umask is.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

use goondan_core::{AgentName, InstanceKey};
use goondan_file_store::FileStore;
use goondan_runtime::store::{InstanceId, Store};
use goondan_runtime::{Agent, ScriptItem, ScriptedModel};

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// Returns the mode of everything below a directory.
fn modes(path: &Path) -> BTreeMap<PathBuf, u32> {
    let (mut modes, mut rest) = (BTreeMap::new(), vec![path.to_owned()]);
    while let Some(path) = rest.pop() {
        let found = path.symlink_metadata().unwrap();
        if found.is_dir() {
            rest.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        }
        modes.insert(path, found.mode() & 0o7777);
    }
    modes
}

async fn run(store: &FileStore) {
    let agent = Agent::builder("bot").store(store.clone()).model(ScriptedModel::new([ScriptItem::say("yes")]));
    let instance = agent.build().unwrap().instance("k").await.unwrap();
    instance.run("hello").await.unwrap();
    instance.close().await.unwrap();
}

/// Started by the test below with another umask. Run as an ordinary test, without the variable, it does nothing.
#[tokio::test]
async fn child_that_runs_with_another_umask() {
    let Some(root) = std::env::var_os("GOONDAN_TEST_ROOT").map(PathBuf::from) else { return };
    let store = FileStore::in_workspace(&root, "default").unwrap();
    run(&store).await;
    // A torn line is kept aside, in a file that is made too.
    let events = store.instance_dir(&id()).join("messages/events.jsonl");
    let torn = fs::read_to_string(&events).unwrap() + "{\"turn\":\"t";
    fs::write(&events, torn).unwrap();
    run(&store).await;
    let mut export = Vec::new();
    store.export(&id(), &mut export).unwrap();
    store.import(&*export, Some(InstanceId { key: InstanceKey::new("copy").unwrap(), ..id() })).unwrap();
}

#[tokio::test]
async fn directories_and_files_are_for_their_owner_alone() {
    for umask in ["022", "000"] {
        let dir = tempfile::tempdir().unwrap();
        let (root, program) = (dir.path().join("not/yet/there"), std::env::current_exe().unwrap());
        let mut child = Command::new("sh");
        child.arg("-c").arg(format!("umask {umask}; exec \"$0\" --exact private::child_that_runs_with_another_umask"));
        let output = child.arg(program).env("GOONDAN_TEST_ROOT", &root).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
        let modes = modes(&dir.path().join("not"));
        for name in ["bot:k/messages/events.jsonl.corrupt-1", "bot:k/messages/runtime-events.jsonl", "bot:copy/lock"] {
            let path = root.join("workspaces/default/instances").join(name);
            assert!(modes.contains_key(&path) || name == "bot:copy/lock", "{name} is not made: {modes:#?}");
        }
        for (path, mode) in &modes {
            let expected = if path.is_dir() { 0o700 } else { 0o600 };
            assert_eq!(*mode, expected, "{} with umask {umask}", path.display());
        }
    }
}

#[tokio::test]
async fn an_instance_that_others_could_read_is_closed_to_them_when_it_is_opened() {
    let root = tempfile::tempdir().unwrap();
    let store = FileStore::in_workspace(root.path(), "default").unwrap();
    run(&store).await;
    // As something else left it.
    let dir = store.instance_dir(&id());
    for (path, mode) in modes(&root.path().join("workspaces")) {
        fs::set_permissions(&path, Permissions::from_mode(mode | 0o055)).unwrap();
    }
    let above = dir.parent().unwrap().to_owned();
    drop(store.open(&id()).await.unwrap());
    run(&store).await;
    assert_eq!(fs::metadata(&dir).unwrap().mode() & 0o7777, 0o700);
    // What is above it may be shared on purpose.
    assert_eq!(fs::metadata(above).unwrap().mode() & 0o7777, 0o755);
    assert_eq!(store.read(&id()).unwrap().messages.len(), 4);
}
