//! Every crash of a journal: its calls are made one after another, and an opening after a crash finds what it would
//! have found after one of the calls that were not yet promised, or the last one that was.

use std::collections::{BTreeMap, HashSet};
use std::time::Duration;

use goondan_core::{
    AgentEvent, AskedQuestion, Conversation, Decision, Error, ErrorCode, ExtensionName, FinishReason, Message,
    MessageEvent, Question, QuestionId, TurnId, Wait,
};
use goondan_covers::covers;
use goondan_file_store::{FileStore, Fsync};
use goondan_runtime::Store;
use goondan_runtime::store::{
    Commit, Durability, EmittedBy, EventDigest, Interrupted, JoinedEvent, Journal, Opened, Reached, Suspend,
    TurnOutcome, TurnStart,
};
use serde_json::{Value, json};

use super::crashes::{Sample, cuts, hash, id, scratch};
use super::image::{DiskModel, Image, write_image};
use super::recorder::{Op, Recorder};

type Result<T, E = Error> = std::result::Result<T, E>;

pub(super) type States = BTreeMap<ExtensionName, Value>;

/// A call of the journal.
#[derive(Clone, Debug)]
pub(super) enum Call {
    Begin(&'static str),
    Record(MessageEvent),
    Emit(MessageEvent),
    Started(&'static str),
    Reached(Reached),
    State(States),
    Resume(usize),
    Flush(Durability),
    Suspend(Vec<Wait>, States),
    Decide(Box<Decision>),
    /// Whether the turn fails, and what it stores.
    Commit(bool, States),
    /// The conversation is closed, and opened again.
    Close,
    /// The process ends without closing it.
    Exit,
}

pub(super) fn append(id: &str) -> MessageEvent {
    MessageEvent::append(Message::user(format!("text\nof {id} é漢")).with_id(id).with_metadata("score", 0.1 + 0.2))
}

fn state(values: &[(&str, Value)]) -> States {
    values.iter().map(|(name, value)| (ExtensionName::new(name).unwrap(), value.clone())).collect()
}

/// The event of another turn joins this one.
fn joins(turn: &str) -> Call {
    let event = event(turn);
    Call::Reached(Reached::Joined(JoinedEvent::new(event.id.clone(), EventDigest::of(&event))))
}

/// Turns that append, change state, replace, remove, truncate, fail, are suspended, decided, gone on with, and closed
/// with.
#[expect(clippy::too_many_lines, reason = "a table")]
pub(super) fn script() -> Vec<Call> {
    use Call::*;
    let none = States::new;
    let ask = ExtensionName::new("asker").unwrap();
    let asked = QuestionId::new(ask, "ask", None);
    let args = serde_json::Map::from_iter([("sum".to_owned(), json!(5))]);
    let wait = Wait::new("c1".into(), "bank__pay", args);
    let wait =
        wait.question(AskedQuestion::new(asked.clone(), Question::new("pay?").expires_after(Duration::from_secs(60))));
    vec![
        Begin("t1"),
        Record(append("m1")),
        Flush(Durability::Flushed),
        Record(append("m2")),
        Commit(false, state(&[("notes", json!([1, 0.1]))])),
        Begin("t2"),
        Record(append("m3")),
        Commit(false, none()),
        Begin("t3"),
        Record(append("m4")),
        Emit(MessageEvent::replace("m1", Message::user("x".repeat(90)).with_id("m1b"))),
        Record(MessageEvent::remove("m2")),
        Started("c0"),
        Flush(Durability::Synced),
        Commit(false, state(&[("counter", json!(3)), ("notes", json!({ "a": null }))])),
        Begin("t4"),
        Record(append("m5")),
        Commit(true, none()),
        Close,
        Begin("t5"),
        Record(append("m6")),
        Reached(self::Reached::Step(0)),
        State(state(&[("counter", json!(4))])),
        Record(append("m7")),
        Suspend(vec![wait], state(&[("counter", json!(5))])),
        Close,
        Decide(Box::new(Decision::new("c1", "yes").of(asked))),
        Flush(Durability::Synced),
        Resume(1),
        Record(append("m8")),
        Commit(false, state(&[("counter", json!(6))])),
        Begin("t6"),
        Record(MessageEvent::truncate()),
        Record(append("m8")),
        Commit(false, none()),
        Begin("t7"),
        Record(append("m9")),
        Flush(Durability::Flushed),
        // Open behind a turn that did more than append, so that the base is written anew.
        Close,
        Exit,
        Resume(0),
        Commit(false, none()),
        Begin("t8"),
        Record(append("m1")),
        Commit(false, state(&[("notes", json!("new"))])),
        Close,
        Begin("t9"),
        Record(MessageEvent::remove("m1")),
        joins("t11"),
        Record(append("m2")),
        Flush(Durability::Flushed),
        joins("t12"),
        Record(append("m10")),
        Commit(false, none()),
        Begin("t10"),
        Record(append("m3")),
        Commit(false, none()),
        // The next base is the beginning of this one.
        Begin("t13"),
        Record(MessageEvent::remove("m3")),
        Commit(false, none()),
        Begin("t14"),
        Record(append("m4")),
        Commit(false, none()),
        Close,
        Begin("t15"),
        Record(MessageEvent::truncate()),
        Commit(false, none()),
        Close,
        Begin("t16"),
        Record(append("m5")),
        Commit(false, none()),
    ]
}

/// What an opening finds, and how the turns ended of which the journal knows the events.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) messages: Vec<Value>,
    state: States,
    open: Option<Interrupted>,
    answered: Vec<TurnOutcome>,
}

const TURNS: [&str; 16] =
    ["t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11", "t12", "t13", "t14", "t15", "t16"];

fn event(turn: &str) -> AgentEvent {
    AgentEvent::input("go").with_id(format!("event of {turn}"))
}

impl Found {
    pub(super) async fn open(store: &FileStore) -> Result<(Self, Box<dyn Journal>)> {
        let Opened { base, interrupted, state, journal, .. } = store.open(&id()).await?;
        let mut answered = Vec::new();
        for turn in TURNS {
            answered.extend(journal.outcome(&event(turn).id).await?.map(|ended| ended.outcome));
        }
        let messages = base.iter().map(|message| serde_json::to_value(message).unwrap()).collect();
        let open = interrupted.map(|mut open| {
            open.input = None;
            open.event = None;
            open
        });
        Ok((Self { messages, state, open, answered }, journal))
    }
}

/// A conversation whose journal is called.
pub(super) struct Driver {
    store: FileStore,
    journal: Option<Box<dyn Journal>>,
    conversation: Conversation,
    turn: &'static str,
    joined: Vec<JoinedEvent>,
}

impl Driver {
    pub(super) async fn new(store: FileStore) -> Result<Self> {
        let mut driver =
            Self { store, journal: None, conversation: Conversation::default(), turn: "", joined: Vec::new() };
        driver.open().await?;
        Ok(driver)
    }

