//! Child process that changes the shared state of an extension until it is killed.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

use goondan::store::{FileStore, Store};
use goondan::{Result, Value, json};

/// Counts up the number of `writer`, and prints it whenever the change has returned.
pub(crate) fn run(dir: &Path, writer: &str) -> Result<()> {
    let (store, extension) = (FileStore::open(dir)?, "counting".parse()?);
    loop {
        let mut changed = 0;
        store.update_shared_state(&extension, &mut |value| {
            let numbers = value.map(serde_json::from_value::<BTreeMap<String, u64>>).transpose()?;
            let mut numbers = numbers.unwrap_or_default();
            let number = numbers.entry(writer.to_owned()).or_default();
            *number += 1;
            changed = *number;
            Ok::<Value, _>(json!(numbers))
        })?;
        // One write, so that the parent reads the whole line or nothing.
        std::io::stdout().write_all(format!("{changed}\n").as_bytes())?;
    }
}
