//! What `#[init]` can ask about its conversation, and the directory for the files of an extension.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::Duration;

use conformance_extensions::init_context::{Placed, placed_module};
use goondan::agent::{AgentBuilder, Instance};
use goondan::extension::BundleFiles;
use goondan::model::ScriptItem;
use goondan::store::{FileStore, MemoryStore, Store};
use goondan::{ErrorCode, Result, json};
use goondan_covers::{both_linkages, covers};
use tempfile::tempdir;

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// Describes an agent whose extension writes files.
fn with_files(log: &Log, store: impl Store) -> AgentBuilder {
    agent([ScriptItem::say("hi").repeat()]).with::<Placed>(json!({ "log": log, "files": true })).store(store)
}

fn store(state_root: &Path) -> FileStore {
    FileStore::in_workspace(state_root, "My Swarm").unwrap()
}

async fn open(agent: AgentBuilder, instance: &str) -> Result<()> {
    agent.build()?.instance(instance).await?.close().await
}

#[both_linkages]
async fn init_learns_its_extension_agent_conversation_workspace_and_bundle() {
    let (log, root) = (Log::new(), tempdir().unwrap());
    let stored = agent([]).with_named("quarters", "placed", log.config()).bundle_root(root.path());
    open(stored.store(store(root.path())), "user:1").await.unwrap();
    let path = root.path().display();
    assert_eq!(log.take(), [format!("quarters assistant user:1 my-swarm {path} inspect=false")]);

    open(agent([]).with::<Placed>(log.config()), "one").await.unwrap();
    open(agent([]).with::<Placed>(log.config()).inspect(), "one").await.unwrap();
    let without = "placed assistant one - - inspect=";
    assert_eq!(log.take(), [format!("{without}false"), format!("{without}true")]);
}

#[both_linkages]
async fn a_relative_bundle_root_is_made_absolute() {
    let log = Log::new();
    open(agent([]).with::<Placed>(log.config()).bundle_root("bundles"), "one").await.unwrap();
    let root = std::env::current_dir().unwrap().join("bundles");
    assert_eq!(log.take(), [format!("placed assistant one - {} inspect=false", root.display())]);
}

#[both_linkages]
async fn init_takes_its_parameters_in_any_order() {
    let log = Log::new();
    let instance = agent([]).with::<placed_module::Extension>(log.config()).build().unwrap();
    let instance = instance.instance("one").await.unwrap();
    assert_eq!(log.take(), ["placed-module"]);
    assert_eq!(instance.states().await.unwrap()["placed-module"], "one");
}

#[both_linkages]
async fn the_conversations_of_an_extension_share_a_directory_that_other_extensions_do_not_have() {
    let (log, root) = (Log::new(), tempdir().unwrap());
    let agent = with_files(&log, store(root.path())).build().unwrap();
    let one = agent.instance("one").await.unwrap();
    open(with_files(&log, store(root.path())), "two").await.unwrap();
    log.take();
    one.run("hello").await.unwrap();
    assert_eq!(log.take(), ["assistant:one\nassistant:two\n"]);

    let other =
        with_files(&log, store(root.path())).with_named("other", "placed", json!({ "log": log, "files": true }));
    open(other, "three").await.unwrap();
    let extensions = root.path().join("workspaces/my-swarm/extensions");
    assert_eq!(fs::read_to_string(extensions.join("other/visitors")).unwrap(), "assistant:three\n");
    for dir in [extensions.clone(), extensions.join("placed")] {
        assert_eq!(dir.metadata().unwrap().permissions().mode() & 0o777, 0o700, "for its owner alone");
    }
}

#[both_linkages]
async fn there_is_no_directory_without_a_state_root() {
    let log = Log::new();
    let error = open(with_files(&log, MemoryStore::new()), "one").await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "placed"));
    assert!(error.suggestion().unwrap().contains("`FileStore`"), "{error:?}");
    let report = error.report().to_string();
    assert!(report.contains("E_STORE_UNSUPPORTED") && report.contains("`placed` has no directory"), "{report}");
}

#[both_linkages]
async fn a_store_in_memory_can_have_directories_which_are_removed_with_it() {
    let (log, store) = (Log::new(), MemoryStore::new().with_directories());
    let dir = store.extension_dir(&"placed".parse().unwrap()).unwrap();
    open(with_files(&log, store.clone()), "one").await.unwrap();
    assert_eq!(fs::read_to_string(dir.join("visitors")).unwrap(), "assistant:one\n");
    drop(store);
    assert!(!dir.exists());
}