    async fn open(&mut self) -> Result<()> {
        let Opened { base, interrupted, journal, .. } = self.store.open(&id()).await?;
        self.conversation = Conversation::from_base(base).0;
        self.joined.clear();
        if let Some(open) = interrupted {
            self.joined.extend(open.facts.joined().cloned());
            open.events.into_iter().for_each(|event| _ = self.conversation.apply(event).unwrap());
        }
        self.journal = Some(journal);
        Ok(())
    }

    /// Makes a call. Returns the durability that it promises.
    #[expect(clippy::too_many_lines, reason = "a branch each call")]
    pub(super) async fn call(&mut self, call: Call) -> Result<Option<Durability>> {
        let journal = self.journal.as_mut().unwrap();
        let turn = TurnId::from(self.turn);
        match call {
            Call::Begin(turn) => {
                let event = event(turn);
                let digest = EventDigest::of(&event);
                journal.begin(TurnStart::new(&turn.into()).event(&event, digest))?;
                self.turn = turn;
                self.joined.clear();
            }
            Call::Record(event) => {
                self.conversation.apply(event.clone()).unwrap();
                journal.record(&event, None)?;
            }
            Call::Emit(event) => {
                self.conversation.apply(event.clone()).unwrap();
                let by = EmittedBy::Step(ExtensionName::new("layer").unwrap());
                journal.record(&event, Some(&by))?;
            }
            Call::Started(call) => journal.start_call(&call.into())?,
            Call::Reached(what) => {
                if let Reached::Joined(joined) = &what {
                    self.joined.push(joined.clone());
                }
                journal.reached(&what)?;
            }
            Call::State(state) => journal.record_state(&state)?,
            Call::Resume(keep) => {
                journal.resume(keep)?;
                let kept = self.conversation.events()[..keep].to_vec();
                let base: Vec<_> = self.base();
                self.conversation = Conversation::from_base(base).0;
                kept.into_iter().for_each(|event| _ = self.conversation.apply(event).unwrap());
            }
            Call::Flush(durability) => {
                journal.flush(durability).await?;
                return Ok(Some(durability));
            }
            Call::Suspend(waits, state) => {
                let mut suspend = Suspend::new(&turn, &state);
                suspend.waits = &waits;
                journal.suspend(suspend).await?;
                return Ok(Some(Durability::Synced));
            }
            Call::Decide(decision) => journal.decide(&[*decision])?,
            Call::Commit(fails, state) => {
                let event = event(self.turn);
                let outcome = match fails {
                    true => TurnOutcome::failed(event.id.clone(), &Error::new(ErrorCode::MODEL, "away")),
                    false => TurnOutcome::answered(event.id.clone(), FinishReason::TextResponse),
                };
                let commit = Commit::new(&turn, &self.conversation, &state).joined(&self.joined);
                journal.commit(commit.outcome(&outcome, Some(EventDigest::of(&event)))).await?;
                self.conversation.fold();
                return Ok(Some(Durability::Synced));
            }
            Call::Close => {
                self.journal.take().unwrap().close().await?;
                self.open().await?;
            }
            Call::Exit => {
                self.journal = None;
                self.open().await?;
            }
        }
        Ok(None)
    }

