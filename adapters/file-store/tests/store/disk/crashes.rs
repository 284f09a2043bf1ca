//! Enumeration of crashes, and the checks after each.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::{AgentName, Conversation, Effect, InstanceKey, Message, MessageEvent};
use goondan_covers::covers;
use goondan_file_store::{FileStore, Fsync};
use goondan_runtime::store::Opened;
use goondan_runtime::{InstanceId, ScriptItem, ScriptedModel, Store};
use serde_json::Value;
use tempfile::TempDir;

use super::agents::{agent, scenario, scripted};
use super::image::{DiskModel, Image, write_image};
use super::recorder::{Op, Recorder};

const DIR: &str = "instances/bot:k";

pub(crate) fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// Returns a directory in memory if the system has one, because thousands of images are synced.
pub(crate) fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// The messages and states after a committed turn, which belong together.
#[derive(Clone, Debug, Default, PartialEq)]
struct Content {
    messages: Vec<Value>,
    state: BTreeMap<String, Value>,
}

impl Content {
    /// Reads the content of an image whose newest turn is committed, by what its journal says: the base at its
    /// checkpoint, and the turns since then.
    fn of(image: &Image) -> Self {
        let json = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let (mut content, mut base, mut journal) = (Self::default(), Vec::new(), Vec::new());
        for (path, bytes) in image {
            if path.ends_with("messages/base.jsonl") {
                base.clone_from(bytes);
            } else if path.ends_with("messages/events.jsonl") {
                journal = bytes.split_inclusive(|byte| *byte == b'\n').map(json).collect();
            } else if path.parent().is_some_and(|dir| dir.ends_with("extensions"))
                && path.extension() == Some("json".as_ref())
            {
                content.state.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), json(bytes));
            }
        }
        let folded = journal.iter().rposition(|record| record.get("folded").is_some());
        let start = folded.filter(|at| crc(&base, &journal[*at]) == journal[*at]["crc"]).unwrap_or(0);
        base.truncate(usize::try_from(journal[start]["baseBytes"].as_u64().unwrap()).unwrap());
        let messages = base.split_inclusive(|byte| *byte == b'\n').map(|line| serde_json::from_slice(line).unwrap());
        let (mut conversation, _) = Conversation::from_base(messages.map(|message: Message| message.into()));
        for (at, record) in journal.iter().enumerate() {
            if let Some(changed) = record.get("fold").and(record["state"].as_object()) {
                content.state.extend(changed.iter().map(|(name, value)| (name.clone(), value.clone())));
            } else if at > start && record.get("type").is_some() {
                _ = conversation.apply(serde_json::from_value(record.clone()).unwrap());
            }
        }
        content.messages = conversation.messages().map(|message| serde_json::to_value(message).unwrap()).collect();
        content
    }
}

/// Returns the checksum of the base that a record describes, if the base is that long.
fn crc(base: &[u8], record: &Value) -> Value {
    let bytes = usize::try_from(record["baseBytes"].as_u64().unwrap()).unwrap();
    base.get(..bytes).map_or(Value::Null, |base| crc32fast::hash(base).into())
}

/// What must be stored after a crash at one operation of the record.
#[derive(Clone, Debug, Default)]
struct Promise {
    /// How many turns are committed at least, and how many at most.
    least: usize,
    most: usize,
    /// The events of the running turn, and how many of them are stored at least.
    events: Vec<MessageEvent>,
    kept: usize,
}

/// The recorded operations of a run, with the content after each commit.
struct Recorded {
    ops: Vec<Op>,
    before: Image,
    /// The content before the first commit, and after each commit.
    contents: Vec<Content>,
    fsync: Fsync,
}

impl Recorded {
    fn new(ops: Vec<Op>, before: &Image, fsync: Fsync, first: Content) -> Self {
        let (mut disk, mut contents) = (DiskModel::of(before), vec![first]);
        let mut ledger = Ledger::of(before);
        for op in &ops {
            disk.apply(op, None);
            let written = ledger.written;
            ledger.apply(op, None);
            if ledger.written > written {
                contents.push(Content::of(&disk.seen()));
            }
            ledger.check(op, fsync);
        }
        Self { ops, before: before.clone(), contents, fsync }
    }
}

/// What was promised up to one operation of the record: recorded events, and commits.
#[derive(Clone, Debug, Default)]
struct Ledger {
    events_file: Option<usize>,
    written: usize,
    synced: usize,
    /// Whether the last turn is committed.
    folded: bool,
    events: Vec<MessageEvent>,
    events_synced: usize,
    text: String,
    returned: usize,
}

