//! BITS-01: damage to committed files is found when an instance is opened. Every bit of its files is flipped, and each
//! file is cut at every line end and removed: the instance is refused, or opens with the committed content.

use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use goondan_core::{
    AgentEvent, AgentName, Conversation, Error, ErrorCode, ExtensionName, FinishReason, InstanceKey, Message,
    MessageEvent, TurnId,
};
use goondan_covers::covers;
use goondan_file_store::FileStore;
use goondan_runtime::store::{Commit, EventDigest, Opened, TurnOutcome, TurnStart};
use goondan_runtime::{InstanceId, Store};
use serde_json::{Value, json};
use tempfile::TempDir;

type State = BTreeMap<ExtensionName, Value>;

const BASE: &str = "messages/base.jsonl";

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

fn name(name: &str) -> ExtensionName {
    ExtensionName::new(name).unwrap()
}

/// Returns a directory in memory if the system has one, because thousands of images are opened.
fn scratch() -> TempDir {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory).unwrap() } else { tempfile::tempdir().unwrap() }
}

/// The committed content of an instance, as JSON.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    messages: Vec<String>,
    state: String,
    interrupted: Option<String>,
}

impl Content {
    async fn open(store: &FileStore) -> Result<Self, Error> {
        let Opened { base, interrupted, state, .. } = store.open(&id()).await?;
        let messages = base.iter().map(|message| serde_json::to_string(message).unwrap()).collect();
        let state = serde_json::to_string(&state).unwrap();
        Ok(Self { messages, state, interrupted: interrupted.map(|turn| format!("{turn:?}")) })
    }
}

/// Runs a turn with these events, and commits it. Unless `closes`, the process ends without closing the conversation.
async fn turn(store: &FileStore, turn: &str, events: Vec<MessageEvent>, state: State, closes: bool) {
    let (turn, event) = (TurnId::from(turn), AgentEvent::input("where to?"));
    let Opened { base, mut journal, .. } = store.open(&id()).await.unwrap();
    let (mut conversation, _) = Conversation::from_base(base);
    journal.begin(TurnStart::new(&turn).event(&event, EventDigest::of(&event))).unwrap();
    for event in events {
        conversation.apply(event.clone()).unwrap();
        journal.record(&event, None).unwrap();
    }
    let outcome = TurnOutcome::answered(event.id.clone(), FinishReason::TextResponse);
    let commit = Commit::new(&turn, &conversation, &state).outcome(&outcome, Some(EventDigest::of(&event)));
    journal.commit(commit).await.unwrap();
    if closes {
        journal.close().await.unwrap();
    }
}

fn append(id: &str) -> MessageEvent {
    MessageEvent::append(Message::user(format!("to {id} é")).with_id(id))
}

/// An instance whose files are damaged in turn.
struct Patient {
    _workspace: TempDir,
    store: FileStore,
    dir: PathBuf,
    files: BTreeMap<String, Vec<u8>>,
    content: Content,
}

