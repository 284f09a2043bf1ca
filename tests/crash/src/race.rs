//! Race of processes that open one instance with processes that delete and read it: it is open once at a time, and what
//! is read is a conversation.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use goondan::conversation::{Conversation, Message, MessageEvent};
use goondan::name::{AgentName, InstanceKey, TurnId};
use goondan::store::{Commit, FileStore, Fsync, InstanceId, Opened, Store, TurnStart};
use goondan::{Error, ErrorCode, Result};

const OPENERS: u64 = 4;
const DELETERS: u64 = 2;
const READERS: u64 = 1;

/// Exists while a process has the instance open. Processes that have it open at once see it.
const HOLDER: &str = "holder";

/// Ends the deleters and the readers.
const STOP: &str = "stop";

/// What one process counts, or all of them together.
#[derive(Default)]
struct Counts {
    opened: u64,
    /// How often the instance was open elsewhere, or was being deleted.
    refused: u64,
    /// How often it was open twice.
    double: u64,
    /// How many turns were acknowledged and not stored.
    lost: u64,
    deleted: u64,
    read: u64,
}

impl Counts {
    fn print(&self) {
        let Self { opened, refused, double, lost, deleted, read } = self;
        println!("{opened} {refused} {double} {lost} {deleted} {read}");
    }

    fn add(&mut self, printed: &str) -> Result<()> {
        let numbers: Vec<_> = printed.split_whitespace().map(crate::number).collect::<Result<_>>()?;
        let [opened, refused, double, lost, deleted, read] = numbers[..] else {
            return Err(Error::msg(format!("a child printed `{printed}`")));
        };
        self.opened += opened;
        self.refused += refused;
        self.double += double;
        self.lost += lost;
        self.deleted += deleted;
        self.read += read;
        Ok(())
    }
}

/// Opens the instance `openings` times while others delete and read it. Fails if it was open twice, if a turn was lost,
/// or if what was read is no conversation.
pub(crate) fn run(openings: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let start = Instant::now();
    let share = |opener| (openings / OPENERS + u64::from(opener < openings % OPENERS)).to_string();
    let openers: Vec<_> = (0..OPENERS).map(|it| child("opener", dir.path(), &[&share(it)])).collect::<Result<_>>()?;
    let deleters = (0..DELETERS).map(|_| child("deleter", dir.path(), &[]));
    let others: Vec<_> =
        deleters.chain((0..READERS).map(|_| child("reader", dir.path(), &[]))).collect::<Result<_>>()?;
    let mut counts = Counts::default();
    let opened = openers.into_iter().try_for_each(|opener| counts.add(&output(opener)?));
    File::create(dir.path().join(STOP))?;
    let ended = others.into_iter().try_for_each(|other| counts.add(&output(other)?));
    opened.and(ended)?;
    let Counts { opened, refused, double, lost, deleted, read } = counts;
    println!(
        "{opened} openings beside {deleted} deletions and {read} readings, {refused} refused; \
         {double} double, {lost} turns lost, {:.0?}",
        start.elapsed()
    );
    if double + lost > 0 { Err(Error::msg("the instance was open twice, or a turn was lost")) } else { Ok(()) }
}

fn child(role: &str, dir: &Path, args: &[&str]) -> Result<Child> {
    let mut command = Command::new(std::env::current_exe()?);
    Ok(command.arg(role).arg(dir).args(args).stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?)
}

fn output(mut child: Child) -> Result<String> {
    let mut text = String::new();
    if let Some(output) = &mut child.stdout {
        output.read_to_string(&mut text)?;
    }
    let status = child.wait()?;
    if status.success() { Ok(text) } else { Err(Error::msg(format!("a child failed: {status}"))) }
}

fn store(dir: &Path) -> Result<(FileStore, InstanceId)> {
    let id = InstanceId { agent: AgentName::new("bot")?, key: InstanceKey::new("k")? };
    // The machine does not stop, and syncs only make the race slower. Half of the processes make a checkpoint of each
    // turn.
    let limit = [1, 1 << 18][std::process::id() as usize % 2];
    Ok((FileStore::open(dir.join("store"))?.fsync(Fsync::Never).journal_limit(limit), id))
}

/// Opens the instance `openings` times, and runs a turn each time.
pub(crate) async fn open(dir: &Path, openings: u64) -> Result<()> {
    let ((store, id), mut counts) = (store(dir)?, Counts::default());
    while counts.opened < openings {
        let opened = match store.open(&id).await {
            Err(error) if error.code() == &ErrorCode::STORE_LOCKED => {
                counts.refused += 1;
                std::thread::yield_now();
                continue;
            }
            opened => opened?,
        };
        let alone = match File::create_new(dir.join(HOLDER)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => false,
            created => created.map(|_| true)?,
        };
        counts.double += u64::from(!alone);
        let text = format!("{} {}", std::process::id(), counts.opened);
        // Dropped only after the check: until then, no other process may change or delete the instance.
        let journal = turn(opened, &text).await;
        let stored = || Some(store.read(&id).ok()?.messages.last()?.text() == text);
        counts.lost += u64::from(journal.is_err() || stored() != Some(true));
        if alone {
            fs::remove_file(dir.join(HOLDER))?;
        }
        drop(journal);
        counts.opened += 1;
    }
    counts.print();
    Ok(())
}

/// Runs a turn that appends a message.
async fn turn(opened: Opened, text: &str) -> Result<Opened> {
    let mut opened = opened;
    let (mut conversation, _) = Conversation::from_base(opened.base.iter().cloned());
    let turn = TurnId::from(text);
    opened.journal.begin(TurnStart::new(&turn))?;
    let event = MessageEvent::append(Message::user(text));
    conversation.apply(event.clone())?;
    opened.journal.record(&event, None)?;
    opened.journal.commit(Commit::new(&turn, &conversation, &Default::default())).await?;
    Ok(opened)
}

/// Deletes the instance again and again, until the openers have ended.
pub(crate) fn delete(dir: &Path) -> Result<()> {
    let ((store, id), mut counts) = (store(dir)?, Counts::default());
    while !dir.join(STOP).exists() {
        match store.delete(&id) {
            Ok(()) => counts.deleted += 1,
            Err(error) if [ErrorCode::STORE_LOCKED, ErrorCode::STORE_NOT_FOUND].contains(error.code()) => {
                std::thread::yield_now();
            }
            Err(error) => return Err(error),
        }
    }
    counts.print();
    Ok(())
}

/// Reads and exports the instance again and again, until the openers have ended.
pub(crate) fn read(dir: &Path) -> Result<()> {
    let ((store, id), mut counts) = (store(dir)?, Counts::default());
    while !dir.join(STOP).exists() {
        let read = store.read(&id).and_then(|_| store.instances()).and_then(|_| store.export(&id, std::io::sink()));
        match read {
            Ok(()) => counts.read += 1,
            Err(error) if [ErrorCode::STORE_LOCKED, ErrorCode::STORE_NOT_FOUND].contains(error.code()) => {
                std::thread::yield_now();
            }
            Err(error) => return Err(error),
        }
    }
    counts.print();
    Ok(())
}
