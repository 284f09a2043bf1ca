//! CRASH-01: every state in which a crash can leave the files of an instance opens, with all committed turns once and
//! nothing of the others but their recorded events.
//!
//! The images are made by hand from the files before and after each commit and from the documented protocol, so that they
//! do not depend on how the store is written.
#![cfg(feature = "runtime")]
// clippy.toml frees only the test functions, not their helpers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use goondan_core::store::{Commit, Durability, FileStore, Interrupted, Journal, Opened};
use goondan_core::{
    AgentName, Conversation, ExtensionName, InstanceId, InstanceKey, Message, MessageEvent, Store, TurnId,
};
use serde_json::{Value, json};
use tempfile::TempDir;

type State = BTreeMap<ExtensionName, Value>;
/// The files of an instance by their path in its directory.
type Image = BTreeMap<String, Vec<u8>>;

const BASE: &str = "messages/base.jsonl";
const EVENTS: &str = "messages/events.jsonl";

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// In memory where there is such a place: thousands of images are synced.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

fn instance_dir(workspace: &Path) -> PathBuf {
    workspace.join("instances/bot:k")
}

fn message(id: &str) -> Message {
    // A line end, letters of several bytes and a fraction: what a cut or a second writing could break.
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

/// What an opened instance must hold.
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

/// One turn of the scenario with the files and contents around its commit.
struct Turn {
    id: &'static str,
    events: Vec<MessageEvent>,
    changed: State,
    /// All events are flushed, nothing is committed.
    before: Image,
    after: Image,
    /// Without the turn.
    old: Content,
    new: Content,
    /// The record that the protocol puts between them.
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
    ];
    let workspace = scratch();
    let (mut old, mut journal) = Content::open(workspace.path()).await;
    let mut turns = Vec::new();
    for (id, events, changed) in script {
        let mut conversation = old.conversation();
        let turn = TurnId::from(id);
        journal.begin(&turn).unwrap();
        for event in &events {
            conversation.apply(event.clone()).unwrap();
            journal.record(event).unwrap();
        }
        journal.flush(Durability::Flushed).await.unwrap();
        let before = snapshot(workspace.path());
        journal.commit(Commit { turn: &turn, conversation: &conversation, state: &changed }).await.unwrap();
        let after = snapshot(workspace.path());
        let pure = conversation.only_appends();
        let fold = fold_record(id, pure, &after[BASE], &changed);
        let mut state = old.state.clone();
        state.extend(changed.clone());
        let base = conversation.messages().map(|message| (**message).clone()).collect();
        let new = Content { base, state, interrupted: None };
        turns.push(Turn { id, events, changed, before, after, old, new: new.clone(), fold, pure });
        old = new;
    }
    turns
}

fn fold_record(turn: &str, pure: bool, base: &[u8], state: &State) -> Vec<u8> {
    let state = serde_json::to_string(state).unwrap();
    format!(
        "{{\"fold\":\"{turn}\",\"pure\":{pure},\"baseBytesAfter\":{},\"crc\":{},\"state\":{state}}}\n",
        base.len(),
        crc32fast::hash(base)
    )
    .into_bytes()
}

/// Opens images and counts them.
#[derive(Default)]
struct Trial {
    images: usize,
}

impl Trial {
    /// Opens `image`, which must hold `expected`, twice, and lets the interrupted turn or a new one go on after it.
    async fn check(&mut self, what: &str, image: &Image, expected: &Content) -> Image {
        self.images += 1;
        let workspace = scratch();
        for (name, bytes) in image {
            let path = instance_dir(workspace.path()).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        let (content, journal) = Content::open(workspace.path()).await;
        assert_eq!(&content, expected, "{what}");
        drop(journal);
        let recovered = snapshot(workspace.path());
        if expected.interrupted.is_none() {
            assert!(recovered[EVENTS].is_empty(), "{what}");
        }

        let (content, mut journal) = Content::open(workspace.path()).await;
        assert_eq!(&content, expected, "opened again: {what}");
        let mut conversation = content.conversation();
        let turn = match &content.interrupted {
            Some((turn, _)) => turn.clone(),
            None => {
                journal.begin(&"next".into()).unwrap();
                "next".into()
            }
        };
        let more = append("more");
        conversation.apply(more.clone()).unwrap();
        journal.record(&more).unwrap();
        journal.commit(Commit { turn: &turn, conversation: &conversation, state: &State::new() }).await.unwrap();
        drop(journal);
        let (gone_on, _journal) = Content::open(workspace.path()).await;
        let base = conversation.messages().map(|message| (**message).clone()).collect();
        assert_eq!(gone_on, Content { base, interrupted: None, ..content }, "gone on: {what}");
        recovered
    }
}

fn with(image: &Image, name: &str, bytes: impl Into<Vec<u8>>) -> Image {
    let mut image = image.clone();
    image.insert(name.to_owned(), bytes.into());
    image
}

/// Where each line stands, without its line end.
fn lines(bytes: &[u8]) -> Vec<Range<usize>> {
    let mut start = 0;
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at);
    ends.map(|end| std::mem::replace(&mut start, end + 1)..end).collect()
}

