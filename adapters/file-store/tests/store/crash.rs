//! CRASH-01: an instance opens from every state that a crash can leave its files in, with each committed turn exactly
//! once, and of a turn that was not committed only the recorded events.
//!
//! The tests build these states, called images, from the files before and after each commit and from the documented
//! protocol, so that they do not depend on the implementation of the store.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use goondan_core::{AgentName, Conversation, ExtensionName, InstanceKey, Message, MessageEvent, TurnId};
use goondan_file_store::FileStore;
use goondan_runtime::store::{Commit, Durability, Interrupted, Journal, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

type State = BTreeMap<ExtensionName, Value>;
/// The files of an instance, by path relative to its directory.
type Image = BTreeMap<String, Vec<u8>>;

const BASE: &str = "messages/base.jsonl";
const EVENTS: &str = "messages/events.jsonl";

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// Returns a directory in memory if the system has one, because thousands of images are synced.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn instance_dir(workspace: &Path) -> PathBuf {
    workspace.join("instances/bot:k")
}

fn message(id: &str) -> Message {
    // A line end, multi-byte letters and a fraction: cutting or encoding them again could change them.
    Message::user(format!("text\nof {id} é漢")).with_id(id).with_metadata("score", 0.1 + 0.2)
}

fn append(id: &str) -> MessageEvent {
    MessageEvent::append(message(id))
}

fn state(values: &[(&str, Value)]) -> State {
    values.iter().map(|(name, value)| (ExtensionName::new(name).unwrap(), value.clone())).collect()
}

fn snapshot(workspace: &Path) -> Image {
    let dir = instance_dir(workspace);
    let mut image = Image::new();
    for folder in ["messages", "extensions"] {
        for entry in fs::read_dir(dir.join(folder)).into_iter().flatten() {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            image.insert(name, fs::read(entry.path()).unwrap());
        }
    }
    image.insert("metadata.json".to_owned(), fs::read(dir.join("metadata.json")).unwrap());
    image
}

/// The content of an opened instance.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    base: Vec<Message>,
    state: State,
    interrupted: Option<(TurnId, Vec<MessageEvent>)>,
}

impl Content {
    async fn open(workspace: &Path) -> (Self, Box<dyn Journal>) {
        let opened = FileStore::open(workspace).unwrap().open(&id()).await;
        let Opened { base, interrupted, state, journal, .. } = opened.unwrap_or_else(|error| panic!("{error:?}"));
        let base = base.iter().map(|message| (**message).clone()).collect();
        let interrupted = interrupted.map(|Interrupted { turn, events, .. }| (turn, events));
        (Self { base, state, interrupted }, journal)
    }

    fn conversation(&self) -> Conversation {
        let (mut conversation, duplicates) = Conversation::from_base(self.base.iter().cloned().map(Into::into));
        assert!(duplicates.is_empty(), "applied twice: {duplicates:?}");
        for event in self.interrupted.iter().flat_map(|(_, events)| events) {
            conversation.apply(event.clone()).unwrap();
        }
        conversation
    }
}

/// One turn of the scenario, with the files and contents before and after its commit.
struct Turn {
    id: &'static str,
    events: Vec<MessageEvent>,
    changed: State,
    /// All events are flushed, but not committed.
    before: Image,
    after: Image,
    /// The content without the turn.
    old: Content,
    new: Content,
    /// The record that commits the turn.
    fold: Vec<u8>,
    pure: bool,
}

