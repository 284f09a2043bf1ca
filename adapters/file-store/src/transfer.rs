//! Export and import of an instance as a single file of JSON lines: a header, one line for each item, and a checksum.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use crc32fast::Hasher;
use goondan_core::host::depth::{MAX_STORED, check_text};
use goondan_core::{AgentEvent, AgentName, Error, ErrorCode, ExtensionName, InstanceKey, Message, Result, TurnId};
use goondan_runtime::store::{EndedTurn, EventDigest, InstanceId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Fsync;
use super::atomic::{self, io_error};
use super::base::Fingerprint;
use super::layout::InstanceDir;
use super::lines::{push, push_with_sum};
use super::path::{Access, StorePath};
use super::records::{self, BeginRecord, CheckpointRecord, FORMAT, for_record};
use super::recovery::recover;
use super::standing::{Standing, new_journal};
use super::state;
use super::store::FileStore;

/// The version of the format.
const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
struct ExportHeader {
    /// Always `instance`.
    goondan: String,
    version: u32,
    agent: AgentName,
    key: InstanceKey,
    /// The content of `metadata.json`.
    metadata: Map<String, Value>,
}

/// The last line.
#[derive(Serialize, Deserialize)]
struct ExportEnd {
    /// The number of lines before it.
    lines: u64,
    /// CRC-32 of these lines.
    crc: u32,
}

/// A line after the header.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum ExportLine {
    State(StateEntry),
    /// A turn that was committed, one of the newest.
    Ended(EndedTurn),
    /// A message of the base.
    Message(Box<Message>),
    /// The interrupted turn.
    Turn(TurnId),
    /// The event that it answers.
    Event(Box<AgentEvent>),
    /// The digest of that event, before secrets were masked in it.
    Digest(EventDigest),
    /// A record of that turn, as in `events.jsonl`.
    Record(Value),
    End(ExportEnd),
}

#[derive(Serialize, Deserialize)]
struct StateEntry {
    extension: ExtensionName,
    value: Value,
}

impl FileStore {
    /// Writes an instance to `to`: its messages, the state of its extensions, and an interrupted turn, if any. Its
    /// working directory and its runtime events are not exported.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when it is open, `E_STORE_IO` when `to`
    /// cannot be written, and the errors of opening it.
    pub fn export(&self, instance: &InstanceId, to: impl Write) -> Result<()> {
        let (dir, _lock) = self.lock(instance)?;
        if !dir.messages().is_directory().map_err(|error| io_error("open", &dir.messages(), error))? {
            // Another process is about to open it for the first time, or ended while it did.
            return Err(self.not_found(instance));
        }
        let mut recovered = recover(&dir, self.fsync)?;
        let standing = Standing::read(&dir)?;
        if !recovered.files.base.is_complete {
            recovered.files.base.complete(&dir, &standing, &mut recovered.files.events)?;
        }
        let metadata = serde_json::from_slice(&atomic::read(&dir.metadata())?).unwrap_or_default();
        let (agent, key) = (instance.agent.clone(), instance.key.clone());
        let mut out = ExportWriter { to: BufWriter::new(to), hasher: Hasher::new(), lines: 0 };
        out.line(&ExportHeader { goondan: "instance".to_owned(), version: VERSION, agent, key, metadata })?;
        for (extension, value) in recovered.state {
            out.line(&json!({ "state": StateEntry { extension, value } }))?;
        }
        for turn in standing.records.newest_answered() {
            out.line(&json!({ "ended": turn }))?;
        }
        out.raw_lines("message", BufReader::new(atomic::open(&dir.base())?))?;
        if let Some(turn) = recovered.interrupted {
            out.line(&json!({ "turn": turn.turn }))?;
            if let Some(event) = turn.input {
                out.line(&json!({ "event": event }))?;
            }
            if let Some(digest) = turn.digest {
                out.line(&json!({ "digest": digest }))?;
            }
            for line in records::exported(&standing.bytes[standing.records.open_start..]) {
                out.raw("record", line.text)?;
            }
        }
        let end = ExportEnd { lines: out.lines, crc: out.hasher.clone().finalize() };
        out.line(&json!({ "end": end }))?;
        out.to.flush().map_err(unwritten)
    }

