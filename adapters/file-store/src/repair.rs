//! Repair of an instance that does not open: finds the damage, and moves it aside without deleting anything.

use std::collections::BTreeMap;
use std::path::PathBuf;

use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use goondan_runtime::store::{EndedTurn, InstanceId};
use serde::Serialize;
use serde_json::Value;

use super::base::{self, Fingerprint, LoadedBase};
use super::committed::CommittedRecord;
use super::ended::EndedTurns;
use super::layout::InstanceDir;
use super::path::StorePath;
use super::records::{FoldRecord, TurnRecords, torn_part};
use super::recovery::{recover, replay, store_checksums};
use super::store::FileStore;
use super::{atomic, events, fold, lines, state};

/// Damage in a file of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredFault {
    /// The file.
    pub file: PathBuf,
    /// The line, counted from 1, if the damage is in a single line.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// How [`FileStore::repair`] repairs it.
    pub remedy: String,
}

/// The damage that was found, and what a repair does about it.
#[derive(Debug, Default)]
struct RepairPlan {
    faults: Vec<StoredFault>,
    /// The numbers of the lines to move aside.
    lines: BTreeMap<StorePath, Vec<usize>>,
    files: Vec<StorePath>,
    /// The state in a fold record that is moved aside.
    state: BTreeMap<ExtensionName, Value>,
    /// Whether the checksums of the last commit no longer fit, so that they are moved aside too.
    accepts: bool,
    /// The turn that ended with it, if it answered an event.
    ended: Option<EndedTurn>,
}

impl FileStore {
    /// Returns the damage in the files of an instance, and changes nothing. What every opening repairs by itself,
    /// such as a torn last line, does not count as damage.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when it is open, `E_STORE_IO` when its
    /// files cannot be read.
    pub fn inspect(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let dir = self.existing(instance)?;
        // Taking the lock would make a lock file, and no process has an instance open that has none.
        if !dir.lock().exists() {
            return Ok(plan(&dir)?.faults);
        }
        let (dir, _lock) = self.lock(instance)?;
        Ok(plan(&dir)?.faults)
    }

    /// Repairs the damage that [`FileStore::inspect`] reports, so that the instance opens. Damaged lines and files
    /// are kept as `<file>.corrupt-<n>`; nothing is deleted. A file that is not as the last commit left it is accepted
    /// as it is. Returns what was repaired.
    ///
    /// # Errors
    /// Those of [`FileStore::inspect`], and those of opening the instance when it still cannot be opened.
    pub fn repair(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let (dir, _lock) = self.lock(instance)?;
        let plan = plan(&dir)?;
        // The state first: after the fold record is moved aside, nothing refers to it. Then the events: without a
        // begin and a fold record they apply to any base.
        state::write(&dir, &plan.state)?;
        for path in &plan.files {
            dir.ops().move_aside(path)?;
        }
        for (path, numbers) in plan.lines.iter().rev() {
            lines::move_lines_aside(&dir, path, &atomic::read(path)?, numbers)?;
        }
        let recovered = recover(&dir)?;
        if !plan.faults.is_empty() {
            if let Some(turn) = plan.ended {
                EndedTurns::read(&dir)?.add(&dir, turn)?;
            }
            store_checksums(&dir, &recovered)?;
        }
        Ok(plan.faults)
    }
}

fn plan(dir: &InstanceDir) -> Result<RepairPlan> {
    let mut plan = RepairPlan::default();
    let (mut records, events) = plan.survey_events(dir)?;
    plan.survey_state(dir, &records)?;
    let committed_line = records.committed_line;
    plan.survey_base(dir, &mut records, &events)?;
    if let Some(line) = committed_line.filter(|_| plan.accepts) {
        plan.lines.entry(dir.events()).or_default().push(line);
    }
    Ok(plan)
}

impl RepairPlan {
    fn fault(&mut self, file: StorePath, line: Option<usize>, what: impl Into<String>, remedy: impl Into<String>) {
        self.faults.push(StoredFault { file: file.to_path_buf(), line, what: what.into(), remedy: remedy.into() });
    }

    /// Moves the lines aside that cannot be read.
    fn lines(&mut self, file: &StorePath, refused: &[(usize, Error)], remedy: &str) {
        for (line, error) in refused {
            let what = match error.source() {
                Some(cause) => format!("{}: {cause}", message_without_position(error)),
                None => message_without_position(error),
            };
            self.fault(file.clone(), Some(*line), what, remedy);
            self.lines.entry(file.clone()).or_default().push(*line);
        }
    }

