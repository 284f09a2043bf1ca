//! Syncs of several conversations at once (`Syncs::InPlace`), on a disk whose syncs end when the test says so.

use std::fs::Metadata;
use std::future::poll_fn;
use std::io::{Error, Result};
use std::path::Path;
use std::pin::pin;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use goondan_core::ErrorCode;
use goondan_covers::covers;
use goondan_file_store::{Disk, DiskFile, FileStore, OpenMode, RealDisk, StorePath, Syncs};
use goondan_lock::Lock;
use goondan_runtime::{Agent, Instance, ScriptItem, ScriptedModel};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::task::{JoinHandle, LocalSet};

/// Far above what a sync needs, so that a test which would wait for ever fails.
const AT_LAST: Duration = Duration::from_secs(60);

/// Holds the syncs of journals once it is told to, until the test releases them. Clones are the same disk.
#[derive(Clone, Debug, Default)]
struct HeldDisk(Arc<(Mutex<Held>, Condvar)>);

#[derive(Debug, Default)]
struct Held {
    holds: bool,
    /// The instance directories whose journal is being synced, with the outcome that the test chose.
    waiting: Vec<(String, Option<bool>)>,
}

impl Held {
    fn of(&mut self, instance: &str) -> &mut (String, Option<bool>) {
        self.waiting.iter_mut().find(|(waiting, _)| waiting == instance).unwrap()
    }
}

impl HeldDisk {
    fn hold(&self, holds: bool) {
        self.0.0.lock().unwrap().holds = holds;
        self.0.1.notify_all();
    }

    /// Waits until `number` syncs are held at once, and returns of which instances.
    fn held(&self, number: usize) -> Vec<String> {
        let until = |held: &mut Held| held.waiting.len() < number;
        let (held, timeout) = self.0.1.wait_timeout_while(self.0.0.lock().unwrap(), AT_LAST, until).unwrap();
        assert!(!timeout.timed_out(), "{} of {number} syncs are in flight", held.waiting.len());
        held.waiting.iter().map(|(instance, _)| instance.clone()).collect()
    }

    fn end(&self, instance: &str, well: bool) {
        self.0.0.lock().unwrap().of(instance).1 = Some(well);
        self.0.1.notify_all();
    }

    fn sync(&self, instance: &str) -> Result<()> {
        let mut held = self.0.0.lock().unwrap();
        if !held.holds {
            return Ok(());
        }
        held.waiting.push((instance.to_owned(), None));
        self.0.1.notify_all();
        let until = |held: &mut Held| held.holds && held.of(instance).1.is_none();
        let (mut held, timeout) = self.0.1.wait_timeout_while(held, AT_LAST, until).unwrap();
        assert!(!timeout.timed_out(), "nobody ended the sync of {instance}");
        let outcome = held.of(instance).1;
        held.waiting.retain(|(waiting, _)| waiting != instance);
        if outcome == Some(false) { Err(Error::other("the disk is away")) } else { Ok(()) }
    }
}

#[derive(Debug)]
struct HeldFile {
    file: Box<dyn DiskFile>,
    disk: HeldDisk,
    /// The directory of the instance whose journal it is.
    journal_of: Option<String>,
}

impl Disk for HeldDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path, mode)?;
        let path: &Path = path;
        let instance = path.ancestors().nth(2).and_then(Path::file_name).map(|name| name.display().to_string());
        let journal_of = instance.filter(|_| path.ends_with("events.jsonl"));
        Ok(Box::new(HeldFile { file, disk: self.clone(), journal_of }))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        RealDisk.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        RealDisk.create_dir(path)
    }

    fn sync_dir(&self, path: &StorePath) -> Result<()> {
        RealDisk.sync_dir(path)
    }
}

impl DiskFile for HeldFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_at(at, bytes)
    }

    fn metadata(&self) -> Result<Metadata> {
        self.file.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len)
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync()?;
        self.journal_of.as_ref().map_or(Ok(()), |instance| self.disk.sync(instance))
    }
}

/// The number of syncs that hand tasks over is counted for the whole process, so one test runs at a time.
static ONE_AT_A_TIME: Lock<()> = Lock::new(());

