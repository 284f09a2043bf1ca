//! Target `store`: any bytes as the files of an instance.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use goondan::Result;
use goondan::conversation::{Conversation, Message};
use goondan::store::{Commit, FileStore, Opened};
use goondan::store::{InstanceId, Store};

use crate::block_on;

/// Separates the files of an input.
const SEPARATOR: &[u8] = b"\n====\n";

/// Opens an instance whose `base.jsonl`, `events.jsonl` and state file are the three parts of `data`. It is refused
/// with a remedy; or it opens, with the same content every time, and a turn that was interrupted can be committed.
pub fn store(data: &[u8]) {
    let workspace = tempfile::tempdir().expect("a directory");
    let id: InstanceId = InstanceId { agent: "bot".parse().expect("a name"), key: "k".parse().expect("a key") };
    let dir = workspace.path().join("instances/bot:k");
    let [base, events, state] = files(data);
    write(&dir.join("messages/base.jsonl"), base);
    write(&dir.join("messages/events.jsonl"), events);
    write(&dir.join("extensions/notes.json"), state);

    block_on(async {
        let store = FileStore::open(workspace.path()).expect("a store");
        let read = store.read(&id);
        let Some(first) = refused_or(store.open(&id).await) else { return };
        let mut conversation = conversation(&first);
        if let Ok(read) = read {
            assert_eq!(read.messages, messages(&conversation), "`read` and `open` disagree");
        }
        let Opened { base, interrupted, state, mut journal, .. } = first;
        if let Some(interrupted) = &interrupted {
            let unchanged = BTreeMap::new();
            let commit = Commit::new(&interrupted.turn, &conversation, &unchanged);
            journal.commit(commit).await.expect("an interrupted turn can be committed");
            conversation.fold();
        } else {
            drop(journal);
            let again = store.open(&id).await.expect("what opened once opens again");
            assert_eq!((&again.base, &again.interrupted, &again.state), (&base, &interrupted, &state));
            return;
        }
        drop(journal);
        let after = store.open(&id).await.expect("what was committed opens");
        assert_eq!(after.interrupted, None);
        assert_eq!(after.base, messages(&conversation));
        assert_eq!(after.state, state);
    });
}

fn files(data: &[u8]) -> [&[u8]; 3] {
    let end = |data: &[u8]| data.windows(SEPARATOR.len()).position(|window| window == SEPARATOR);
    let split = |data| end(data).map_or((data, &data[data.len()..]), |at| (&data[..at], &data[at + SEPARATOR.len()..]));
    let (base, rest) = split(data);
    let (events, state) = split(rest);
    [base, events, if state.is_empty() { b"null" } else { state }]
}

fn write(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().expect("a file in a directory")).expect("its directory");
    fs::write(path, bytes).expect("a file");
}

/// Returns the opened instance, or `None` when it was refused with a remedy.
fn refused_or(opened: Result<Opened>) -> Option<Opened> {
    opened.inspect_err(|error| assert!(error.suggestion().is_some(), "no remedy: {error:?}")).ok()
}

fn conversation(opened: &Opened) -> Conversation {
    let (mut conversation, _) = Conversation::from_base(opened.base.iter().cloned());
    for event in opened.interrupted.iter().flat_map(|turn| &turn.events) {
        conversation.apply(event.clone()).expect("events of an opened instance apply");
    }
    conversation
}

fn messages(conversation: &Conversation) -> Vec<Arc<Message>> {
    conversation.messages().cloned().collect()
}
