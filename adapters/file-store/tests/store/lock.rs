//! The lock of an instance: one journal at a time, also beside programs that delete its directory, and nothing is
//! written without it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use goondan_core::{AgentName, Conversation, Error, ErrorCode, InstanceKey, Message, MessageEvent, TurnId};
use goondan_file_store::FileStore;
use goondan_file_store::{Disk, DiskFile, OpenMode, RealDisk, StorePath};
use goondan_runtime::store::{Commit, Durability, Opened, TurnStart};
use goondan_runtime::{InstanceId, Store};
use tempfile::TempDir;

fn id() -> InstanceId {
    InstanceId { agent: AgentName::new("bot").unwrap(), key: InstanceKey::new("k").unwrap() }
}

/// An open instance, and its conversation.
struct Live {
    opened: Opened,
    conversation: Conversation,
}

impl Live {
    async fn open(store: &FileStore) -> Result<Self, Error> {
        let opened = store.open(&id()).await?;
        let (conversation, _) = Conversation::from_base(opened.base.iter().cloned());
        Ok(Self { opened, conversation })
    }

    fn begin(&mut self, text: &str) -> Result<TurnId, Error> {
        let turn = TurnId::from(text);
        self.opened.journal.begin(TurnStart::new(&turn))?;
        let event = MessageEvent::append(Message::user(text));
        self.conversation.apply(event.clone())?;
        self.opened.journal.record(&event, None)?;
        Ok(turn)
    }

    async fn commit(&mut self, turn: &TurnId) -> Result<(), Error> {
        self.opened.journal.commit(Commit::new(turn, &self.conversation, &BTreeMap::new())).await?;
        self.conversation.fold();
        Ok(())
    }

    async fn turn(&mut self, text: &str) -> Result<(), Error> {
        let turn = self.begin(text)?;
        self.commit(&turn).await
    }

    fn texts(&self) -> Vec<String> {
        self.opened.base.iter().map(|message| message.text().into_owned()).collect()
    }
}

async fn texts(store: &FileStore) -> Vec<String> {
    Live::open(store).await.unwrap().texts()
}

fn workspace() -> (TempDir, FileStore, PathBuf) {
    let workspace = tempfile::tempdir().unwrap();
    let store = FileStore::open(workspace.path()).unwrap();
    let dir = store.instance_dir(&id());
    (workspace, store, dir)
}

/// What takes the lock away from an open instance, without asking for it.
const LOSSES: [fn(&Path); 4] = [
    |dir| fs::remove_dir_all(dir).unwrap(),
    |dir| fs::rename(dir, dir.with_extension("away")).unwrap(),
    |dir| fs::remove_file(dir.join("lock")).unwrap(),
    |dir| {
        fs::write(dir.join("lock.new"), "").unwrap();
        fs::rename(dir.join("lock.new"), dir.join("lock")).unwrap();
    },
];

#[tokio::test]
async fn without_its_lock_a_conversation_writes_nothing_over_the_turns_of_another_process() {
    for (number, lose) in LOSSES.iter().enumerate() {
        for running in [false, true] {
            let (_workspace, store, dir) = workspace();
            let mut loser = Live::open(&store).await.unwrap();
            loser.turn("first").await.unwrap();
            let turn = running.then(|| loser.begin("lost").unwrap());
            lose(&dir);
            let mut next = Live::open(&store).await.unwrap();
            next.turn("next").await.unwrap();

            let lost = |error: Error| {
                assert_eq!(error.code(), &ErrorCode::STORE_LOST, "{error:?}");
                assert!(error.suggestion().is_some() && error.message().contains("bot:k"), "{error:?}");
            };
            match &turn {
                None => lost(loser.begin("lost").unwrap_err()),
                Some(turn) => {
                    lost(loser.opened.journal.flush(Durability::Flushed).await.unwrap_err());
                    lost(loser.commit(turn).await.unwrap_err());
                }
            }
            drop(loser);
            next.turn("after").await.unwrap();
            drop(next);
            let texts = texts(&store).await;
            assert!(texts.ends_with(&["next".to_owned(), "after".to_owned()]), "loss {number}: {texts:?}");
            assert!(!texts.contains(&"lost".to_owned()), "loss {number}: {texts:?}");
        }
    }
}

#[tokio::test]
async fn a_lock_that_is_lost_before_anybody_else_opens_is_noticed_too() {
    for lose in LOSSES {
        let (_workspace, store, dir) = workspace();
        let mut live = Live::open(&store).await.unwrap();
        lose(&dir);
        assert_eq!(live.turn("lost").await.unwrap_err().code(), &ErrorCode::STORE_LOST);
        drop(live);
        assert_eq!(texts(&store).await, [""; 0]);
    }
}

/// Wraps the disk, and does something once to a path that is created, right after it is.
#[derive(Debug)]
struct Beside {
    path: PathBuf,
    times: Arc<AtomicU32>,
}

