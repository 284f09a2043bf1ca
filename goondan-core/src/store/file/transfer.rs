//! Owns the one file that an instance can be exported to and imported from: lines of JSON, of which the first says what it
//! is and the last whether it is whole.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::super::InstanceId;
use super::FileStore;
use super::atomic::{self, io_error};
use super::lines::lines;
use super::lock::Lock;
use super::log::Begin;
use super::place::Place;
use super::recovery::recover;
use super::state;
use crate::conversation::Message;
use crate::error::{Error, ErrorCode, Result};
use crate::name::{AgentName, ExtensionName, InstanceKey, TurnId};

/// The version of the format that is written, and the only one that is read.
const VERSION: u32 = 1;

/// The first line.
#[derive(Serialize, Deserialize)]
struct Header {
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
struct End {
    /// How many lines stand before it.
    lines: u64,
    /// CRC-32 of all of them.
    crc: u32,
}

/// A line between them.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line {
    State(State),
    /// A message of the base.
    Message(Message),
    /// The turn that was interrupted.
    Turn(TurnId),
    /// A record of that turn, as it stands in `events.jsonl`.
    Record(Value),
    End(End),
}

#[derive(Serialize, Deserialize)]
struct State {
    extension: ExtensionName,
    value: Value,
}

impl FileStore {
    /// Writes an instance to one file: its messages, the state of its extensions, and a turn that was interrupted. Its work
    /// directory and its runtime events are left out.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when somebody has it open, what opening it can
    /// say, and `E_STORE_IO` when `to` cannot be written.
    pub fn export(&self, instance: &InstanceId, to: impl Write) -> Result<()> {
        let place = self.existing(instance)?;
        let _lock = Lock::take(&place.lock(), instance)?;
        // A commit that was left unfinished is in the base then, and the events are those of an interrupted turn.
        let recovered = recover(&place)?;
        let metadata = serde_json::from_slice(&atomic::read(&place.metadata())?).unwrap_or_default();
        let (agent, key) = (instance.agent.clone(), instance.key.clone());
        let mut out = Exported { to: BufWriter::new(to), hasher: Hasher::new(), lines: 0 };
        out.line(&Header { goondan: "instance".to_owned(), version: VERSION, agent, key, metadata })?;
        for (extension, value) in state::read(&place.extensions())? {
            out.line(&json!({ "state": State { extension, value } }))?;
        }
        drop(recovered.events);
        out.raw_lines("message", BufReader::new(File::open(place.base()).map_err(unwritten)?))?;
        if let Some(turn) = recovered.interrupted {
            out.line(&json!({ "turn": turn.turn }))?;
            let events = atomic::read(&place.events())?;
            for line in lines(&events).skip(1) {
                out.raw("record", line.text)?;
            }
        }
        let end = End { lines: out.lines, crc: out.hasher.clone().finalize() };
        out.line(&json!({ "end": end }))?;
        out.to.flush().map_err(unwritten)
    }

    /// Makes an instance of what [`FileStore::export`] wrote, under its own name or another one. It is there as a whole or
    /// not at all. Gives its name.
    ///
    /// # Errors
    /// `E_STORE_EXISTS` when there is an instance of this name, `E_STORE_DAMAGED` when `from` is no export, or not a whole
    /// one, `E_STORE_IO` when it cannot be read or written.
    pub fn import(&self, from: impl BufRead, name: Option<InstanceId>) -> Result<InstanceId> {
        let mut lines = Imported { from, hasher: Hasher::new(), lines: 0 };
        let header = lines.header()?;
        let id = name.unwrap_or(InstanceId { agent: header.agent.clone(), key: header.key.clone() });
        let place = self.place(&id);
        if place.dir().exists() {
            return Err(Error::new(ErrorCode::STORE_EXISTS, format!("there is an instance `{id}` already"))
                .suggest("give it another name, or delete the one that is there"));
        }
        // Beside the instances, where nobody takes it for one.
        let beside = self.dir.join(format!("import-{:016x}", fastrand::u64(..)));
        let written = write(&beside, &id, header, &mut lines).and_then(|()| {
            let parent = place.dir().parent().unwrap_or(&self.dir).to_owned();
            place.files().create_dirs(&parent)?;
            fs::rename(&beside, place.dir()).map_err(|error| io_error("make", place.dir(), error))?;
            place.files().sync_dir(&parent)
        });
        if written.is_err() {
            // The failure is what matters; what cannot be removed is in nobody's way.
            _ = fs::remove_dir_all(&beside);
        }
        written.map(|()| id)
    }
}