    /// The messages before the open turn.
    fn base(&self) -> Vec<std::sync::Arc<Message>> {
        let mut before = self.store.read(&id()).unwrap().messages;
        let appended = self.conversation.events().iter().filter_map(MessageEvent::appended);
        let appended: HashSet<_> = appended.map(|message| message.id().clone()).collect();
        before.retain(|message| !appended.contains(message.id()));
        before
    }
}

/// Returns what an opening finds after each of the first calls, the number of which is the index.
pub(super) async fn expectations(calls: &[Call]) -> Vec<Found> {
    let mut found = Vec::new();
    for count in 0..=calls.len() {
        let workspace = scratch();
        let store = FileStore::open(workspace.path()).unwrap();
        let mut driver = Driver::new(store.clone()).await.unwrap();
        for call in &calls[..count] {
            driver.call(call.clone()).await.unwrap();
        }
        drop(driver);
        found.push(Found::open(&store).await.unwrap().0);
    }
    found
}

/// How many calls were made before an operation on the disk, and how many of them survive the process, and the machine.
#[derive(Clone, Copy, Default)]
struct Progress {
    ops: usize,
    made: usize,
    written: usize,
    synced: usize,
}

/// Checks the images of one run, and counts them.
struct Trial<'a> {
    expected: &'a [Found],
    fsync: Fsync,
    seen: HashSet<(u64, usize, usize)>,
    sample: Sample,
    /// After which operations another crash is tried.
    twice: Sample,
}

