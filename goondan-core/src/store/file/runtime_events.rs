//! Owns the open `runtime-events.jsonl` of an instance: what the runtime did, for people and tools that look from outside
//! (F-EVENTS). It is never input to recovery, and therefore it is neither synced nor repaired.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Result as IoResult, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::atomic::io_error;
use super::lines;
use crate::error::Result;
use crate::event::RuntimeEvent;

/// How long the file becomes before it is kept as `runtime-events.1.jsonl`, and begun anew.
const LONGEST: u64 = 16 * 1024 * 1024;

/// The file, and the lines on their way to it.
#[derive(Debug)]
pub(super) struct RuntimeLog {
    path: PathBuf,
    lines: Vec<u8>,
    /// Opened when there is something to write, and again after a failure.
    file: Option<Open>,
    longest: u64,
}

#[derive(Debug)]
struct Open {
    file: File,
    len: u64,
}

impl RuntimeLog {
    /// A log in the file at `path`, which is not touched before the first flush.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, lines: Vec::new(), file: None, longest: LONGEST }
    }

    /// Takes note of an event. It is in the file after the next [`flush`](Self::flush).
    pub(super) fn note(&mut self, event: &RuntimeEvent) {
        if let Err(error) = lines::push(&mut self.lines, event, &self.path) {
            tracing::warn!(event = event.name(), "a runtime event was not noted: {}", error.report());
        }
    }

    /// Writes what was noted, so that it outlives the process but perhaps not the machine. What cannot be written is lost:
    /// a disk that is full must not fill the memory as well.
    pub(super) fn flush(&mut self) -> Result<()> {
        if self.lines.is_empty() {
            return Ok(());
        }
        let written = self.write();
        self.lines.clear();
        written.map_err(|error| io_error("write runtime events to", &self.path, error))
    }

    fn write(&mut self) -> IoResult<()> {
        // After a failure the file is opened again: part of a line may stand there.
        let open = match self.file.take() {
            Some(open) => open,
            None => Open::at_end(&self.path)?,
        };
        let more = self.lines.len() as u64;
        let full = open.len > 0 && open.len + more > self.longest;
        let mut open = if full { self.rotate(open)? } else { open };
        open.file.write_all(&self.lines)?;
        open.len += more;
        self.file = Some(open);
        Ok(())
    }

    /// Keeps the file under the other name, in the place of the one that was kept before, and begins a new one.
    fn rotate(&self, full: Open) -> IoResult<Open> {
        // Some systems do not rename a file that is open.
        drop(full);
        fs::rename(&self.path, self.path.with_extension("1.jsonl"))?;
        Open::at_end(&self.path)
    }
}