impl Ledger {
    /// Returns the ledger of a disk, which may hold an open turn. A commit that it already holds is not counted.
    fn of(image: &Image) -> Self {
        let mut ledger = Self::default();
        let events = image.iter().find(|(path, _)| path.ends_with("messages/events.jsonl")).map(|(_, bytes)| bytes);
        let lines = events.into_iter().flat_map(|bytes| bytes.split_inclusive(|byte| *byte == b'\n'));
        lines.filter(|line| line.ends_with(b"\n")).for_each(|line| ledger.line(std::str::from_utf8(line).unwrap()));
        if std::mem::take(&mut ledger.written) > 0 {
            ledger.events.clear();
        }
        ledger.events_synced = ledger.events.len();
        ledger
    }

    fn apply(&mut self, op: &Op, cut: Option<usize>) {
        match op {
            // The records of a new journal are those that were there.
            Op::Open { file, path, .. } if path.ends_with("messages/events.jsonl") => self.events_file = Some(*file),
            Op::Write { file, bytes, .. } if Some(*file) == self.events_file => {
                let bytes = &bytes[..cut.unwrap_or(bytes.len())];
                for line in bytes.split_inclusive(|byte| *byte == b'\n').filter(|line| line.ends_with(b"\n")) {
                    self.line(std::str::from_utf8(line).unwrap());
                }
            }
            Op::Sync { file } if Some(*file) == self.events_file => {
                (self.synced, self.events_synced) = (self.written, self.events.len());
            }
            Op::Returned => self.returned += 1,
            _ => {}
        }
    }

    fn line(&mut self, line: &str) {
        self.text.push_str(line);
        if line.starts_with("{\"fold\"") {
            self.written += 1;
            self.folded = true;
        } else if line.starts_with("{\"turn\"") {
            (self.events, self.events_synced, self.folded) = (Vec::new(), 0, false);
            self.text.clear();
        } else if let Ok(event) = serde_json::from_str(line) {
            self.events.push(event);
        }
    }

    /// Asserts that everything is recorded, or synced, before the operation that requires it.
    fn check(&self, op: &Op, fsync: Fsync) {
        let never = fsync == Fsync::Never;
        match op {
            Op::ModelCalled(newest) => {
                assert!(self.text.contains(newest), "the model saw a message that is not recorded: {newest}");
                assert!(fsync != Fsync::Always || self.events_synced == self.events.len());
            }
            Op::ToolStarted { call, effect } => {
                assert!(self.text.contains(call.as_str()), "a call started that is not recorded");
                let synced = self.events_synced == self.events.len();
                assert!(never || *effect == Effect::Read || synced, "a call acts on the world before it is synced");
            }
            Op::Returned => assert!(never || self.synced >= self.returned, "a turn returned before it was synced"),
            Op::Sync { .. } | Op::SyncDir { .. } => assert!(!never, "`never` syncs"),
            _ => {}
        }
    }

    fn promise(&self, machine: bool) -> Promise {
        let (least, kept) = if machine { (self.synced, self.events_synced) } else { (self.written, self.events.len()) };
        // The events of a committed turn are in the base.
        let kept = if self.folded && least == self.written { 0 } else { kept };
        Promise { least, most: self.written, events: self.events.clone(), kept }
    }
}

/// The calls that had started before the crash.
type StartedCalls = Vec<(String, Effect)>;

/// Checks images, and counts them.
#[derive(Default)]
struct Trial {
    seen: HashSet<(u64, usize, usize, usize)>,
    sample: Sample,
}

impl Trial {
    /// Checks every crash of the process and of the machine during `recorded`. With `deep`, also crashes again while an
    /// image is opened and used.
    async fn all(&mut self, recorded: &Recorded, started: &StartedCalls, deep: bool) {
        let (mut disk, mut ledger, mut started) =
            (DiskModel::of(&recorded.before), Ledger::of(&recorded.before), started.clone());
        for (at, op) in recorded.ops.iter().enumerate() {
            if let Op::Write { bytes, .. } = op {
                let mut whole = ledger.clone();
                whole.apply(op, None);
                for cut in self.sample.of(cuts(bytes)) {
                    let (mut torn, mut ledger) = (disk.clone(), ledger.clone());
                    torn.apply(op, Some(cut));
                    ledger.apply(op, Some(cut));
                    // An event that lacks only its line end may or may not count.
                    let promise = Promise { events: whole.events.clone(), ..ledger.promise(false) };
                    let what = format!("operation {at}, {cut} bytes of {}", bytes.len());
                    self.one(&what, recorded, &torn.seen(), &promise, &started, false).await;
                }
            }
            disk.apply(op, None);
            ledger.apply(op, None);
            if let Op::ToolStarted { call, effect } = op {
                started.push((call.clone(), *effect));
            }
            let what = format!("operation {at}, {:?}", std::mem::discriminant(op));
            self.one(&what, recorded, &disk.seen(), &ledger.promise(false), &started, deep).await;
            if recorded.fsync != Fsync::Never {
                for image in self.sample.of(disk.survivors()) {
                    let what = format!("the machine stops at operation {at}");
                    self.one(&what, recorded, &image, &ledger.promise(true), &started, false).await;
                }
            }
        }
    }

