//! A library can be replaced while conversations go on (LINK-05).

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_abi::Library;
use goondan_core::ExtensionDescriptor;
use goondan_covers::covers;
use goondan_runtime::{Agent, Change, ScriptItem};
use serde_json::json;
use tempfile::TempDir;

use crate::support::{agent, optimized};

/// Returns the library of the fixture and the offsets of the word `wrong` of its error. Built in release, because it
/// is read often.
fn fixture() -> &'static (Vec<u8>, Vec<usize>) {
    static FIXTURE: OnceLock<(Vec<u8>, Vec<usize>)> = OnceLock::new();
    FIXTURE.get_or_init(|| {
        let bytes = fs::read(optimized()).unwrap();
        let found = bytes.windows(13).enumerate().filter(|(_, text)| text == b"it went wrong");
        let places: Vec<_> = found.map(|(place, _)| place + 8).collect();
        assert!(!places.is_empty());
        (bytes, places)
    })
}

/// Returns that library with `word` instead of `wrong`.
fn saying(word: &[u8; 5]) -> Vec<u8> {
    let (mut bytes, places) = fixture().clone();
    for place in places {
        bytes[place..place + 5].copy_from_slice(word);
    }
    bytes
}

struct File {
    _directory: TempDir,
    path: PathBuf,
}

impl File {
    fn new(bytes: &[u8]) -> Self {
        let directory = TempDir::new().unwrap();
        let path = directory.path().join("libmodes.so");
        fs::write(&path, bytes).unwrap();
        Self { _directory: directory, path }
    }
}

fn load(path: &Path) -> &'static ExtensionDescriptor {
    Library::inspect(path).unwrap().load().unwrap().extension(Some("modes")).unwrap()
}

async fn failing(extension: &'static ExtensionDescriptor) -> Agent {
    let script = [ScriptItem::say("hi").repeat()];
    agent(script).described_extension("modes", extension, json!({ "mode": "fail" })).build().unwrap()
}

#[tokio::test]
#[covers("LINK-05")]
async fn a_replaced_file_is_new_code_after_a_reload_and_the_old_code_runs_until_then() {
    for in_place in [true, false] {
        let file = File::new(&saying(if in_place { b"north" } else { b"left." }));
        let agent = failing(load(&file.path)).await;
        let instance = agent.instance("one").await.unwrap();
        let before = instance.run("hello").await.unwrap_err().message().to_string();
        let new = saying(if in_place { b"south" } else { b"right" });
        if in_place {
            // As `cp` does: the file that was loaded is truncated and overwritten.
            fs::write(&file.path, new).unwrap();
        } else {
            let beside = file.path.with_extension("new");
            fs::write(&beside, new).unwrap();
            fs::rename(beside, &file.path).unwrap();
        }
        assert_eq!(instance.run("hello").await.unwrap_err().message(), before, "no reload yet");
        let reloaded = agent.reload(&failing(load(&file.path)).await).await.unwrap();
        assert!(matches!(reloaded.changes[0].change, Change::Replaced { .. }), "{reloaded:?}");
        let after = instance.run("hello").await.unwrap_err().message().to_string();
        let expected = if in_place { ["it went north", "it went south"] } else { ["it went left.", "it went right"] };
        assert_eq!([before, after], expected);
    }
}

#[tokio::test]
async fn the_same_content_is_the_same_library_at_any_path() {
    let bytes = saying(b"round");
    let (one, other) = (File::new(&bytes), File::new(&bytes));
    let first = load(&one.path);
    assert!(std::ptr::eq(first, load(&other.path)));
    fs::write(&one.path, &bytes).unwrap();
    assert!(std::ptr::eq(first, load(&one.path)), "an agent is reloaded and finds nothing changed");
}

#[test]
fn a_file_that_is_half_written_is_refused_and_the_whole_one_is_loaded() {
    let (old, new) = (saying(b"old 1"), saying(b"new 1"));
    let file = File::new(&old);
    let inspected = Library::inspect(&file.path).unwrap();
    fs::write(&file.path, &new[..new.len() / 2]).unwrap();
    let error = inspected.load().unwrap_err();
    assert!(error.message().ends_with("is not the file that was inspected"), "{error}");
    assert!(Library::inspect(&file.path).is_err());
    fs::write(&file.path, &new).unwrap();
    load(&file.path);
}

#[test]
fn only_a_file_with_the_digest_that_was_computed_is_loaded() {
    let file = File::new(&saying(b"pin 1"));
    let inspected = Library::inspect(&file.path).unwrap();
    inspected.sha256().unwrap();
    fs::write(&file.path, saying(b"pin 2")).unwrap();
    let error = inspected.load().unwrap_err();
    assert!(error.message().ends_with("is not the file that was inspected"), "{error}");
}
