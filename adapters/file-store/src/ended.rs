//! `ended.jsonl`: how the newest turns ended that answered an event, so that it is answered once.
//!
//! Each commit appends a line before it empties the events. It is not synced: a machine that stops in this moment may
//! forget that an event was answered, although the answer is there.
// ONCE-01

use goondan_core::{EventId, Result};
use goondan_runtime::store::{EndedTurn, TurnOutcome};

use super::atomic::{self, io_error};
use super::layout::InstanceDir;
use super::lines::{self, is_sum_right};

/// The number of turns that are kept.
const KEPT: usize = 256;

/// The newest turns that answered an event, oldest first, and the file that holds them.
#[derive(Debug, Default)]
pub(super) struct EndedTurns {
    turns: Vec<EndedTurn>,
    /// The number of lines in the file.
    lines: usize,
    /// The length of the file.
    len: u64,
    /// Whether its last line ends with a line end.
    ends_line: bool,
}

impl EndedTurns {
    /// Reads the file. A line that a crash tore or that was changed is left out.
    pub(super) fn read(dir: &InstanceDir) -> Result<Self> {
        let path = dir.ended();
        let bytes = if path.exists() { atomic::read(&path)? } else { Vec::new() };
        let mut ended = Self { len: bytes.len() as u64, ends_line: lines::ends_line(&bytes), ..Self::default() };
        for line in lines::lines(&bytes) {
            ended.lines += 1;
            match serde_json::from_slice(line.text) {
                Ok(turn) if is_sum_right(line.text) == Some(true) => ended.keep(turn),
                _ => tracing::warn!(
                    file = %path.display(), line = line.number,
                    "a line cannot be read: the event whose turn it names may be answered again"
                ),
            }
        }
        Ok(ended)
    }

    /// Adds a turn, and writes it.
    pub(super) fn add(&mut self, dir: &InstanceDir, turn: EndedTurn) -> Result<()> {
        let path = dir.ended();
        let mut line = if self.ends_line { Vec::new() } else { vec![b'\n'] };
        lines::push_with_sum(&mut line, &turn, &path)?;
        self.keep(turn);
        if self.lines >= 2 * KEPT {
            return self.rewrite(dir);
        }
        dir.ops().ensure_file(&path)?;
        let written = dir.ops().open(&path)?.write_at(self.len, &line);
        written.map_err(|error| io_error("write", &path, error))?;
        (self.len, self.lines, self.ends_line) = (self.len + line.len() as u64, self.lines + 1, true);
        Ok(())
    }

    /// Writes these turns into a new file.
    pub(super) fn write(dir: &InstanceDir, turns: impl IntoIterator<Item = EndedTurn>) -> Result<()> {
        let mut ended = Self::default();
        turns.into_iter().for_each(|turn| ended.keep(turn));
        if ended.turns.is_empty() { Ok(()) } else { ended.rewrite(dir) }
    }

    fn rewrite(&mut self, dir: &InstanceDir) -> Result<()> {
        let (path, mut bytes) = (dir.ended(), Vec::new());
        self.turns.iter().try_for_each(|turn| lines::push_with_sum(&mut bytes, turn, &path))?;
        dir.ops().replace_unsynced(&path, &bytes)?;
        (self.len, self.lines, self.ends_line) = (bytes.len() as u64, self.turns.len(), true);
        Ok(())
    }

    /// Returns the turn that answered `event`.
    pub(super) fn find(&self, event: &EventId) -> Option<&EndedTurn> {
        self.turns.iter().rfind(|turn| turn.outcome.event() == Some(event))
    }

    /// Returns the outcome of the last turn.
    pub(super) fn last(&self) -> Option<&TurnOutcome> {
        self.turns.last().map(|turn| &turn.outcome)
    }

    /// Returns the turns, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &EndedTurn> {
        self.turns.iter()
    }

    fn keep(&mut self, turn: EndedTurn) {
        // Finished again after a crash.
        if self.turns.last() == Some(&turn) {
            return;
        }
        if self.turns.len() == KEPT {
            self.turns.remove(0);
        }
        self.turns.push(turn);
    }
}