impl Open {
    /// Opens or makes the file. A last line that an earlier process did not finish gets its end, so that the next one does
    /// not become part of it.
    fn at_end(path: &Path) -> IoResult<Self> {
        let mut file = OpenOptions::new().read(true).append(true).create(true).open(path)?;
        let mut len = file.seek(SeekFrom::End(0))?;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{EventScope, Span};
    use crate::name::{AgentName, InstanceKey, TraceId, TurnId};

    struct Place {
        dir: tempfile::TempDir,
    }

    impl Place {
        fn new() -> Self {
            Self { dir: tempfile::tempdir().unwrap() }
        }

        fn path(&self) -> PathBuf {
            self.dir.path().join("runtime-events.jsonl")
        }

        fn turns(&self, file: &str) -> Vec<String> {
            let text = fs::read_to_string(self.dir.path().join(file)).unwrap();
            assert!(text.ends_with('\n'));
            let event = |line| serde_json::from_str::<RuntimeEvent>(line).ok();
            text.lines().map(|line| event(line).map_or(line.to_owned(), |it| it.scope().turn_id.to_string())).collect()
        }
    }

    fn started(turn: &str) -> RuntimeEvent {
        let scope = EventScope {
            agent_name: AgentName::new("bot").unwrap(),
            instance_key: InstanceKey::new("main").unwrap(),
            timestamp: "2026-01-31T12:00:00.250Z".parse().unwrap(),
            turn_id: TurnId::from(turn),
            trace_id: TraceId::from("0123456789abcdef0123456789abcdef"),
            span: Span::of_turn(None),
        };
        RuntimeEvent::TurnStarted { scope }
    }

    #[test]
    fn what_is_noted_is_in_the_file_after_a_flush() {
        let place = Place::new();
        let mut log = RuntimeLog::new(place.path());
        log.flush().unwrap();
        assert!(!place.path().exists(), "nothing happened");
        log.note(&started("t1"));
        log.note(&started("t2"));
        assert!(!place.path().exists(), "not flushed");
        log.flush().unwrap();
        log.flush().unwrap();
        assert_eq!(place.turns("runtime-events.jsonl"), ["t1", "t2"]);
        log.note(&started("t3"));
        log.flush().unwrap();
        let mut later = RuntimeLog::new(place.path());
        later.note(&started("t4"));
        later.flush().unwrap();
        assert_eq!(place.turns("runtime-events.jsonl"), ["t1", "t2", "t3", "t4"]);
    }

    #[test]
    fn a_torn_line_of_an_earlier_process_does_not_swallow_the_next_one() {
        let place = Place::new();
        fs::write(place.path(), "{\"type\":\"turn.sta").unwrap();
        let mut log = RuntimeLog::new(place.path());
        log.note(&started("t1"));
        log.flush().unwrap();
        assert_eq!(place.turns("runtime-events.jsonl"), ["{\"type\":\"turn.sta", "t1"]);
    }

    #[test]
    fn a_file_that_would_become_too_long_is_kept_and_begun_anew() {
        let place = Place::new();
        let mut log = RuntimeLog::new(place.path());
        let line = serde_json::to_vec(&started("t1")).unwrap().len() as u64 + 1;
        log.longest = 2 * line;
        for turn in ["t1", "t2", "t3", "t4", "t5"] {
            log.note(&started(turn));
            log.flush().unwrap();
        }
        assert_eq!(place.turns("runtime-events.1.jsonl"), ["t3", "t4"], "the older one is replaced");
        assert_eq!(place.turns("runtime-events.jsonl"), ["t5"]);
        // What an earlier process wrote counts too; what is written at once stays together.
        let mut later = RuntimeLog::new(place.path());
        later.longest = 2 * line;
        ["t6", "t7", "t8"].iter().for_each(|turn| later.note(&started(turn)));
        later.flush().unwrap();
        assert_eq!(place.turns("runtime-events.1.jsonl"), ["t5"]);
        assert_eq!(place.turns("runtime-events.jsonl"), ["t6", "t7", "t8"]);
        assert_eq!(fs::read_dir(place.dir.path()).unwrap().count(), 2);
        // An empty file is not worth the place of a kept one.
        fs::write(place.path(), "").unwrap();
        let mut later = RuntimeLog { longest: 1, ..RuntimeLog::new(place.path()) };
        later.note(&started("t9"));
        later.flush().unwrap();
        assert_eq!(place.turns("runtime-events.1.jsonl"), ["t5"]);
    }

    #[test]
    fn a_failure_is_told_and_loses_only_what_was_to_be_written() {
        let place = Place::new();
        fs::create_dir(place.path()).unwrap();
        let mut log = RuntimeLog::new(place.path());
        log.note(&started("t1"));
        let error = log.flush().unwrap_err();
        assert_eq!(error.code(), &crate::error::ErrorCode::STORE_IO);
        assert!(error.message().contains("runtime-events.jsonl"));
        fs::remove_dir(place.path()).unwrap();
        log.note(&started("t2"));
        log.flush().unwrap();
        assert_eq!(place.turns("runtime-events.jsonl"), ["t2"]);
    }

    #[test]
    fn half_a_line_of_a_failed_write_does_not_swallow_the_next_one() {
        let place = Place::new();
        let mut log = RuntimeLog::new(place.path());
        log.note(&started("t1"));
        log.flush().unwrap();
        // A descriptor that cannot write, and half a line as a full disk would leave it.
        log.file.as_mut().unwrap().file = File::open(place.path()).unwrap();
        log.note(&started("t2"));
        assert!(log.flush().is_err());
        OpenOptions::new().append(true).open(place.path()).unwrap().write_all(b"{\"ty").unwrap();
        log.note(&started("t3"));
        log.flush().unwrap();
        assert_eq!(place.turns("runtime-events.jsonl"), ["t1", "{\"ty", "t3"]);
    }
}