impl Patient {
    /// Two turns were committed. The second appends, and if not `pure`, it also removes a message; it `closes` the
    /// conversation or not. A journal that is `full` was put into the other files after it.
    async fn new(full: bool, pure: bool, closes: bool) -> Self {
        let workspace = scratch();
        let store = FileStore::open(workspace.path()).unwrap();
        let store = if full { store.journal_limit(1) } else { store };
        let state = State::from([(name("notes"), json!({ "n": [1, 0.5], "sum": 5 })), (name("count"), json!(1))]);
        turn(&store, "t1", vec![append("Rome"), append("Oslo")], state, true).await;
        let mut second = vec![append("Bonn")];
        second.extend((!pure).then(|| MessageEvent::remove("Rome")));
        turn(&store, "t2", second, State::from([(name("count"), json!(2))]), closes).await;
        let dir = store.instance_dir(&id());
        let mut patient = Self {
            _workspace: workspace,
            store: store.clone(),
            dir,
            files: BTreeMap::new(),
            content: Content { messages: Vec::new(), state: String::new(), interrupted: None },
        };
        patient.files = patient.now();
        patient.content = Content::open(&store).await.unwrap();
        assert_eq!((patient.content.messages.len(), &patient.content.interrupted), (if pure { 3 } else { 2 }, &None));
        assert_eq!(patient.content.state, r#"{"count":2,"notes":{"n":[1,0.5],"sum":5}}"#);
        patient
    }

    fn now(&self) -> BTreeMap<String, Vec<u8>> {
        let mut files = BTreeMap::new();
        for folder in ["messages", "extensions"] {
            for entry in fs::read_dir(self.dir.join(folder)).unwrap() {
                let entry = entry.unwrap();
                let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
                files.insert(name, fs::read(entry.path()).unwrap());
            }
        }
        files
    }

    /// Restores all files, but makes `file` have `bytes`, or none.
    fn damage(&self, file: &str, bytes: Option<Vec<u8>>) {
        for name in self.now().keys().filter(|name| !self.files.contains_key(*name)) {
            fs::remove_file(self.dir.join(name)).unwrap();
        }
        for (name, bytes) in &self.files {
            fs::write(self.dir.join(name), bytes).unwrap();
        }
        match bytes {
            Some(bytes) => fs::write(self.dir.join(file), bytes).unwrap(),
            None => fs::remove_file(self.dir.join(file)).unwrap(),
        }
    }

    /// Opens the damaged instance. With `repair`, also repairs it if it is refused.
    async fn outcome(&self, what: &str, repair: bool) -> Outcome {
        let read = self.store.read(&id());
        if let Ok(read) = &read {
            let messages: Vec<_> = read.messages.iter().map(|it| serde_json::to_string(it).unwrap()).collect();
            // The file of events does not end where it ended: what it says is of an earlier moment, and says so.
            assert!(messages == self.content.messages || read.open_turn.is_some(), "read: {what}: {messages:?}");
        }
        let before = self.now();
        let error = match Content::open(&self.store).await {
            Ok(content) => {
                assert_eq!(content, self.content, "{what}");
                let kept_aside = self.now().keys().any(|name| name.contains(".corrupt-"));
                return if kept_aside { Outcome::Told } else { Outcome::Identical };
            }
            Err(error) => error,
        };
        assert!(
            [ErrorCode::STORE_DAMAGED, ErrorCode::EXT_STATE, ErrorCode::STORE_VERSION].contains(error.code()),
            "{what}: {error:?}"
        );
        let remedy = error.suggestion().unwrap_or_default();
        assert!(remedy.contains("goondan instance repair"), "{what}: {error:?}");
        if repair {
            let before = if before == self.now() { before } else { self.now() };
            let plan = self.store.inspect(&id()).unwrap();
            assert!(!plan.is_empty(), "{what}: {error:?}");
            assert_eq!(self.now(), before, "inspecting changes nothing: {what}");
            assert_eq!(self.store.repair(&id()).unwrap(), plan);
            Content::open(&self.store).await.unwrap_or_else(|error| panic!("repaired: {what}: {error:?}"));
            assert_eq!(self.store.inspect(&id()).unwrap(), [], "{what}");
        }
        Outcome::Refused
    }
}

enum Outcome {
    Refused,
    Told,
    Identical,
}

#[derive(Default)]
struct Counts {
    refused: usize,
    told: usize,
    identical: usize,
}

impl Counts {
    fn add(&mut self, outcome: &Outcome) {
        match outcome {
            Outcome::Refused => self.refused += 1,
            Outcome::Told => self.told += 1,
            Outcome::Identical => self.identical += 1,
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { refused, told, identical } = self;
        write!(f, "{refused} refused, {told} told, {identical} identical, 0 silent")
    }
}

/// Flips each `step`th bit of every file, or all if tests may take long. Some of the instances that are refused are
/// repaired too.
async fn flip(what: &str, patient: &Patient, step: usize) {
    let step = if std::env::var_os("GOONDAN_RUNS").is_some() { 1 } else { step };
    for (file, bytes) in &patient.files {
        let mut counts = Counts::default();
        for bit in (0..bytes.len() * 8).step_by(step) {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let text = String::from_utf8_lossy(&flipped).into_owned();
            patient.damage(file, Some(flipped));
            counts.add(&patient.outcome(&format!("{file}, bit {bit}: {text}"), bit % 31 == 0).await);
        }
        println!("{what}, {file}: {} flips: {counts}", (bytes.len() * 8).div_ceil(step));
    }
}

#[tokio::test]
#[covers("BITS-01")]
async fn no_flipped_bit_in_a_journal_changes_committed_content_silently() {
    flip("closed", &Patient::new(false, true, true).await, 5).await;
}

#[tokio::test]
#[covers("BITS-01")]
async fn no_flipped_bit_after_a_checkpoint_changes_committed_content_silently() {
    flip("checkpoint", &Patient::new(true, true, true).await, 5).await;
}

#[tokio::test]
#[covers("BITS-01")]
async fn no_flipped_bit_changes_what_a_process_left_that_was_killed() {
    // Each byte, in another bit than its neighbours.
    for pure in [true, false] {
        flip(if pure { "killed" } else { "killed, rewriting" }, &Patient::new(false, pure, false).await, 7).await;
    }
    flip("closed, rewriting", &Patient::new(false, false, true).await, 7).await;
}

#[tokio::test]
#[covers("BITS-01")]
async fn no_file_that_is_cut_or_gone_changes_committed_content_silently() {
    for full in [false, true] {
        let patient = Patient::new(full, true, true).await;
        for (file, bytes) in &patient.files {
            let mut counts = Counts::default();
            let ends = (0..bytes.len()).filter(|at| *at == 0 || bytes[at - 1] == b'\n');
            for cut in ends {
                patient.damage(file, Some(bytes[..cut].to_vec()));
                counts.add(&patient.outcome(&format!("{file}, cut at {cut}"), true).await);
            }
            patient.damage(file, None);
            counts.add(&patient.outcome(&format!("{file} is gone"), true).await);
            println!("{file}: cut at each line end, and gone: {counts}");
            // What the journal has is not lost with the base.
            let is_in_journal = !full && (file == BASE || file.ends_with("json"));
            assert!(is_in_journal || counts.identical + counts.told == 0, "{file}: {counts}");
        }
    }
}