    /// Checks that one image opens, holds what was promised, and that the conversation can continue.
    async fn one(
        &mut self,
        what: &str,
        recorded: &Recorded,
        image: &Image,
        promise: &Promise,
        started: &StartedCalls,
        deep: bool,
    ) {
        if !self.seen.insert((hash(image), promise.least, promise.most, promise.kept)) {
            return;
        }
        let workspace = scratch();
        write_image(image, workspace.path());
        let (content, events) = open(what, workspace.path()).await;
        let allowed = &recorded.contents[promise.least..=promise.most.min(recorded.contents.len() - 1)];
        let committed = allowed.iter().position(|allowed| *allowed == content);
        let committed =
            committed.unwrap_or_else(|| panic!("{what}: {content:?}\nis none of {allowed:?}")) + promise.least;
        if let Some(events) = &events {
            assert!(promise.events.starts_with(events), "{what}: events that were not recorded: {events:?}");
        }
        if committed == promise.least {
            let kept = events.as_ref().map_or(0, Vec::len);
            assert!(kept >= promise.kept, "{what}: {kept} events of {} are left", promise.kept);
        }
        if deep {
            // Restore the image, so that the recovery is recorded too.
            fs::remove_dir_all(workspace.path().join("instances")).unwrap_or_default();
            write_image(image, workspace.path());
        }
        self.continue_conversation(
            what,
            workspace.path(),
            content,
            &events.unwrap_or_default(),
            started,
            deep,
            image,
            recorded.fsync,
        )
        .await;
    }

    #[expect(clippy::too_many_arguments, reason = "it has one caller, which has all of them")]
    async fn continue_conversation(
        &mut self,
        what: &str,
        workspace: &Path,
        content: Content,
        events: &[MessageEvent],
        started: &StartedCalls,
        deep: bool,
        image: &Image,
        fsync: Fsync,
    ) {
        let recorder = Recorder::new(workspace);
        let store = FileStore::open(workspace).unwrap().fsync(fsync).on_disk(recorder.clone());
        let agent = agent(store, &recorder, ScriptedModel::new([ScriptItem::say("here").repeat()])).await;
        let instance = agent.instance("k").await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        instance.run("are you there?").await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        instance.close().await.unwrap();
        let ops = recorder.take();
        let again = ops.iter().filter_map(|op| match op {
            Op::ToolStarted { call, .. } => Some(call),
            _ => None,
        });
        for call in again {
            let once = started.iter().any(|(before, effect)| before == call && *effect == Effect::Once);
            assert!(!once, "{what}: the call `{call}` runs again, which must happen once");
        }
        let now = FileStore::open(workspace).unwrap().read(&id()).unwrap();
        let ids: HashSet<_> = now.messages.iter().map(|message| message.id().clone()).collect();
        assert_eq!((ids.len(), now.open_turn), (now.messages.len(), None), "{what}: something is stored twice");
        let earlier = expected(&content, events);
        let stored: Vec<_> = now.messages.iter().map(|message| serde_json::to_value(message).unwrap()).collect();
        assert_eq!(stored[..earlier.len()], earlier, "{what}: earlier messages are lost");
        if deep {
            let nested = Recorded::new(ops, image, fsync, content);
            Box::pin(self.all(&nested, started, false)).await;
        }
    }
}

/// Returns the messages of `content` with the recorded events applied.
fn expected(content: &Content, events: &[MessageEvent]) -> Vec<Value> {
    let base =
        content.messages.iter().map(|message| serde_json::from_value::<Message>(message.clone()).unwrap().into());
    let (mut conversation, duplicates) = Conversation::from_base(base);
    assert!(duplicates.is_empty());
    events.iter().for_each(|event| _ = conversation.apply(event.clone()).unwrap());
    conversation.messages().map(|message| serde_json::to_value(message).unwrap()).collect()
}

async fn open(what: &str, workspace: &Path) -> (Content, Option<Vec<MessageEvent>>) {
    let opened = FileStore::open(workspace).unwrap().open(&id()).await;
    let Opened { base, interrupted, state, .. } = opened.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let messages = base.iter().map(|message| serde_json::to_value(message).unwrap()).collect();
    let state = state.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
    (Content { messages, state }, interrupted.map(|interrupted| interrupted.events))
}

/// Which images are tried, besides those that a crash of the process leaves between two operations: all with
/// `GOONDAN_RUNS` set, as `.ci/long` does, else one of five.
#[derive(Debug, Default)]
pub(crate) struct Sample {
    images: usize,
}

