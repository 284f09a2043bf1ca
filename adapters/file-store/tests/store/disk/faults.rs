//! A disk that fails at each of its operations in turn: what was promised before is kept, and the conversation goes on
//! once there is a disk again.

use std::fs::Metadata;
use std::io::{Error, ErrorKind, Result};
use std::sync::{Arc, Mutex};

use goondan_core::{Conversation, ErrorCode, TurnId};
use goondan_covers::covers;
use goondan_file_store::{Disk, DiskFile, FileStore, OpenMode, RealDisk, StorePath};
use goondan_runtime::Store;
use goondan_runtime::store::{Commit, Opened, TurnStart};

use super::crashes::{id, scratch};
use super::turns::{Call, Driver, Found, States, append, expectations, script};

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// It has no effect.
    Refused,
    /// A write stores its first half; all else is done, and said to have failed.
    Half,
    /// It has no effect, and neither has any after it, until the disk is back.
    Away,
}

#[derive(Debug)]
struct Plan {
    /// The operation that fails.
    at: usize,
    fault: Fault,
    /// How many there were before the disk is back.
    done: usize,
    is_back: bool,
}

/// A disk of which one operation fails. Clones are the same disk.
#[derive(Clone, Debug)]
struct FailingDisk(Arc<Mutex<Plan>>);

impl FailingDisk {
    fn new(at: usize, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(Plan { at, fault, done: 0, is_back: false })))
    }

    /// Counts an operation. Returns how it fails, if it does.
    fn next(&self) -> Option<Fault> {
        let mut plan = self.0.lock().unwrap();
        if plan.is_back {
            return None;
        }
        plan.done += 1;
        let fails = plan.done == plan.at || (plan.done > plan.at && plan.fault == Fault::Away);
        fails.then_some(plan.fault)
    }

    fn run<T>(&self, operation: impl FnOnce() -> Result<T>) -> Result<T> {
        match self.next() {
            None => operation(),
            Some(Fault::Half) => operation().and(Err(full())),
            Some(Fault::Refused | Fault::Away) => Err(full()),
        }
    }
}

fn full() -> Error {
    ErrorKind::StorageFull.into()
}

#[derive(Debug)]
struct FailingFile(Box<dyn DiskFile>, FailingDisk);

impl Disk for FailingDisk {
    fn open(&self, path: &StorePath, mode: OpenMode) -> Result<Box<dyn DiskFile>> {
        self.run(|| Ok(Box::new(FailingFile(RealDisk.open(path, mode)?, self.clone())) as _))
    }

    fn rename(&self, from: &StorePath, to: &StorePath) -> Result<()> {
        self.run(|| RealDisk.rename(from, to))
    }

    fn remove(&self, path: &StorePath) -> Result<()> {
        self.run(|| RealDisk.remove(path))
    }

    fn create_dir(&self, path: &StorePath) -> Result<()> {
        self.run(|| RealDisk.create_dir(path))
    }

    fn sync_dir(&self, path: &StorePath) -> Result<()> {
        self.run(|| RealDisk.sync_dir(path))
    }
}

impl DiskFile for FailingFile {
    fn write_at(&mut self, at: u64, bytes: &[u8]) -> Result<()> {
        match self.1.next() {
            None => self.0.write_at(at, bytes),
            Some(Fault::Half) => self.0.write_at(at, &bytes[..bytes.len() / 2]).and(Err(full())),
            Some(Fault::Refused | Fault::Away) => Err(full()),
        }
    }

    fn metadata(&self) -> Result<Metadata> {
        self.0.metadata()
    }

    fn set_len(&mut self, len: u64) -> Result<()> {
        self.1.run(|| self.0.set_len(len))
    }

    fn sync(&mut self) -> Result<()> {
        self.1.run(|| self.0.sync())
    }
}

/// Makes the calls until one fails, and opens the conversation on a disk that is back. Returns how many operations
/// there were.
async fn run(calls: &[Call], expected: &[Found], limit: u64, at: usize, fault: Fault) -> usize {
    let (workspace, disk) = (scratch(), FailingDisk::new(at, fault));
    let store = FileStore::open(workspace.path()).unwrap().journal_limit(limit).on_disk(disk.clone());
    let (mut promised, mut made) = (0, 0);
    let mut failure = None;
    match Driver::new(store.clone()).await {
        Err(error) => failure = Some(error),
        Ok(mut driver) => {
            for call in calls {
                made += 1;
                match driver.call(call.clone()).await {
                    Ok(durability) => promised = if durability.is_some() { made } else { promised },
                    Err(error) => {
                        failure = Some(error);
                        break;
                    }
                }
            }
        }
    }
    let what = format!("{fault:?} at operation {at}, {failure:?}");
    assert!(failure.is_none_or(|error| *error.code() == ErrorCode::STORE_IO), "{what}");
    disk.0.lock().unwrap().is_back = true;
    let (found, journal) = Found::open(&store).await.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    let allowed = &expected[promised..=made];
    assert!(allowed.contains(&found), "{what}: {found:#?}\nis none of {allowed:#?}");
    journal.close().await.unwrap();

    let Opened { base, interrupted, mut journal, .. } = store.open(&id()).await.unwrap();
    let mut conversation = Conversation::from_base(base).0;
    let none = States::new();
    if let Some(open) = interrupted {
        open.events.into_iter().for_each(|event| _ = conversation.apply(event).unwrap());
        journal.commit(Commit::new(&open.turn, &conversation, &none)).await.unwrap();
        conversation.fold();
    }
    let (turn, event) = (TurnId::from("afterwards"), append("m99"));
    journal.begin(TurnStart::new(&turn)).unwrap();
    conversation.apply(event.clone()).unwrap();
    journal.record(&event, None).unwrap();
    journal.commit(Commit::new(&turn, &conversation, &none)).await.unwrap();
    journal.close().await.unwrap();
    let (again, _journal) = Found::open(&store).await.unwrap();
    assert_eq!(again.messages.len(), conversation.messages().count(), "{what}: after another turn");
    assert_eq!(again.messages.last().unwrap()["id"], "m99", "{what}: after another turn");
    disk.0.lock().unwrap().done
}

#[tokio::test]
#[covers("JOURNAL-01")]
async fn a_disk_that_fails_at_any_operation_loses_no_turn() {
    let calls = script();
    let expected = expectations(&calls).await;
    let step = if std::env::var_os("GOONDAN_RUNS").is_some() { 1 } else { 7 };
    let mut runs = 0;
    for limit in [1, 3_000, 1 << 20] {
        let all = run(&calls, &expected, limit, usize::MAX, Fault::Refused).await;
        for at in (1..=all).step_by(step) {
            for fault in [Fault::Refused, Fault::Half, Fault::Away] {
                run(&calls, &expected, limit, at, fault).await;
                runs += 1;
            }
        }
    }
    println!("{runs} disks that failed");
}