async fn scenario() -> Vec<Turn> {
    let replaced = message("m1b").with_content("x".repeat(300));
    let script: Vec<(&str, Vec<MessageEvent>, State)> = vec![
        ("t1", vec![append("m1"), append("m2")], state(&[("notes", json!([1, 0.1]))])),
        ("t2", vec![append("m3")], State::new()),
        (
            "t3",
            vec![MessageEvent::replace("m1", replaced), append("m4"), MessageEvent::remove("m2")],
            state(&[("counter", json!(3)), ("notes", json!({"a": null}))]),
        ),
        ("t4", vec![append("m5"), append("m6")], state(&[("counter", json!(4))])),
        ("t5", vec![], state(&[("counter", json!(5))])),
        ("t6", vec![MessageEvent::remove("unknown"), append("m7")], State::new()),
        ("t7", vec![append("m8"), MessageEvent::truncate(), append("m8")], state(&[("notes", json!("new"))])),
        ("t8", vec![append("m9")], State::new()),
        ("t9", vec![MessageEvent::truncate()], state(&[("counter", json!(0))])),
        ("t10", vec![append("m1")], State::new()),
        // The base has as many bytes afterwards as before.
        ("t11", vec![MessageEvent::remove("m1"), append("m2")], State::new()),
    ];
    let workspace = scratch();
    let (mut old, mut journal) = Content::open(workspace.path()).await;
    let mut turns = Vec::new();
    for (id, events, changed) in script {
        let mut conversation = old.conversation();
        let turn = TurnId::from(id);
        journal.begin(TurnStart::new(&turn)).unwrap();
        for event in &events {
            conversation.apply(event.clone()).unwrap();
            journal.record(event, None).unwrap();
        }
        journal.flush(Durability::Flushed).await.unwrap();
        let before = snapshot(workspace.path());
        journal.commit(Commit::new(&turn, &conversation, &changed)).await.unwrap();
        let after = snapshot(workspace.path());
        let pure = conversation.only_appends();
        let fold = fold_record(id, pure, &after[BASE], &before[EVENTS], &changed);
        let mut state = old.state.clone();
        state.extend(changed.clone());
        let base = conversation.messages().map(|message| (**message).clone()).collect();
        let new = Content { base, state, interrupted: None };
        turns.push(Turn { id, events, changed, before, after, old, new: new.clone(), fold, pure });
        old = new;
    }
    turns
}

/// Returns the record that commits a turn with the records `events`, which result in `base`.
fn fold_record(turn: &str, pure: bool, base: &[u8], events: &[u8], state: &State) -> Vec<u8> {
    let (state, (bytes, crc)) = (serde_json::to_string(state).unwrap(), (base.len(), crc32fast::hash(base)));
    let events = crc32fast::hash(&events[start_of_turn(events)..]);
    let text = format!(
        "{{\"fold\":\"{turn}\",\"pure\":{pure},\"baseBytesAfter\":{bytes},\"crc\":{crc},\"eventsCrc\":{events},\
         \"state\":{state}"
    );
    with_sum(&text)
}

/// Returns the record that a commit without state leaves.
fn committed_record(base: &[u8]) -> Vec<u8> {
    let (bytes, crc) = (base.len(), crc32fast::hash(base));
    with_sum(&format!("{{\"committed\":\"t0\",\"baseBytes\":{bytes},\"crc\":{crc},\"state\":{{}}"))
}

/// Returns a record, whose text lacks the last brace, with its checksum.
fn with_sum(text: &str) -> Vec<u8> {
    format!("{text},\"sum\":{}}}\n", crc32fast::hash(text.as_bytes())).into_bytes()
}

/// Returns the offset of the first record of the turn, which follows the record of the last commit.
fn start_of_turn(events: &[u8]) -> usize {
    if !events.starts_with(b"{\"committed\"") {
        return 0;
    }
    events.iter().position(|byte| *byte == b'\n').unwrap() + 1
}

/// Checks images and counts them.
#[derive(Default)]
struct Trial {
    images: usize,
}