    /// Creates an instance from the output of [`FileStore::export`], under the exported name or under `name`, and
    /// returns its name. The import is atomic: the instance exists completely or not at all.
    ///
    /// # Errors
    /// `E_STORE_EXISTS` when there is an instance of this name, `E_STORE_DAMAGED` when `from` is not a complete export
    /// or would not open with all that it contains, `E_VALUE_DEPTH` when a value in it is nested more deeply than in
    /// any export, `E_STORE_IO` when it cannot be read or the instance cannot be written.
    pub fn import(&self, from: impl BufRead, name: Option<InstanceId>) -> Result<InstanceId> {
        let mut lines = ExportReader { from, hasher: Hasher::new(), lines: 0 };
        let header = lines.header()?;
        let id = name.unwrap_or(InstanceId { agent: header.agent.clone(), key: header.key.clone() });
        let dir = self.dir_of(&id);
        if dir.path().find().map_err(|error| io_error("make", dir.path(), error))?.is_some() {
            return Err(Error::new(ErrorCode::STORE_EXISTS, format!("there is an instance `{id}` already"))
                .suggest("give it another name, or delete the one that is there"));
        }
        // Outside of `instances`, where it is not taken for an instance.
        let staging = StorePath::workspace(&self.workspace).join(&format!("import-{:016x}", fastrand::u64(..)));
        let written = write(&staging, &id, header, &mut lines).and_then(|messages| {
            open(&staging, messages)?;
            let parent = StorePath::workspace(&self.workspace).join("instances");
            dir.ops().create_dirs(&parent)?;
            staging.rename(dir.path()).map_err(|error| io_error("make", dir.path(), error))?;
            dir.ops().sync_dir(&parent)
        });
        if written.is_err() {
            // The first failure is the one to report; a directory that cannot be removed does no harm.
            _ = staging.remove_dir_all();
        }
        written.map(|()| id)
    }
}

/// Writes the files of the instance `id` into the directory `at`, and syncs them. Returns the number of messages.
fn write(
    at: &StorePath,
    id: &InstanceId,
    header: ExportHeader,
    lines: &mut ExportReader<impl BufRead>,
) -> Result<usize> {
    let dir = InstanceDir::at(at);
    dir.ops().create_dirs(&dir.messages())?;
    dir.ops().create_dirs(&dir.extensions())?;
    let messages = write_lines(&dir, lines)?;
    let mut metadata = header.metadata;
    metadata.insert("agentName".to_owned(), id.agent.as_str().into());
    metadata.insert("instanceKey".to_owned(), id.key.as_str().into());
    let mut file = create(&dir, &dir.metadata())?;
    serde_json::to_writer(&mut file, &metadata)?;
    finish(&dir, file)?;
    dir.ops().sync_dir(&dir.messages())?;
    dir.ops().sync_dir(at)?;
    Ok(messages)
}

/// Creates a file of the instance.
fn create(dir: &InstanceDir, path: &StorePath) -> Result<BufWriter<File>> {
    path.open(Access::CreateNew).map(BufWriter::new).map_err(|error| io_error("write to", dir.path(), error))
}

/// Writes the rest of a file of the instance, and syncs it.
fn finish(dir: &InstanceDir, file: BufWriter<File>) -> Result<()> {
    let written = file.into_inner().map_err(io::IntoInnerError::into_error).and_then(|file| file.sync_all());
    written.map_err(|error| io_error("write to", dir.path(), error))
}

