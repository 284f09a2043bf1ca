//! The open `runtime-events.jsonl` of an instance: the work of the runtime, for readers outside the process (F-EVENTS).
//! Recovery never reads it, so it is neither synced nor repaired.

use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Result as IoResult, Seek, SeekFrom, Write};

use goondan_core::{Result, RuntimeEvent};

use super::atomic::io_error;
use super::layout::InstanceDir;
use super::lines;
use super::path::{Access, StorePath};

/// The length above which the file is renamed to `runtime-events.1.jsonl` and a new one is started.
const MAX_LEN: u64 = 16 * 1024 * 1024;

/// The file, and the lines to be written to it.
#[derive(Debug)]
pub(super) struct RuntimeEventsFile {
    path: StorePath,
    /// The name of the file when it is full.
    old: StorePath,
    lines: Vec<u8>,
    /// Opened by the first write, and reopened after a failure.
    file: Option<OpenFile>,
    max_len: u64,
}

#[derive(Debug)]
struct OpenFile {
    file: File,
    len: u64,
}

impl RuntimeEventsFile {
    /// Returns a log in the file of `dir`, which is not opened before the first flush.
    pub(super) fn new(dir: &InstanceDir) -> Self {
        Self {
            path: dir.runtime_events(),
            old: dir.old_runtime_events(),
            lines: Vec::new(),
            file: None,
            max_len: MAX_LEN,
        }
    }

    /// Buffers an event until the next [`flush`](Self::flush).
    pub(super) fn note(&mut self, event: &RuntimeEvent) {
        if let Err(error) = lines::push(&mut self.lines, event, &self.path) {
            tracing::warn!(event = event.name(), "a runtime event was not recorded: {}", error.report());
        }
    }

    /// Writes the buffered events, so that they survive the process but perhaps not the machine. Events that cannot be
    /// written are dropped: a full disk must not fill the memory as well.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.write();
        self.lines.clear();
        written.map_err(|error| io_error("write runtime events to", &self.path, error))
    }

    fn write(&mut self) -> IoResult<()> {
        // `take`, so that a failure reopens the file, whose last line may then be partial.
        let open = match self.file.take() {
            Some(open) => open,
            None => OpenFile::at_end(&self.path)?,
        };
        let more = self.lines.len() as u64;
        let full = open.len > 0 && open.len + more > self.max_len;
        let mut open = if full { self.rotate(open)? } else { open };
        open.file.write_all(&self.lines)?;
        open.len += more;
        self.file = Some(open);
        Ok(())
    }

    /// Renames the file, replacing the previous renamed one, and opens a new file.
    fn rotate(&self, full: OpenFile) -> IoResult<OpenFile> {
        // Some systems cannot rename an open file.
        drop(full);
        self.path.rename(&self.old)?;
        OpenFile::at_end(&self.path)
    }
}

impl OpenFile {
    /// Opens or creates the file. If its last line is partial, ends it, so that the next line does not become part of
    /// it.
    fn at_end(path: &StorePath) -> IoResult<Self> {
        let (mut file, mut len) = path.open_with_length(Access::Append)?;
        let mut last = [b'\n'];
        if len > 0 {
            file.seek(SeekFrom::End(-1))?;
            file.read_exact(&mut last)?;
        }
        if last != [b'\n'] {
            file.write_all(b"\n")?;
            len += 1;
        }
        Ok(Self { file, len })
    }
}