impl Trial {
    /// Opens `image` twice, which must return `expected` each time, and then commits the interrupted turn or a new one.
    async fn check(&mut self, what: &str, image: &Image, expected: &Content) -> Image {
        self.images += 1;
        let workspace = scratch();
        for (name, bytes) in image {
            let path = instance_dir(workspace.path()).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let read = FileStore::open(workspace.path()).unwrap().read(&id()).unwrap();
        let conversation = expected.conversation();
        assert!(read.messages.iter().eq(conversation.messages()), "read without opening: {what}");
        let (content, journal) = Content::open(workspace.path()).await;
        assert_eq!(&content, expected, "{what}");
        drop(journal);
        let recovered = snapshot(workspace.path());
        if expected.interrupted.is_none() {
            let left = &recovered[EVENTS];
            assert_eq!(start_of_turn(left), left.len(), "no record but that of the commit is left: {what}");
        }

        let (content, mut journal) = Content::open(workspace.path()).await;
        assert_eq!(&content, expected, "opened again: {what}");
        let mut conversation = content.conversation();
        let turn = match &content.interrupted {
            Some((turn, _)) => turn.clone(),
            None => {
                journal.begin(TurnStart::new(&"next".into())).unwrap();
                "next".into()
            }
        };
        let more = append("more");
        conversation.apply(more.clone()).unwrap();
        journal.record(&more, None).unwrap();
        journal.commit(Commit::new(&turn, &conversation, &State::new())).await.unwrap();
        drop(journal);
        let (continued, _journal) = Content::open(workspace.path()).await;
        let base = conversation.messages().map(|message| (**message).clone()).collect();
        assert_eq!(continued, Content { base, interrupted: None, ..content }, "continued: {what}");
        recovered
    }
}

fn with(image: &Image, name: &str, bytes: impl Into<Vec<u8>>) -> Image {
    let mut image = image.clone();
    image.insert(name.to_owned(), bytes.into());
    image
}

/// Returns the range of each line, without its line end.
fn lines(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    ends.map(|end| std::mem::replace(&mut start, end + 1)..end).collect()
}

/// Returns the offsets to cut at, between `from` and the end of `bytes`: around each line end, and at every fourth
/// byte.
fn cuts(bytes: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let near = |cut: usize| bytes[cut.saturating_sub(3)..bytes.len().min(cut + 3)].contains(&b'\n');
    (from..=bytes.len()).filter(move |cut| cut % 4 == 0 || *cut == from || near(*cut))
}

/// Returns the expected content if only the first `whole` lines of the events are left.
fn interrupted(turn: &Turn, whole: usize) -> Content {
    let of_commit = usize::from(start_of_turn(&turn.before[EVENTS]) > 0);
    let events = whole.checked_sub(1 + of_commit).map(|events| (turn.id.into(), turn.events[..events].to_vec()));
    Content { interrupted: events, ..turn.old.clone() }
}

/// Crashes in steps 1 and 2, and in step 3 before its sync.
async fn crash_before_the_commit(trial: &mut Trial, turn: &Turn) {
    let recorded = &turn.before[EVENTS];
    let ranges = lines(recorded);
    for cut in cuts(recorded, 0) {
        let whole = ranges.iter().filter(|range| range.end <= cut).count();
        let what = format!("{}: {cut} bytes of the events", turn.id);
        let recovered =
            trial.check(&what, &with(&turn.before, EVENTS, &recorded[..cut]), &interrupted(turn, whole)).await;
        // The record of a commit is written as a whole or not at all, so it needs its line end.
        let needs_end = |range: &Range<usize>| range.end < start_of_turn(recorded);
        let torn = ranges.iter().find(|range| range.start < cut && cut < range.end + usize::from(needs_end(range)));
        let aside = recovered.get(&format!("{EVENTS}.corrupt-1")).map(Vec::as_slice);
        assert_eq!(aside, torn.map(|range| &recorded[range.start..cut]), "nothing is dropped silently: {what}");
    }
    for cut in cuts(&turn.fold, 0).filter(|cut| *cut < turn.fold.len()) {
        let what = format!("{}: {cut} bytes of the fold record", turn.id);
        let events = [recorded, &turn.fold[..cut]].concat();
        trial.check(&what, &with(&turn.before, EVENTS, events), &interrupted(turn, ranges.len())).await;
    }
}

/// When the machine stops, a file may keep its length and lose any of the pages that were not synced.
async fn power_fails_before_the_commit(trial: &mut Trial, turn: &Turn) {
    let recorded = &turn.before[EVENTS];
    let ranges = lines(recorded);
    for cut in cuts(recorded, 0) {
        let mut events = recorded[..cut].to_vec();
        events.resize(recorded.len(), 0);
        let whole = ranges.iter().filter(|range| range.end < cut).count();
        let what = format!("{}: zeros from byte {cut}", turn.id);
        trial.check(&what, &with(&turn.before, EVENTS, events), &interrupted(turn, whole)).await;
    }
    for (index, range) in ranges.iter().enumerate() {
        for hole in [range.start..range.end, range.start..range.end + 1, range.start + 5..range.end + 1] {
            let mut events = recorded.clone();
            events[hole].fill(0);
            let what = format!("{}: a hole in line {index}", turn.id);
            trial.check(&what, &with(&turn.before, EVENTS, events), &interrupted(turn, index)).await;
        }
    }
}

/// Crashes in step 3 after its sync, and in steps 4 to 6. `events` ends with the fold record.
async fn crash_after_the_commit(trial: &mut Trial, turn: &Turn, events: &[u8]) {
    let synced = with(&turn.before, EVENTS, events);
    let (old, new) = (&turn.before[BASE], &turn.after[BASE]);
    let mut bases: Vec<(String, Image)> = Vec::new();
    if turn.pure {
        for cut in cuts(new, old.len()) {
            bases.push((format!("{cut} bytes of the base"), with(&synced, BASE, &new[..cut])));
            let mut zeros = new[..cut].to_vec();
            zeros.resize(new.len(), 0);
            bases.push((format!("zeros from byte {cut} of the base"), with(&synced, BASE, zeros)));
        }
    } else {
        for cut in cuts(new, 0) {
            bases.push((format!("{cut} bytes of the new base"), with(&synced, "messages/base.jsonl.tmp", &new[..cut])));
        }
    }
    let folded = with(&synced, BASE, new.clone());
    // Each state file is old, half written to its temporary file, or new; they are replaced in the order of their
    // names.
    let mut image = folded.clone();
    for (name, value) in &turn.changed {
        let (file, bytes) = (format!("extensions/{name}.json"), format!("{value}\n"));
        for cut in 0..=bytes.len() {
            bases.push((
                format!("{cut} bytes of {file}"),
                with(&image, &format!("{file}.tmp"), &bytes.as_bytes()[..cut]),
            ));
        }
        image.insert(file, bytes.into_bytes());
        bases.push((format!("{name} is new"), image.clone()));
    }
    bases.push(("folded".to_owned(), folded));
    bases.push(("all but emptying the events".to_owned(), with(&turn.after, EVENTS, events)));
    bases.push(("all".to_owned(), turn.after.clone()));
    for (what, image) in bases {
        let recovered = trial.check(&format!("{}: {what}", turn.id), &image, &turn.new).await;
        assert_eq!(recovered[BASE], *new, "{}: {what}", turn.id);
    }
}

#[tokio::test]
async fn every_crash_leaves_all_of_a_turn_or_only_its_events() {
    let mut trial = Trial::default();
    for turn in scenario().await {
        let events = [turn.before[EVENTS].as_slice(), &turn.fold].concat();
        crash_before_the_commit(&mut trial, &turn).await;
        power_fails_before_the_commit(&mut trial, &turn).await;
        crash_after_the_commit(&mut trial, &turn, &events).await;
    }
    println!("{} crash images tried", trial.images);
}

/// The base that recovery computes can differ in bytes from the one that the commit recorded, when another version
/// encodes a message differently. Recovery then writes a second fold record, and can crash after it.
#[tokio::test]
async fn a_crash_while_folding_again_into_other_bytes_is_survived() {
    let mut trial = Trial::default();
    for mut turn in scenario().await {
        if turn.new.base.is_empty() {
            continue;
        }
        // The recorded base is one byte longer, as a different encoding of a number would make it.
        let recorded = turn.before[EVENTS].clone();
        let other_base = [turn.after[BASE].as_slice(), b" "].concat();
        let first_fold = fold_record(turn.id, turn.pure, &other_base, &turn.before[EVENTS], &turn.changed);
        let first = [recorded.as_slice(), &first_fold].concat();
        trial.check("the first record", &with(&turn.before, EVENTS, first.clone()), &turn.new).await;
        for cut in cuts(&turn.fold, 0).filter(|cut| *cut < turn.fold.len()) {
            let events = [first.as_slice(), &turn.fold[..cut]].concat();
            // A torn second record is cut off, and the first, which was synced, counts again.
            trial.check(&format!("{cut} bytes"), &with(&turn.before, EVENTS, events), &turn.new).await;
        }
        let second = [first.as_slice(), &turn.fold].concat();
        turn.before.insert(EVENTS.to_owned(), second.clone());
        crash_after_the_commit(&mut trial, &turn, &second).await;
    }
    println!("{} crash images tried", trial.images);
}

#[tokio::test]
async fn a_failure_while_folding_again_into_other_bytes_is_survived() {
    for turn in scenario().await.into_iter().filter(|turn| !turn.changed.is_empty()) {
        let other_base = [turn.after[BASE].as_slice(), b" "].concat();
        let first_fold = fold_record(turn.id, turn.pure, &other_base, &turn.before[EVENTS], &turn.changed);
        let workspace = scratch();
        let dir = instance_dir(workspace.path());
        fs::create_dir_all(dir.join("messages")).unwrap();
        fs::write(dir.join(BASE), &turn.before[BASE]).unwrap();
        // No extension had state before the turn.
        let committed = committed_record(&turn.before[BASE]);
        let of_turn = &turn.before[EVENTS][start_of_turn(&turn.before[EVENTS])..];
        fs::write(dir.join(EVENTS), [&committed, of_turn, &first_fold].concat()).unwrap();
        // The base can be written, the state cannot.
        fs::write(dir.join("extensions"), "in the way").unwrap();
        assert!(FileStore::open(workspace.path()).unwrap().open(&id()).await.is_err());
        assert_eq!(fs::read(dir.join(BASE)).unwrap(), turn.after[BASE]);
        fs::remove_file(dir.join("extensions")).unwrap();
        let (content, _journal) = Content::open(workspace.path()).await;
        assert_eq!(
            (content.base, content.state, content.interrupted),
            (turn.new.base, turn.changed, None),
            "{}",
            turn.id
        );
    }
}