    fn survey_events(&mut self, dir: &InstanceDir) -> Result<(TurnRecords, Vec<u8>)> {
        let path = dir.events();
        let mut bytes = match events::read(&path) {
            Err(error) if error.code() == &ErrorCode::STORE_DAMAGED => {
                let remedy = "move the file aside, and give up the turn that was open";
                self.fault(path.clone(), None, error.message(), remedy);
                self.files.push(path);
                return Ok((TurnRecords::default(), Vec::new()));
            }
            read => read?,
        };
        bytes.truncate(torn_part(&bytes).unwrap_or(bytes.len()));
        let (records, refused) = TurnRecords::survey(&bytes, &path);
        let remedy = match records.events.len() {
            0 => "move the line aside, and store new checksums of the other files as they are".to_owned(),
            events => format!("move the line aside, and keep the other {events} events of the turn"),
        };
        self.lines(&path, &refused, &remedy);
        // The turn was committed, but its other records do not say so: at least its state is known.
        let numbers: Vec<_> = refused.iter().map(|(number, _)| *number).collect();
        if let Some(fold) = intact_fold(&bytes, &numbers) {
            self.state = fold.state.into_owned();
            self.accepts = true;
        }
        Ok((records, bytes))
    }

    fn survey_base(&mut self, dir: &InstanceDir, records: &mut TurnRecords, events: &[u8]) -> Result<()> {
        let (path, mut refused) = (dir.base(), Vec::new());
        let mut loaded = LoadedBase::empty();
        if path.exists() {
            loaded = base::scan(&path, None, &mut |line, error| {
                refused.push((line, error));
                Ok(())
            })?;
        }
        let kept = loaded.messages.len();
        self.lines(&path, &refused, &format!("move the line aside, and keep the other {kept} messages"));
        self.accepts |= !refused.is_empty();
        let keep = format!("keep it as it is, with its {kept} messages, and store a new checksum");
        let Some(begin) = &records.begin else {
            let base = &loaded.index.fingerprint;
            if let Some(last) = changed(records, base).filter(|_| refused.is_empty()) {
                let what = format!("{}; {}", last.what_differs(base), where_differs(dir, last)?);
                self.fault(path, None, what, keep);
                self.accepts = true;
            }
            return Ok(());
        };
        let prefix = |end| if path.exists() { Fingerprint::of(&path, end) } else { Ok(Fingerprint::new()) };
        let (now, before) = (prefix(u64::MAX)?, prefix(begin.base_bytes)?);
        let fold = records.fold.as_ref();
        let is_folded = fold.is_some_and(|fold| (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc));
        let misfit = if is_folded { None } else { misfit(records, begin.base_bytes, &before, now.bytes) };
        // A turn without a fold record goes on with any base of that length.
        let goes_on = fold.is_none() && now.bytes == begin.base_bytes;
        if let Some(what) = &misfit {
            self.fault(path.clone(), None, what.clone(), keep);
            self.accepts = true;
        }
        let is_refused = match fold {
            Some(fold) if !is_folded && misfit.is_none() && refused.is_empty() => {
                !folds_again(dir, records, fold, begin.base_bytes, events)?
            }
            _ => false,
        };
        if refused.is_empty() && !is_refused && (misfit.is_none() || goes_on) {
            return Ok(());
        }
        let what = match is_refused {
            true => format!("the records of the turn `{}` are not those that were committed", begin.turn),
            false => format!("the turn `{}` is not cleared", begin.turn),
        };
        self.move_turn_aside(dir, records, events, is_folded, what);
        Ok(())
    }

    /// Moves the records of the turn aside, with their events if the base has them already.
    fn move_turn_aside(
        &mut self,
        dir: &InstanceDir,
        records: &mut TurnRecords,
        events: &[u8],
        is_folded: bool,
        what: String,
    ) {
        let (lines, remedy) = if is_folded {
            let of_turn = lines::lines(events).filter(|line| line.start >= records.turn_start);
            (of_turn.map(|line| line.number).collect(), "move them aside: the base has them".to_owned())
        } else {
            let count = records.events.len();
            let remedy = format!("move its records aside, and apply its {count} events to the base as it is then");
            (records.control_lines.clone(), remedy)
        };
        self.fault(dir.events(), None, what, remedy);
        let moved: &mut Vec<usize> = self.lines.entry(dir.events()).or_default();
        moved.extend::<Vec<_>>(lines);
        self.accepts = true;
        if let Some(fold) = records.fold.take() {
            self.ended = fold.ended();
            self.state = fold.state.into_owned();
        }
    }