impl Trial<'_> {
    /// Crashes before and after each operation. With `twice`, crashes again while an image is opened.
    async fn all(&mut self, before: &Image, ops: &[Op], progress: &[Progress], twice: bool) {
        let mut disk = DiskModel::of(before);
        for (at, op) in ops.iter().enumerate() {
            let Progress { made, written, synced, .. } = *progress.iter().rfind(|done| done.ops <= at).unwrap();
            if let Op::Write { bytes, .. } = op {
                for cut in self.sample.of(cuts(bytes)) {
                    let mut torn = disk.clone();
                    torn.apply(op, Some(cut));
                    let what = format!("operation {at}, {cut} bytes of {}", bytes.len());
                    self.one(&what, &torn.seen(), written..=made, false).await;
                }
            }
            disk.apply(op, None);
            let what = format!("operation {at}, {op:?}");
            let twice = twice && !self.twice.of([()]).is_empty();
            self.one(&what, &disk.seen(), written..=made, twice).await;
            if self.fsync != Fsync::Never {
                for image in self.sample.of(disk.survivors()) {
                    self.one(&format!("the machine stops at {what}"), &image, synced..=made, false).await;
                }
            }
        }
    }

    async fn one(&mut self, what: &str, image: &Image, allowed: std::ops::RangeInclusive<usize>, twice: bool) {
        if !self.seen.insert((hash(image), *allowed.start(), *allowed.end())) {
            return;
        }
        let workspace = scratch();
        write_image(image, workspace.path());
        let recorder = Recorder::new(workspace.path());
        let store = FileStore::open(workspace.path()).unwrap().on_disk(recorder.clone());
        let read = store.read(&id());
        let (found, journal) = Found::open(&store).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        let expected = &self.expected[allowed.clone()];
        let at = expected.iter().position(|expected| *expected == found);
        let at = at.unwrap_or_else(|| panic!("{what}: {found:#?}\nis none of {expected:#?}")) + allowed.start();
        // An instance without metadata is not there yet for a reader.
        if let Ok(read) = read {
            assert_eq!(read.open_turn.is_some(), found.open.is_some(), "{what}");
        }
        let ops = recorder.take();
        journal.close().await.unwrap();
        let (again, _journal) = Found::open(&store).await.unwrap();
        assert_eq!(again, found, "{what}: closed and opened again");
        if twice {
            let mut nested = Trial {
                expected: self.expected,
                fsync: self.fsync,
                seen: HashSet::new(),
                sample: Sample::default(),
                twice: Sample::default(),
            };
            Box::pin(nested.all(image, &ops, &[Progress { ops: 0, made: at, written: at, synced: at }], false)).await;
            self.seen.extend(nested.seen);
        }
    }
}

async fn enumerate(name: &str, fsync: Fsync, limit: u64, twice: bool) {
    let calls = script();
    let expected = expectations(&calls).await;
    assert_eq!(expected.last().unwrap().answered.len(), TURNS.len(), "{:?}", expected.last());
    let workspace = scratch();
    let recorder = Recorder::new(workspace.path());
    let store = FileStore::open(workspace.path()).unwrap().fsync(fsync).journal_limit(limit);
    let mut driver = Driver::new(store.on_disk(recorder.clone())).await.unwrap();
    let mut done = Progress::default();
    let mut progress = vec![done];
    for (number, call) in calls.into_iter().enumerate() {
        // From its first operation on, all of the call may be there.
        (done.ops, done.made) = (recorder.ops.lock().unwrap().len(), number + 1);
        progress.push(done);
        let durability = driver.call(call).await.unwrap();
        done.ops = recorder.ops.lock().unwrap().len();
        if durability.is_some() {
            done.written = number + 1;
        }
        if durability == Some(Durability::Synced) {
            done.synced = number + 1;
        }
        progress.push(done);
    }
    drop(driver);
    let ops = recorder.take();
    let (seen, sample) = (HashSet::new(), Sample::default());
    let mut trial = Trial { expected: &expected, fsync, seen, sample, twice: Sample::default() };
    trial.all(&Image::new(), &ops, &progress, twice).await;
    println!("{name}: {} operations, {} crash images", ops.len(), trial.seen.len());
}

#[tokio::test]
#[covers("JOURNAL-01", "ONCE-01")]
async fn a_journal_survives_every_crash() {
    enumerate("a long journal", Fsync::Turn, 1 << 20, true).await;
}

#[tokio::test]
#[covers("JOURNAL-01", "ONCE-01")]
async fn a_journal_survives_every_crash_in_a_checkpoint() {
    enumerate("always full", Fsync::Turn, 1, true).await;
    enumerate("sometimes full", Fsync::Turn, 3_000, true).await;
}

#[tokio::test]
async fn a_journal_survives_every_crash_of_the_process_without_syncs() {
    enumerate("never", Fsync::Never, 3_000, false).await;
}