/// Where to cut between `from` and the end of `bytes`: around each line end, and at every fourth byte.
fn cuts(bytes: &[u8], from: usize) -> impl Iterator<Item = usize> {
    let near = |cut: usize| bytes[cut.saturating_sub(3)..bytes.len().min(cut + 3)].contains(&b'\n');
    (from..=bytes.len()).filter(move |cut| cut % 4 == 0 || *cut == from || near(*cut))
}

/// What must be there when of the events only the first `whole` lines are.
fn interrupted(turn: &Turn, whole: usize) -> Content {
    let events = whole.checked_sub(1).map(|events| (turn.id.into(), turn.events[..events].to_vec()));
    Content { interrupted: events, ..turn.old.clone() }
}

/// Steps 1 and 2, and step 3 before its sync.
async fn crash_before_the_commit(trial: &mut Trial, turn: &Turn) {
    let recorded = &turn.before[EVENTS];
    let ranges = lines(recorded);
    for cut in cuts(recorded, 0) {
        let whole = ranges.iter().filter(|range| range.end <= cut).count();
        let what = format!("{}: {cut} bytes of the events", turn.id);
        let recovered =
            trial.check(&what, &with(&turn.before, EVENTS, &recorded[..cut]), &interrupted(turn, whole)).await;
        let torn = ranges.iter().find(|range| range.start < cut && cut < range.end);
        let aside = recovered.get(&format!("{EVENTS}.corrupt-1")).map(Vec::as_slice);
        assert_eq!(aside, torn.map(|range| &recorded[range.start..cut]), "nothing is dropped silently: {what}");
    }
    for cut in cuts(&turn.fold, 0).filter(|cut| *cut < turn.fold.len()) {
        let what = format!("{}: {cut} bytes of the fold record", turn.id);
        let events = [recorded, &turn.fold[..cut]].concat();
        trial.check(&what, &with(&turn.before, EVENTS, events), &interrupted(turn, ranges.len())).await;
    }
}

/// A machine that stops may keep the length of a file and lose any of its pages that were not synced.
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

/// Step 3 after its sync, and steps 4 to 6. `events` ends with the fold record.
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
    // Each state file may be old, half written beside, or new; they are replaced in the order of their names.
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
    bases.push(("all but the clearing".to_owned(), with(&turn.after, EVENTS, events)));
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

/// The base that an opening makes again is not always, to the byte, the one that the commit announced: for example when a
/// number is read with a smaller precision than it was written with. The opening then writes a second record, and may crash
/// after it.
#[tokio::test]
async fn a_crash_while_folding_again_into_other_bytes_is_survived() {
    let mut trial = Trial::default();
    for mut turn in scenario().await {
        if turn.new.base.is_empty() {
            continue;
        }
        // The announced base has one byte more in it, as another way of writing a number would have.
        let recorded = turn.before[EVENTS].clone();
        let announced = fold_record(turn.id, turn.pure, &[turn.after[BASE].as_slice(), b" "].concat(), &turn.changed);
        let first = [recorded.as_slice(), &announced].concat();
        trial.check("the first record", &with(&turn.before, EVENTS, first.clone()), &turn.new).await;
        for cut in cuts(&turn.fold, 0).filter(|cut| *cut < turn.fold.len()) {
            let events = [first.as_slice(), &turn.fold[..cut]].concat();
            // A torn second record hides the first, which was synced: the tail is cut, and the first counts again.
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
        let announced = fold_record(turn.id, turn.pure, &[turn.after[BASE].as_slice(), b" "].concat(), &turn.changed);
        let workspace = scratch();
        let dir = instance_dir(workspace.path());
        fs::create_dir_all(dir.join("messages")).unwrap();
        fs::write(dir.join(BASE), &turn.before[BASE]).unwrap();
        fs::write(dir.join(EVENTS), [turn.before[EVENTS].as_slice(), &announced].concat()).unwrap();
        // The base is done, the state cannot be.
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