/// An agent that answers, and a disk that the test holds.
struct Setting {
    _alone: MutexGuard<'static, ()>,
    workspace: TempDir,
    disk: HeldDisk,
    agent: Agent,
}

impl Setting {
    fn new() -> Self {
        let _alone = ONE_AT_A_TIME.lock();
        let (workspace, disk) = (tempfile::tempdir().unwrap(), HeldDisk::default());
        let store = FileStore::open(workspace.path()).unwrap().syncs(Syncs::InPlace).on_disk(disk.clone());
        Self { _alone, agent: agent(store), workspace, disk }
    }

    /// Opens conversations, each after a turn.
    async fn talked(&self, keys: impl IntoIterator<Item = String>) -> Vec<Instance> {
        let mut all = Vec::new();
        for key in keys {
            let instance = self.agent.instance(&key).await.unwrap();
            instance.run("hello").await.unwrap();
            all.push(instance);
        }
        all
    }
}

/// Returns the messages of a conversation, by a new opening of its files, once no other has it open.
fn stored(workspace: &TempDir, key: &str) -> Vec<String> {
    let agent = agent(FileStore::open(workspace.path()).unwrap());
    let start = Instant::now();
    alone().block_on(async {
        let instance = loop {
            match agent.instance(key).await {
                // What was dropped with its runtime is dropped by another thread.
                Err(error) if *error.code() == ErrorCode::STORE_LOCKED && start.elapsed() < AT_LAST => {
                    std::thread::yield_now();
                }
                opened => break opened.unwrap(),
            }
        };
        texts(&instance).await
    })
}

async fn texts(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    messages.iter().map(|message| message.text().into_owned()).collect()
}

fn agent(store: FileStore) -> Agent {
    let model = ScriptedModel::new([ScriptItem::say("yes").repeat()]);
    Agent::builder("bot").store(store).model(model).build().unwrap()
}

fn alone() -> Runtime {
    Builder::new_current_thread().enable_all().build().unwrap()
}

fn several(threads: usize) -> Runtime {
    Builder::new_multi_thread().worker_threads(threads).enable_all().build().unwrap()
}

fn numbered(number: usize) -> impl Iterator<Item = String> {
    (0..number).map(|number| format!("k{number}"))
}

/// Runs a turn of each conversation on `runtime`.
fn at_once(runtime: &Runtime, open: Vec<Instance>) -> Vec<JoinHandle<goondan_core::Result<()>>> {
    let turn = |instance: Instance| async move { instance.run("at once").await.map(drop) };
    open.into_iter().map(|instance| runtime.spawn(turn(instance))).collect()
}

/// Eight syncs that wait for each other on a runtime of two threads.
#[test]
#[covers("JOURNAL-01")]
fn syncs_of_many_conversations_overlap() {
    let (setting, runtime) = (Setting::new(), several(2));
    let open = runtime.block_on(setting.talked(numbered(8)));
    setting.disk.hold(true);
    let turns = at_once(&runtime, open);
    assert_eq!(setting.disk.held(8).len(), 8);
    setting.disk.hold(false);
    for turn in turns {
        runtime.block_on(turn).unwrap().unwrap();
    }
    runtime.block_on(setting.agent.close()).unwrap();
    for key in numbered(8) {
        assert_eq!(stored(&setting.workspace, &key), ["hello", "yes", "at once", "yes"]);
    }
}

/// More are made on the two threads of the runtime, whose other tasks wait.
#[test]
fn at_most_256_syncs_hand_tasks_over() {
    let (setting, runtime) = (Setting::new(), several(2));
    let open = runtime.block_on(setting.talked(numbered(300)));
    setting.disk.hold(true);
    let turns = at_once(&runtime, open);
    assert_eq!(setting.disk.held(258).len(), 258);
    setting.disk.hold(false);
    for turn in turns {
        runtime.block_on(turn).unwrap().unwrap();
    }
}

