//! Repair of an instance that does not open: finds the damage, and moves it aside without deleting anything.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::super::InstanceId;
use super::FileStore;
use super::atomic::{self, io_error};
use super::base::{self, Fingerprint};
use super::events;
use super::layout::InstanceDir;
use super::lines;
use super::path::StorePath;
use super::records::{TurnRecords, torn_part};
use super::recovery::recover;
use super::state;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

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

/// The damage that was found, and what a repair moves aside.
#[derive(Debug, Default)]
struct RepairPlan {
    faults: Vec<StoredFault>,
    /// The numbers of the lines to move aside.
    lines: BTreeMap<StorePath, Vec<usize>>,
    files: Vec<StorePath>,
    /// The state in a fold record that is moved aside.
    state: BTreeMap<ExtensionName, Value>,
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
    /// are kept as `<file>.corrupt-<n>`; nothing is deleted. Returns what was repaired.
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
        recover(&dir)?;
        Ok(plan.faults)
    }
}

fn plan(dir: &InstanceDir) -> Result<RepairPlan> {
    let mut plan = RepairPlan::default();
    let events = plan.survey_events(dir)?;
    plan.survey_base(dir, events)?;
    plan.survey_state(dir)?;
    Ok(plan)
}

impl RepairPlan {
    fn fault(&mut self, file: StorePath, line: Option<usize>, what: impl Into<String>, remedy: &str) {
        self.faults.push(StoredFault { file: file.to_path_buf(), line, what: what.into(), remedy: remedy.to_owned() });
    }

    fn line(&mut self, file: StorePath, line: usize, error: &Error) {
        let what = match error.source() {
            Some(cause) => format!("{}: {cause}", message_without_position(error)),
            None => message_without_position(error),
        };
        self.fault(file.clone(), Some(line), what, "move the line aside");
        self.lines.entry(file).or_default().push(line);
    }

    fn survey_events(&mut self, dir: &InstanceDir) -> Result<(TurnRecords, Vec<u8>)> {
        let path = dir.events();
        let mut bytes = match events::read(&path) {
            Err(error) if error.code() == &ErrorCode::STORE_DAMAGED => {
                self.fault(
                    path.clone(),
                    None,
                    error.message(),
                    "move the file aside, and give up the turn that was open",
                );
                self.files.push(path);
                return Ok((TurnRecords::default(), Vec::new()));
            }
            read => read?,
        };
        bytes.truncate(torn_part(&bytes).unwrap_or(bytes.len()));
        let (records, refused) = TurnRecords::survey(&bytes, &path);
        refused.iter().for_each(|(line, error)| self.line(path.clone(), *line, error));
        Ok((records, bytes))
    }

    fn survey_base(&mut self, dir: &InstanceDir, (records, events): (TurnRecords, Vec<u8>)) -> Result<()> {
        let path = dir.base();
        if !path.exists() {
            return Ok(());
        }
        let mut refused = Vec::new();
        base::scan(&path, None, &mut |line, error| {
            refused.push((line, error));
            Ok(())
        })?;
        refused.iter().for_each(|(line, error)| self.line(path.clone(), *line, error));
        let Some(begin) = &records.begin else { return Ok(()) };
        let now = Fingerprint::of(&path, u64::MAX)?;
        let folded =
            records.fold.as_ref().is_some_and(|fold| (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc));
        let replaced = records.fold.as_ref().is_some_and(|fold| !fold.pure && now.bytes != begin.base_bytes);
        let fits = folded || (now.bytes >= begin.base_bytes && !replaced);
        if fits && refused.is_empty() {
            return Ok(());
        }
        if !fits {
            self.fault(
                path,
                None,
                "is neither what it was before the last turn nor what it was to be after it",
                "keep it",
            );
        }
        let (of_turn, remedy) = if folded {
            (lines::lines(&events).map(|line| line.number).collect(), "move them aside: the base has them")
        } else {
            (records.control_lines.clone(), "move its records aside, and apply its events to the base as it is then")
        };
        self.fault(dir.events(), None, format!("the turn `{}` is not cleared", begin.turn), remedy);
        let lines: &mut Vec<usize> = self.lines.entry(dir.events()).or_default();
        lines.extend(of_turn);
        self.state = records.fold.map(|fold| fold.state.into_owned()).unwrap_or_default();
        Ok(())
    }

    fn survey_state(&mut self, dir: &InstanceDir) -> Result<()> {
        let folder = dir.extensions();
        let entries = match folder.entries() {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| io_error("read the directory", &folder, error))?,
        };
        for path in entries {
            let name = path.file_stem().and_then(|name| name.to_str()).and_then(|name| ExtensionName::new(name).ok());
            let Some(name) = name.filter(|_| path.extension() == Some("json".as_ref())) else { continue };
            if let Err(error) = serde_json::from_slice::<Value>(&atomic::read(&path)?) {
                let what = format!("the state of `{name}` cannot be read: {error}");
                self.fault(path.clone(), None, what, "move the file aside: the extension starts without state");
                self.files.push(path);
            }
        }
        Ok(())
    }
}

/// Returns the message of an error about a line without file and line, which a `StoredFault` has as fields.
fn message_without_position(error: &Error) -> String {
    let message = error.message();
    message.rsplit_once(": ").map_or(&*message, |(_, what)| what).to_owned()
}