impl Disk for Beside {
    fn open(&self, path: &StorePath, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        RealDisk.open(path, mode)
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.create_dir(path)?;
        if **path == *self.path && self.times.fetch_sub(1, Ordering::Relaxed) > 0 {
            fs::remove_dir(&self.path)?;
        }
        Ok(())
    }

    fn sync_dir(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
}

#[tokio::test]
async fn an_instance_that_is_deleted_while_it_is_opened_is_made_again() {
    let (_workspace, store, dir) = workspace();
    let times = Arc::new(AtomicU32::new(3));
    let store = store.on_disk(Beside { path: dir, times: times.clone() });
    let mut live = Live::open(&store).await.unwrap();
    live.turn("hello").await.unwrap();
    drop(live);
    assert_eq!(texts(&store).await, ["hello"]);
}

/// The directory is made before it is locked, and what is in it after that.
#[tokio::test]
async fn an_instance_that_is_about_to_be_made_is_not_there_to_be_exported() {
    let (_workspace, store, dir) = workspace();
    std::fs::create_dir_all(&dir).unwrap();
    let error = store.export(&id(), std::io::sink()).unwrap_err();
    assert_eq!(*error.code(), ErrorCode::STORE_NOT_FOUND);
    assert_eq!(texts(&store).await, Vec::<String>::new());
}

#[tokio::test]
async fn an_open_instance_is_not_deleted_and_a_deleted_one_leaves_nothing() {
    let (workspace, store, _) = workspace();
    let mut live = Live::open(&store).await.unwrap();
    live.turn("hello").await.unwrap();
    assert_eq!(store.delete(&id()).unwrap_err().code(), &ErrorCode::STORE_LOCKED);
    live.turn("again").await.unwrap();
    drop(live);
    // What a crash left of an earlier deletion goes too.
    fs::create_dir(workspace.path().join("deleted-00")).unwrap();
    fs::write(workspace.path().join("deleted-00/metadata.json"), "{}").unwrap();
    store.delete(&id()).unwrap();
    let left = |dir: &Path| fs::read_dir(dir).unwrap().map(|it| it.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!(left(workspace.path()), ["instances"]);
    assert_eq!(left(&workspace.path().join("instances")), [""; 0]);
    assert_eq!(store.delete(&id()).unwrap_err().code(), &ErrorCode::STORE_NOT_FOUND);
    assert_eq!(texts(&store).await, [""; 0]);
}

/// Wraps the disk. While `failing`, only half of what is written to the base arrives.
#[derive(Clone, Debug)]
struct Half {
    failing: Arc<AtomicU32>,
}

#[derive(Debug)]
struct HalfFile {
    file: Box<dyn DiskFile>,
    disk: Half,
}

impl Disk for Half {
    fn open(&self, path: &StorePath, mode: OpenMode) -> io::Result<Box<dyn DiskFile>> {
        let file = RealDisk.open(path, mode)?;
        Ok(if path.ends_with("base.jsonl") { Box::new(HalfFile { file, disk: self.clone() }) } else { file })
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn remove(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.remove(path)
    }

    fn create_dir(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.create_dir(path)
    }

    fn sync_dir(&self, path: &StorePath) -> io::Result<()> {
        RealDisk.sync_dir(path)
    }
}

impl DiskFile for HalfFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        if self.disk.failing.load(Ordering::Relaxed) == 0 {
            return self.file.write_at(at, bytes);
        }
        self.file.write_at(at, &bytes[..bytes.len() / 2])?;
        Err(io::Error::from(io::ErrorKind::StorageFull))
    }

    fn metadata(&self) -> io::Result<fs::Metadata> {
        self.file.metadata()
    }

    fn set_len(&mut self, len: u64) -> io::Result<()> {
        self.file.set_len(len)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()
    }
}

#[tokio::test]
async fn a_base_of_which_a_write_failed_is_completed_later() {
    let (_workspace, store, dir) = workspace();
    let half = Half { failing: Arc::default() };
    let store = store.on_disk(half.clone());
    let mut live = Live::open(&store).await.unwrap();
    live.turn("one").await.unwrap();
    half.failing.store(1, Ordering::Relaxed);
    live.turn("two").await.unwrap();
    live.turn("three").await.unwrap();
    half.failing.store(0, Ordering::Relaxed);
    live.turn("four").await.unwrap();
    live.opened.journal.close().await.unwrap();
    let base = fs::read_to_string(dir.join("messages/base.jsonl")).unwrap();
    assert_eq!(base.lines().count(), 4, "{base}");
    assert_eq!(texts(&store).await, ["one", "two", "three", "four"]);
    assert!(!dir.join("messages/base.jsonl.corrupt-1").exists(), "nothing foreign was there");
}
