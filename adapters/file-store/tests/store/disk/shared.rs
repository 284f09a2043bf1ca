//! D-42: what a crash leaves of a shared state.

use std::path::Path;

use goondan_core::ExtensionName;
use goondan_covers::covers;
use goondan_file_store::FileStore;
use goondan_runtime::Store;
use serde_json::{Value, json};

use super::crashes::scratch;
use super::image::{DiskModel, Image, write_image};
use super::recorder::{Op, Recorder};

const CHANGES: u64 = 3;

fn set(store: &FileStore, value: u64) {
    let name = ExtensionName::new("shared").unwrap();
    store.update_shared_state(&name, &mut |_| Ok(json!({ "value": value, "text": "é漢".repeat(50) }))).unwrap();
}

/// Returns the value that the next process finds in an image, after it has changed it once more.
fn found(image: &Image) -> u64 {
    let dir = scratch();
    write_image(image, dir.path());
    let store = FileStore::open(dir.path()).unwrap();
    let name = ExtensionName::new("shared").unwrap();
    let value = store.shared_state(&name).unwrap();
    set(&store, 100);
    assert_eq!(store.shared_state(&name).unwrap().unwrap()["value"], 100);
    value.as_ref().and_then(|value| Value::as_u64(&value["value"])).unwrap_or_default()
}

#[test]
#[covers("D-42")]
fn a_crash_leaves_the_old_value_or_the_new_one() {
    let dir = scratch();
    let recorder = Recorder::new(dir.path());
    let store = FileStore::open(dir.path()).unwrap().on_disk(recorder.clone());
    let changes: Vec<Vec<Op>> = (1..=CHANGES)
        .map(|value| {
            set(&store, value);
            recorder.take()
        })
        .collect();
    let (mut disk, mut images) = (DiskModel::of(&Image::new()), 0);
    for (before, ops) in (0..).zip(&changes) {
        for op in ops {
            if let Op::Write { bytes, .. } = op {
                for cut in [0, 1, bytes.len() / 2, bytes.len() - 1] {
                    let mut torn = disk.clone();
                    torn.apply(op, Some(cut));
                    assert_eq!(found(&torn.seen()), before, "{cut} bytes were written");
                }
            }
            disk.apply(op, None);
            for image in disk.survivors().into_iter().chain([disk.seen()]) {
                let found = found(&image);
                assert!([before, before + 1].contains(&found), "{found} after a crash at {op:?}");
                images += 1;
            }
        }
        for image in disk.survivors() {
            assert_eq!(found(&image), before + 1, "a change that returned is on the disk");
        }
    }
    assert!(images > 20, "{images} images");
    assert!(Path::new(dir.path()).join("extensions/shared.json").exists());
}