/// Returns the lines of both files, older ones first.
pub(super) fn lines_of(dir: &InstanceDir) -> Result<impl BufRead + use<>> {
    let open = |path: StorePath| match path.open(Access::Read) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        opened => opened.map(Some).map_err(|error| io_error("read", &path, error)),
    };
    let files: [Box<dyn Read>; 2] = [open(dir.old_runtime_events())?, open(dir.runtime_events())?]
        .map(|file| file.map_or_else(|| Box::new(std::io::empty()) as Box<dyn Read>, |file| Box::new(file)));
    let [old, new] = files;
    Ok(BufReader::new(old.chain(new)))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, OpenOptions};
    use std::path::PathBuf;

    use super::*;
    use serde_json::json;

    struct TestDir {
        dir: tempfile::TempDir,
    }

    impl TestDir {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("messages")).unwrap();
            Self { dir }
        }

        fn log(&self) -> RuntimeEventsFile {
            RuntimeEventsFile::new(&InstanceDir::at(&StorePath::workspace(self.dir.path())))
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("messages/runtime-events.jsonl")
        }

        fn turns(&self, file: &str) -> Vec<String> {
            let text = fs::read_to_string(self.dir.path().join("messages").join(file)).unwrap();
            assert!(text.ends_with('\n'));
            let event = |line| serde_json::from_str::<RuntimeEvent>(line).ok();
            text.lines().map(|line| event(line).map_or(line.to_owned(), |it| it.scope().turn_id.to_string())).collect()
        }
    }

    fn started(turn: &str) -> RuntimeEvent {
        let event = json!({
            "type": "turn.started",
            "agentName": "bot",
            "instanceKey": "main",
            "timestamp": "2026-01-31T12:00:00.250Z",
            "turnId": turn,
            "traceId": "0123456789abcdef0123456789abcdef",
            "spanId": "0123456789abcdef",
        });
        serde_json::from_value(event).unwrap()
    }

    #[test]
    fn what_is_noted_is_in_the_file_after_a_flush() {
        let dir = TestDir::new();
        let mut log = dir.log();
        log.flush().unwrap();
        assert!(!dir.path().exists(), "nothing happened");
        log.note(&started("t1"));
        log.note(&started("t2"));
        assert!(!dir.path().exists(), "not flushed");
        log.flush().unwrap();
        log.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t1", "t2"]);
        log.note(&started("t3"));
        log.flush().unwrap();
        let mut later = dir.log();
        later.note(&started("t4"));
        later.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t1", "t2", "t3", "t4"]);
    }

    #[test]
    fn a_torn_line_of_an_earlier_process_does_not_swallow_the_next_one() {
        let dir = TestDir::new();
        fs::write(dir.path(), "{\"type\":\"turn.sta").unwrap();
        let mut log = dir.log();
        log.note(&started("t1"));
        log.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.jsonl"), ["{\"type\":\"turn.sta", "t1"]);
    }

    #[test]
    fn a_file_that_would_become_too_long_is_renamed() {
        let dir = TestDir::new();
        let mut log = dir.log();
        let line = serde_json::to_vec(&started("t1")).unwrap().len() as u64 + 1;
        log.max_len = 2 * line;
        for turn in ["t1", "t2", "t3", "t4", "t5"] {
            log.note(&started(turn));
            log.flush().unwrap();
        }
        assert_eq!(dir.turns("runtime-events.1.jsonl"), ["t3", "t4"], "the older one is replaced");
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t5"]);
        // The content of an earlier process counts too; lines of one flush stay together.
        let mut later = dir.log();
        later.max_len = 2 * line;
        ["t6", "t7", "t8"].iter().for_each(|turn| later.note(&started(turn)));
        later.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.1.jsonl"), ["t5"]);
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t6", "t7", "t8"]);
        assert_eq!(fs::read_dir(dir.dir.path().join("messages")).unwrap().count(), 2);
        // An empty file does not replace the renamed one.
        fs::write(dir.path(), "").unwrap();
        let mut later = RuntimeEventsFile { max_len: 1, ..dir.log() };
        later.note(&started("t9"));
        later.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.1.jsonl"), ["t5"]);
    }

    #[test]
    fn a_failure_is_returned_and_loses_only_the_buffered_events() {
        let dir = TestDir::new();
        fs::create_dir(dir.path()).unwrap();
        let mut log = dir.log();
        log.note(&started("t1"));
        let error = log.flush().unwrap_err();
        assert_eq!(error.code(), &goondan_core::ErrorCode::STORE_IO);
        assert!(error.message().contains("runtime-events.jsonl"));
        fs::remove_dir(dir.path()).unwrap();
        log.note(&started("t2"));
        log.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t2"]);
    }

    #[test]
    fn half_a_line_of_a_failed_write_does_not_swallow_the_next_one() {
        let dir = TestDir::new();
        let mut log = dir.log();
        log.note(&started("t1"));
        log.flush().unwrap();
        // A read-only descriptor, and half a line as a full disk would leave it.
        log.file.as_mut().unwrap().file = File::open(dir.path()).unwrap();
        log.note(&started("t2"));
        assert!(log.flush().is_err());
        OpenOptions::new().append(true).open(dir.path()).unwrap().write_all(b"{\"ty").unwrap();
        log.note(&started("t3"));
        log.flush().unwrap();
        assert_eq!(dir.turns("runtime-events.jsonl"), ["t1", "{\"ty", "t3"]);
    }
}