#[test]
#[covers("JOURNAL-01")]
fn overlapping_syncs_end_in_any_order_and_fail_apart() {
    for (first, outcomes) in [0, 1].into_iter().flat_map(|first| (0..4).map(move |outcomes| (first, outcomes))) {
        let well = [outcomes & 1 == 0, outcomes & 2 == 0];
        let (setting, runtime) = (Setting::new(), several(2));
        let open = runtime.block_on(setting.talked(numbered(2)));
        setting.disk.hold(true);
        let turns = at_once(&runtime, open.clone());
        let directories = setting.disk.held(2);
        for number in [first, 1 - first] {
            let directory = directories.iter().find(|directory| directory.contains(&format!("k{number}"))).unwrap();
            setting.disk.end(directory, well[number]);
        }
        for (turn, well) in turns.into_iter().zip(well) {
            let outcome = runtime.block_on(turn).unwrap();
            assert_eq!(outcome.is_ok(), well, "{outcome:?}");
        }
        setting.disk.hold(false);
        for (instance, well) in open.iter().zip(well) {
            // After a sync that failed nobody knows what is on the disk.
            assert_eq!(runtime.block_on(instance.run("go on")).is_ok(), well);
        }
        let Setting { _alone, workspace, agent, .. } = setting;
        drop((open, agent));
        for (key, well) in numbered(2).zip(well) {
            let stored = stored(&workspace, &key);
            let all = ["hello", "yes", "at once", "yes", "go on", "yes"];
            // Here the disk has the turn whose sync failed.
            assert_eq!(stored, all[..if well { 6 } else { 4 }], "{key}");
        }
    }
}

/// What is in flight ends, and the turn is stored as a whole, though its task is dropped.
#[test]
fn a_runtime_that_is_shut_down_in_a_sync_stores_the_turn() {
    let (setting, runtime) = (Setting::new(), several(2));
    let open = runtime.block_on(setting.talked(numbered(1)));
    setting.disk.hold(true);
    let turns = at_once(&runtime, open);
    setting.disk.held(1);
    runtime.shutdown_background();
    setting.disk.hold(false);
    drop(turns);
    let Setting { _alone, workspace, agent, .. } = setting;
    drop(agent);
    assert_eq!(stored(&workspace, "k0"), ["hello", "yes", "at once", "yes"]);
}

/// A task that is dropped at each of its polls in turn leaves a turn that is stored, or one that goes on.
#[test]
fn a_turn_that_is_dropped_at_any_poll_is_stored_or_open() {
    for polls in 0.. {
        let (setting, runtime) = (Setting::new(), several(2));
        let open = runtime.block_on(setting.talked(numbered(1)));
        let ended = runtime.block_on(async {
            let instance = open[0].clone();
            let dropped = async move {
                let mut turn = pin!(instance.run("dropped"));
                for _ in 0..polls {
                    if poll_fn(|cx| Poll::Ready(turn.as_mut().poll(cx))).await.is_ready() {
                        return true;
                    }
                    tokio::task::yield_now().await;
                }
                false
            };
            tokio::spawn(dropped).await.unwrap()
        });
        runtime.block_on(open[0].run("afterwards")).unwrap();
        let said = runtime.block_on(texts(&open[0]));
        drop(open);
        runtime.block_on(setting.agent.close()).unwrap();
        assert_eq!(stored(&setting.workspace, "k0"), said, "after {polls} polls");
        assert_eq!(said[said.len() - 2..], ["afterwards", "yes"], "after {polls} polls");
        if ended {
            assert!(polls > 0);
            break;
        }
    }
}

/// On a runtime with one thread, in a `LocalSet` of one with several, beside any runtime: the thread that calls waits.
#[test]
fn where_nothing_can_be_handed_over_the_thread_syncs() {
    let setting = Setting::new();
    let turns = async |key: &str| {
        let open = setting.talked([key.to_owned()]).await;
        open[0].run("again").await.unwrap();
        open[0].close().await.unwrap();
    };
    alone().block_on(turns("one thread"));
    several(2).block_on(LocalSet::new().run_until(turns("a local set")));
    several(2).block_on(turns("block_on"));
    // Once the runtime has refused on this thread, it is not asked again.
    several(2).block_on(LocalSet::new().run_until(turns("another local set")));
    let entered = several(2);
    let _entered = entered.enter();
    let mut turns = pin!(turns("another executor"));
    while turns.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {}
    for key in ["one thread", "a local set", "block_on", "another local set", "another executor"] {
        assert_eq!(stored(&setting.workspace, key), ["hello", "yes", "again", "yes"], "{key}");
    }
}