/// Writes the messages, states and records of an export. Returns the number of messages.
fn write_lines(dir: &InstanceDir, lines: &mut ExportReader<impl BufRead>) -> Result<usize> {
    let mut base = create(dir, &dir.base())?;
    let (mut fingerprint, mut messages) = (Fingerprint::new(), 0);
    let (mut state, mut answered) = (BTreeMap::new(), Vec::new());
    // The open turn: its first record, with the bytes after the line of the turn, and the others.
    let (mut begin, mut records): (Option<BeginRecord<'_>>, Vec<u8>) = (None, Vec::new());
    loop {
        match (lines.next()?, &mut begin) {
            (ExportLine::End(_), _) => break,
            (ExportLine::State(StateEntry { extension, value }), None) => {
                let crc = crc32fast::hash(&state::encode(&value));
                if state.insert(extension.clone(), crc).is_some() {
                    return Err(lines.damaged(&format!("`{extension}` has two states")));
                }
                state::write(dir, &[(extension, value)].into_iter().collect())?;
            }
            (ExportLine::Ended(turn), None) => answered.push(turn),
            (ExportLine::Message(message), None) => {
                let mut line = Vec::new();
                push(&mut line, &*message, &dir.base())?;
                fingerprint.add(&line);
                base.write_all(&line).map_err(|error| io_error("write to", dir.path(), error))?;
                messages += 1;
            }
            (ExportLine::Turn(turn), None) => {
                begin = Some(BeginRecord { turn: Cow::Owned(turn), after: None, event: None, digest: None });
            }
            (ExportLine::Event(event), Some(begin)) if begin.event.is_none() && records.is_empty() => {
                begin.event = Some(Cow::Owned(for_record(&event).into_owned()));
            }
            (ExportLine::Digest(digest), Some(begin)) if begin.digest.is_none() && records.is_empty() => {
                begin.digest = Some(digest);
            }
            (ExportLine::Record(record), Some(_)) => {
                let text = serde_json::to_vec(&record)?;
                match records::is_exported(&text) {
                    Ok(true) => {}
                    Ok(false) => return Err(lines.damaged("this is no record of a turn")),
                    Err(error) => return Err(lines.damaged("this is no record of a turn").caused_by(error)),
                }
                records.extend_from_slice(&text);
                records.push(b'\n');
            }
            _ => return Err(lines.damaged("a line of this kind does not belong here")),
        }
    }
    finish(dir, base)?;
    state::sync(dir)?;
    let (base_bytes, crc) = (fingerprint.bytes, fingerprint.crc());
    let checkpoint = CheckpointRecord { format: FORMAT, committed: None, base_bytes, crc, state, answered };
    let mut journal = new_journal(dir, &checkpoint)?;
    if let Some(begin) = begin {
        push_with_sum(&mut journal, &begin, &dir.events())?;
        journal.append(&mut records);
    }
    let mut events = create(dir, &dir.events())?;
    events.write_all(&journal).map_err(|error| io_error("write to", dir.path(), error))?;
    finish(dir, events)?;
    Ok(messages)
}

/// Opens the written instance as every opening does, and fails if it lacks one of its `messages`.
fn open(at: &StorePath, messages: usize) -> Result<()> {
    let dir = InstanceDir::at(at);
    let refused = |why: &str| {
        Error::new(ErrorCode::STORE_DAMAGED, format!("the export makes no instance that opens: {why}"))
            .suggest("export the instance again: nothing was imported")
    };
    let recovered =
        recover(&dir, Fsync::Turn).map_err(|error| refused(&error.message()).caused_by(error.into_std()))?;
    match recovered.messages.len() {
        found if found == messages => Ok(()),
        found => Err(refused(&format!("of its {messages} messages, {found} are left"))),
    }
}

/// Writes lines and keeps their count and checksum.
struct ExportWriter<W: Write> {
    to: BufWriter<W>,
    hasher: Hasher,
    lines: u64,
}

impl<W: Write> ExportWriter<W> {
    fn line(&mut self, line: &impl Serialize) -> Result<()> {
        self.bytes(&serde_json::to_vec(line)?)?;
        self.end_line()
    }

    fn raw_lines(&mut self, member: &str, mut from: impl BufRead) -> Result<()> {
        let mut line = Vec::new();
        while from.read_until(b'\n', &mut line).map_err(unwritten)? > 0 {
            if !line.trim_ascii().is_empty() {
                self.raw(member, &line)?;
            }
            line.clear();
        }
        Ok(())
    }

    /// Writes a line that contains another line, byte for byte.
    fn raw(&mut self, member: &str, line: &[u8]) -> Result<()> {
        self.bytes(format!("{{\"{member}\":").as_bytes())?;
        self.bytes(line.trim_ascii())?;
        self.bytes(b"}")?;
        self.end_line()
    }

    fn end_line(&mut self) -> Result<()> {
        self.lines += 1;
        self.bytes(b"\n")
    }

    fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        self.hasher.update(bytes);
        self.to.write_all(bytes).map_err(unwritten)
    }
}

/// Reads lines and keeps their count and checksum.
struct ExportReader<R> {
    from: R,
    hasher: Hasher,
    lines: u64,
}

impl<R: BufRead> ExportReader<R> {
    fn header(&mut self) -> Result<ExportHeader> {
        let text = self.text()?;
        let header: ExportHeader = serde_json::from_slice(&text)
            .ok()
            .filter(|header: &ExportHeader| header.goondan == "instance")
            .ok_or_else(|| {
                Error::new(ErrorCode::STORE_DAMAGED, "this is no exported instance")
                    .suggest("give a file that `goondan instance export` wrote")
            })?;
        if header.version != VERSION {
            let what = format!("the export has version {}, and this program reads {VERSION}", header.version);
            return Err(Error::new(ErrorCode::STORE_DAMAGED, what).suggest("import it by the program that exported it"));
        }
        Ok(header)
    }

    /// Returns the next line. The checksum of the last one is verified.
    fn next(&mut self) -> Result<ExportLine> {
        let (before, crc) = (self.lines, self.hasher.clone().finalize());
        let text = self.text()?;
        // A state is inside of two objects, anything else inside of one.
        // DEPTH-01
        let outside = if text.starts_with(b"{\"state\"") { 2 } else { 1 };
        check_text(&text, MAX_STORED + outside)
            .map_err(|error| error.refuse(format_args!("line {} of the export", self.lines)))?;
        let line = serde_json::from_slice(&text);
        let line = line.map_err(|error| self.damaged("this is no line of an export").caused_by(error))?;
        match &line {
            ExportLine::End(end) if (end.lines, end.crc) != (before, crc) => {
                Err(self.damaged("the lines before it do not match its checksum"))
            }
            _ => Ok(line),
        }
    }

    fn text(&mut self) -> Result<Vec<u8>> {
        let mut text = Vec::new();
        let read = self.from.read_until(b'\n', &mut text);
        self.lines += 1;
        if read.map_err(|error| Error::new(ErrorCode::STORE_IO, "cannot read the export").caused_by(error))? == 0 {
            return Err(self.damaged("the end is missing"));
        }
        self.hasher.update(&text);
        Ok(text)
    }

    fn damaged(&self, what: &str) -> Error {
        Error::new(ErrorCode::STORE_DAMAGED, format!("the export, line {}: {what}", self.lines))
            .suggest("export the instance again: nothing was imported")
    }
}

fn unwritten(error: io::Error) -> Error {
    Error::new(ErrorCode::STORE_IO, "cannot write the export").caused_by(error)
}