/// Writes the files of the instance `id` into the directory `dir`, and syncs them.
fn write(dir: &Path, id: &InstanceId, header: Header, lines: &mut Imported<impl BufRead>) -> Result<()> {
    let failed = |error| io_error("write to", dir, error);
    let place = Place::at(dir);
    place.files().create_dirs(&place.messages())?;
    place.files().create_dirs(&place.extensions())?;
    let create = |path: PathBuf| File::create(path).map(BufWriter::new).map_err(failed);
    let (mut base, mut events) = (create(place.base())?, create(place.events())?);
    let mut base_bytes = 0;
    loop {
        match lines.next()? {
            Line::End(_) => break,
            Line::State(State { extension, value }) => {
                state::write(&place, &[(extension, value)].into_iter().collect())?;
            }
            Line::Message(message) => base_bytes += push(&mut base, &message).map_err(failed)?,
            Line::Turn(turn) => _ = push(&mut events, &Begin { turn, base_bytes }).map_err(failed)?,
            Line::Record(record) => _ = push(&mut events, &record).map_err(failed)?,
        }
    }
    let mut metadata = header.metadata;
    metadata.insert("agentName".to_owned(), id.agent.as_str().into());
    metadata.insert("instanceKey".to_owned(), id.key.as_str().into());
    let mut file = create(place.metadata())?;
    serde_json::to_writer(&mut file, &metadata)?;
    for file in [base, events, file] {
        let file = file.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
    }
    place.files().sync_dir(&place.messages())?;
    place.files().sync_dir(dir)
}

/// Writes a line, and says how long it is.
fn push(file: &mut impl Write, record: &impl Serialize) -> io::Result<u64> {
    let mut line = serde_json::to_vec(record)?;
    line.push(b'\n');
    file.write_all(&line)?;
    Ok(line.len() as u64)
}

struct Exported<W: Write> {
    to: BufWriter<W>,
    hasher: Hasher,
    lines: u64,
}

impl<W: Write> Exported<W> {
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

    /// A line that holds another one, to the byte.
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

struct Imported<R> {
    from: R,
    hasher: Hasher,
    lines: u64,
}

impl<R: BufRead> Imported<R> {
    fn header(&mut self) -> Result<Header> {
        let text = self.text()?;
        let header: Header = serde_json::from_slice(&text)
            .ok()
            .filter(|header: &Header| header.goondan == "instance")
            .ok_or_else(|| {
                Error::new(ErrorCode::STORE_DAMAGED, "this is no exported instance")
                    .suggest("give a file that `goondan instance export` wrote")
            })?;
        if header.version != VERSION {
            let what = format!("the export has version {}, and this program reads version {VERSION}", header.version);
            return Err(Error::new(ErrorCode::STORE_DAMAGED, what).suggest("import it by the program that exported it"));
        }
        Ok(header)
    }

    /// The next line; the last one is known to fit all before it.
    fn next(&mut self) -> Result<Line> {
        let (before, crc) = (self.lines, self.hasher.clone().finalize());
        let line = serde_json::from_slice(&self.text()?);
        let line = line.map_err(|error| self.damaged("this is no line of an export").caused_by(error))?;
        match &line {
            Line::End(end) if (end.lines, end.crc) != (before, crc) => {
                Err(self.damaged("what stands before does not fit its checksum"))
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