impl Sample {
    pub(crate) fn of<T>(&mut self, all: impl IntoIterator<Item = T>) -> Vec<T> {
        let is_tried = |_: &T| {
            self.images += 1;
            self.images % 5 == 1 || std::env::var_os("GOONDAN_RUNS").is_some()
        };
        all.into_iter().filter(is_tried).collect()
    }
}

/// Returns the offsets at which a write may be torn.
pub(crate) fn cuts(bytes: &[u8]) -> BTreeSet<usize> {
    let ends = bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').flat_map(|(at, _)| [at, at + 1]);
    let all = ends.chain([1, bytes.len() / 3, bytes.len() / 2, bytes.len().saturating_sub(2)]);
    all.filter(|cut| *cut > 0 && *cut < bytes.len()).collect()
}

pub(crate) fn hash(image: &Image) -> u64 {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    image.hash(&mut hasher);
    hasher.finish()
}

/// Runs the turns of the scenario and records their operations. `limit` is the length of a full journal.
async fn record(fsync: Fsync, turns: std::ops::Range<usize>, limit: u64) -> Recorded {
    let workspace = scratch();
    let recorder = Recorder::new(workspace.path());
    let store = FileStore::open(workspace.path()).unwrap().fsync(fsync).on_disk(recorder.clone());
    let store = store.journal_limit(limit);
    let turns = &scenario()[turns];
    let agent = agent(store, &recorder, scripted(turns)).await;
    let instance = agent.instance("k").await.unwrap();
    for (input, _) in turns {
        let outcome = instance.run(*input).await;
        assert_eq!(outcome.is_err(), input.contains("fail"), "{outcome:?}");
        recorder.note(Op::Returned);
    }
    instance.close().await.unwrap();
    let recorded = Recorded::new(recorder.take(), &Image::new(), fsync, Content::default());
    assert_eq!(recorded.contents.len(), turns.len() + 1);
    recorded
}

/// The length of a full journal that no turn here reaches; that each reaches; and that some do.
const NEVER_FULL: u64 = 1 << 20;
const ALWAYS_FULL: u64 = 1;
const SOMETIMES_FULL: u64 = 6_000;

async fn enumerate(name: &str, fsync: Fsync, turns: std::ops::Range<usize>, limit: u64, deep: bool) {
    let recorded = record(fsync, turns, limit).await;
    let mut trial = Trial::default();
    trial.all(&recorded, &StartedCalls::new(), deep).await;
    println!("{name}: {} operations, {} crash images", recorded.ops.len(), trial.seen.len());
}

#[tokio::test]
#[covers("CRASH-01", "JOURNAL-01")]
async fn turns_survive_every_crash() {
    enumerate("turn", Fsync::Turn, 0..11, NEVER_FULL, false).await;
}

#[tokio::test]
#[covers("JOURNAL-01")]
async fn turns_survive_every_crash_in_a_checkpoint() {
    enumerate("full", Fsync::Turn, 1..10, ALWAYS_FULL, false).await;
    enumerate("sometimes full", Fsync::Turn, 0..11, SOMETIMES_FULL, false).await;
}

#[tokio::test]
async fn turns_survive_every_crash_when_each_flush_is_synced() {
    enumerate("always", Fsync::Always, 1..6, NEVER_FULL, false).await;
}

#[tokio::test]
async fn turns_survive_every_crash_of_the_process_without_syncs() {
    enumerate("never", Fsync::Never, 0..11, SOMETIMES_FULL, false).await;
}

#[tokio::test]
async fn crashes_while_a_crash_is_repaired_are_survived() {
    enumerate("twice", Fsync::Turn, 4..5, NEVER_FULL, true).await;
    enumerate("twice, rewriting and full", Fsync::Turn, 5..6, ALWAYS_FULL, true).await;
}

/// The recorder records every change: the image computed from the whole record equals the file system.
#[tokio::test]
async fn the_record_is_complete() {
    let workspace = scratch();
    let recorder = Recorder::new(workspace.path());
    let store = FileStore::open(workspace.path()).unwrap().on_disk(recorder.clone());
    let turns = scenario();
    let agent = agent(store, &recorder, scripted(&turns)).await;
    let instance = agent.instance("k").await.unwrap();
    for (input, _) in &turns {
        _ = instance.run(*input).await;
    }
    instance.close().await.unwrap();
    let mut disk = DiskModel::of(&Image::new());
    recorder.take().iter().for_each(|op| disk.apply(op, None));
    let image = disk.seen();
    for (path, bytes) in &image {
        assert_eq!(&fs::read(workspace.path().join(path)).unwrap(), bytes, "{}", path.display());
    }
    for file in ["metadata.json", "messages/base.jsonl", "messages/events.jsonl", "extensions/world.json"] {
        assert!(image.contains_key(&PathBuf::from(DIR).join(file)), "{file}");
    }
}