#[both_linkages]
#[covers("LINKS-01")]
async fn no_directory_is_made_or_used_through_a_link() {
    let log = Log::new();
    for link in ["extensions", "extensions/placed"] {
        let (root, outside) = (tempdir().unwrap(), tempdir().unwrap());
        let link = root.path().join("workspaces/my-swarm").join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(outside.path(), &link).unwrap();
        let error = open(with_files(&log, store(root.path())), "one").await.unwrap_err();
        let report = error.report().to_string();
        assert!(report.contains(&format!("{} is a symbolic link", link.display())), "{report}");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}

/// Returns the number that the extensions of a conversation were told.
async fn number(instance: &Instance, log: &Log) -> String {
    log.take();
    instance.events().emit("placed.number", ()).await.unwrap();
    assert!(instance.events().settle(Duration::from_secs(60)).await.unwrap());
    let [one, other] = &log.take()[..] else { panic!("there are two extensions") };
    assert_eq!(one, other);
    one.clone()
}

#[both_linkages]
async fn a_number_tells_conversations_apart_that_have_the_same_names_and_stays_over_reloads() {
    let log = Log::new();
    // Each is stored in memory, apart from the other.
    let build = || {
        let two = agent([]).with::<Placed>(log.config()).with_named("quarters", "placed", log.config());
        two.build().unwrap()
    };
    let [first, second] = [build(), build()];
    let [one, other] = [first.instance("a").await.unwrap(), second.instance("a").await.unwrap()];
    let before = number(&one, &log).await;
    assert_ne!(before, number(&other, &log).await);
    let changed = agent([]).with::<Placed>(json!({ "log": log, "files": false }));
    let changed = changed.with_named("quarters", "placed", log.config());
    first.reload(&changed.build().unwrap()).await.unwrap();
    assert_eq!(before, number(&one, &log).await);
}

/// Returns what the extension `placed` is told when it asks again.
async fn asked(event: &str, instance: &Instance, log: &Log) -> String {
    log.take();
    instance.events().emit(event, ()).await.unwrap();
    assert!(instance.events().settle(Duration::from_secs(60)).await.unwrap());
    log.take().pop().unwrap()
}

#[both_linkages]
#[covers("LEGACY-CAPS-01")]
async fn an_extension_learns_which_others_are_there_now() {
    let log = Log::new();
    let placed = || agent([]).with::<Placed>(log.config());
    let agent = placed().build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(asked("placed.others", &instance, &log).await, "placed=placed");
    let with_others = |files| placed().with_named("quarters", "seeker", json!({ "log": log, "files": files }));
    log.take();
    agent.reload(&with_others(true).build().unwrap()).await.unwrap_err();
    let all = "placed=placed quarters=seeker";
    assert_eq!(log.take(), [all], "`#[init]` of an extension that then fails");
    assert_eq!(asked("placed.others", &instance, &log).await, "placed=placed");
    agent.reload(&with_others(false).build().unwrap()).await.unwrap();
    assert_eq!(log.take(), [all]);
    assert_eq!(asked("placed.others", &instance, &log).await, all, "an extension that was kept");
}

#[both_linkages]
#[covers("TREE-01")]
async fn an_extension_learns_which_files_its_agent_is_made_of_now() {
    let log = Log::new();
    let of = |bundle: BundleFiles| agent([]).with::<Placed>(log.config()).bundle_files(bundle).build().unwrap();
    let file = |name: &str| Path::new("/bundle").join(name);
    let first = of(BundleFiles::new([file("goondan.yaml")]));
    let instance = first.instance("one").await.unwrap();
    assert_eq!(asked("placed.files", &instance, &log).await, "/bundle/goondan.yaml more=false");
    // The extension itself is kept.
    let files = [file("goondan.yaml"), file("script.yaml")];
    first.reload(&of(BundleFiles::new(files).read_from("/bundle"))).await.unwrap();
    let all = "/bundle/goondan.yaml /bundle/script.yaml more=true";
    assert_eq!(asked("placed.files", &instance, &log).await, all);

    let root = tempdir().unwrap();
    let stored = agent([]).with::<Placed>(log.config()).store(store(root.path())).build().unwrap();
    let instance = stored.instance("one").await.unwrap();
    // And where it is kept what a person has agreed to.
    let [workspaces, agreements] = ["workspaces", "trust"].map(|directory| root.path().join(directory));
    let expected = format!("{} {} more=false", workspaces.display(), agreements.display());
    assert_eq!(asked("placed.files", &instance, &log).await, expected);
}

#[both_linkages]
#[covers("ENV-01")]
async fn an_extension_learns_which_variables_its_agent_reads_as_secrets_now() {
    let log = Log::new();
    let of = |names: &[&str]| {
        agent([]).with::<Placed>(log.config()).secret_variables(names.iter().copied()).build().unwrap()
    };
    let first = of(&["B_KEY", "A_KEY", "B_KEY"]);
    let instance = first.instance("one").await.unwrap();
    assert_eq!(asked("placed.secrets", &instance, &log).await, "A_KEY B_KEY");
    // The extension itself is kept.
    first.reload(&of(&["C_KEY"])).await.unwrap();
    assert_eq!(asked("placed.secrets", &instance, &log).await, "C_KEY");
}
