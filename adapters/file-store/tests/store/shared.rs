//! D-42: the shared state of an extension through threads of several stores.

use std::thread;

use goondan_core::{Error, ExtensionName};
use goondan_covers::covers;
use goondan_file_store::{FileStore, Fsync};
use goondan_runtime::Store;
use serde_json::{Value, json};

fn name() -> ExtensionName {
    "counting".parse().unwrap()
}

/// Adds one to the number that is shared.
fn add_one(store: &FileStore) {
    let add = |value: Option<Value>| Ok(json!(value.and_then(|value| value.as_u64()).unwrap_or_default() + 1));
    store.update_shared_state(&name(), &mut { add }).unwrap();
}

#[test]
#[covers("D-42")]
fn no_change_of_another_thread_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    thread::scope(|scope| {
        for _ in 0..8 {
            // A store of its own, as another process would have.
            let store = FileStore::open(dir.path()).unwrap().fsync(Fsync::Never);
            scope.spawn(move || (0..50).for_each(|_| add_one(&store)));
        }
    });
    assert_eq!(FileStore::open(dir.path()).unwrap().shared_state(&name()).unwrap(), Some(json!(400)));
}

#[test]
#[covers("D-42")]
fn a_change_that_fails_or_changes_nothing_writes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).unwrap();
    add_one(&store);
    let file = dir.path().join("extensions/counting.json");
    // A file of another implementation.
    std::fs::write(&file, " 1 ").unwrap();
    store.update_shared_state(&name(), &mut |value| Ok(value.unwrap())).unwrap();
    store.update_shared_state(&name(), &mut |_| Err(Error::msg("no"))).unwrap_err();
    assert_eq!(std::fs::read_to_string(&file).unwrap(), " 1 ");
}

#[test]
#[covers("D-42")]
fn a_lock_file_that_was_removed_is_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = FileStore::open(dir.path()).unwrap();
    add_one(&store);
    std::fs::remove_file(dir.path().join("extensions/counting.lock")).unwrap();
    std::fs::write(dir.path().join("extensions/counting.json.tmp"), "left by a crash").unwrap();
    add_one(&store);
    assert_eq!(store.shared_state(&name()).unwrap(), Some(json!(2)));
}