    fn survey_state(&mut self, dir: &InstanceDir, records: &TurnRecords) -> Result<()> {
        let mut unreadable = Vec::new();
        let stored = state::scan(dir, &mut |_, name, error| {
            unreadable.push((name.clone(), error));
            Ok(())
        })?;
        for (name, error) in &unreadable {
            let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
            let what = format!("the state of `{name}` cannot be read{cause}");
            let path = state::path(dir, name);
            self.fault(path.clone(), None, what, "move the file aside: the extension starts without state");
            self.files.push(path);
            self.accepts = true;
        }
        let is_known = |name: &ExtensionName| {
            // The state of a turn that is not cleared is written again.
            unreadable.iter().any(|(unreadable, _)| unreadable == name)
                || records.fold.as_ref().is_some_and(|fold| fold.state.contains_key(name))
        };
        for (name, what) in records.committed.iter().flat_map(|last| last.changed_state(&stored)) {
            if !is_known(name) {
                let remedy = match stored.crcs.contains_key(name) {
                    true => "keep it as it is, and store a new checksum",
                    false => "go on without it: the extension starts without state",
                };
                self.fault(state::path(dir, name), None, what, remedy);
                self.accepts = true;
            }
        }
        Ok(())
    }
}

/// Returns the fold record among the lines with these numbers that its checksum proves to be as it was written.
fn intact_fold(events: &[u8], numbers: &[usize]) -> Option<FoldRecord<'static>> {
    let refused = lines::lines(events).filter(|line| numbers.contains(&line.number));
    let intact = refused.filter(|line| lines::is_sum_right(line.text) == Some(true));
    intact.filter_map(|line| serde_json::from_slice(line.text).ok()).last()
}

/// Returns the record of the last commit if `base` is not as it left it.
fn changed<'a>(records: &'a TurnRecords, base: &Fingerprint) -> Option<&'a CommittedRecord> {
    records.committed.as_ref().filter(|last| !last.is_base(base))
}

/// Returns why the turn of `records` cannot be applied to a base of `now` bytes, which the turn does not have yet.
/// `before` is its part that was there when the turn began, `begin` bytes.
fn misfit(records: &TurnRecords, begin: u64, before: &Fingerprint, now: u64) -> Option<String> {
    if let Some(last) = changed(records, before) {
        return Some(last.what_differs(before));
    }
    let rewrites = records.fold.as_ref().is_some_and(|fold| !fold.pure);
    (now < begin || rewrites && now != begin)
        .then(|| "is neither what it was before the last turn nor what it was to be after it".to_owned())
}

/// Whether an opening folds a committed turn into the base again.
fn folds_again(
    dir: &InstanceDir,
    records: &TurnRecords,
    fold: &FoldRecord<'_>,
    end: u64,
    events: &[u8],
) -> Result<bool> {
    if fold.events_crc.is_some_and(|committed| committed != records.events_crc(events)) {
        return Ok(false);
    }
    if records.proves(fold, end) {
        return Ok(true);
    }
    let LoadedBase { messages, index, .. } = base::load(&dir.base(), Some(end))?;
    let after = fold::fingerprint_after(dir, &index, &replay(messages, records.events.clone()))?;
    Ok((after.bytes, after.crc()) == (fold.base_bytes_after, fold.crc))
}

/// Returns which lines of a base without damaged lines differ from the last commit, as far as that can be told.
fn where_differs(dir: &InstanceDir, last: &CommittedRecord) -> Result<String> {
    let path = dir.base();
    if path.exists() && atomic::len(&path)? > last.base_bytes {
        let before = base::load(&path, Some(last.base_bytes));
        if let Some(before) = before.ok().filter(|before| last.is_base(&before.index.fingerprint)) {
            return Ok(format!("what follows the first {} messages was added", before.messages.len()));
        }
    }
    Ok("each line is a message, so it cannot be told which were changed or are missing".to_owned())
}

/// Returns the message of an error about a line without file and line, which a `StoredFault` has as fields.
fn message_without_position(error: &Error) -> String {
    let message = error.message();
    message.rsplit_once(": ").map_or(&*message, |(_, what)| what).to_owned()
}
