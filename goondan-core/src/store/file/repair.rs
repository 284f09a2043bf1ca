//! Owns what can be done about the files of an instance that does not open: saying what is wrong, and taking it out of the
//! way without deleting anything.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use serde::Serialize;
use serde_json::Value;

use super::super::InstanceId;
use super::FileStore;
use super::atomic::{self, io_error};
use super::base::{self, Mark};
use super::events;
use super::lines;
use super::lock::Lock;
use super::log::{Log, torn_part};
use super::place::Place;
use super::recovery::recover;
use super::state;
use crate::error::{Error, ErrorCode, Result};
use crate::name::ExtensionName;

/// Something that is wrong with a file of an instance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct StoredFault {
    /// The file.
    pub file: PathBuf,
    /// The line in it, counted from 1, if it is about one.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What [`FileStore::repair`] does about it.
    pub remedy: String,
}

/// What is wrong, and what is to be moved aside.
#[derive(Debug, Default)]
struct Plan {
    faults: Vec<StoredFault>,
    lines: BTreeMap<PathBuf, Vec<usize>>,
    files: Vec<PathBuf>,
    /// What a commit says whose record is moved aside.
    state: BTreeMap<ExtensionName, Value>,
}

impl FileStore {
    /// What is wrong with the files of an instance. Nothing is changed. What every opening repairs by itself, such as a last
    /// line that a crash tore, is not wrong.
    ///
    /// # Errors
    /// `E_STORE_NOT_FOUND` when there is no such instance, `E_STORE_LOCKED` when somebody has it open, `E_STORE_IO` when its
    /// files cannot be read.
    pub fn inspect(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let place = self.existing(instance)?;
        let _lock = Lock::take(&place.lock(), instance)?;
        Ok(plan(&place)?.faults)
    }

    /// Takes what is wrong with the files of an instance out of the way, as [`FileStore::inspect`] says, so that it opens.
    /// Damaged lines and files are kept as `<file>.corrupt-<n>`; nothing is deleted. Gives what was done.
    ///
    /// # Errors
    /// As [`FileStore::inspect`]; and when the instance would not open yet.
    pub fn repair(&self, instance: &InstanceId) -> Result<Vec<StoredFault>> {
        let place = self.existing(instance)?;
        let _lock = Lock::take(&place.lock(), instance)?;
        let plan = plan(&place)?;
        // The state first: once the record of a commit is aside, nobody knows of it. Then the events: without their records
        // they fit any base.
        state::write(&place, &plan.state)?;
        for path in &plan.files {
            place.files().move_aside(path)?;
        }
        for (path, numbers) in plan.lines.iter().rev() {
            lines::take_out(&place, path, &atomic::read(path)?, numbers)?;
        }
        recover(&place)?;
        Ok(plan.faults)
    }
}

fn plan(place: &Place) -> Result<Plan> {
    let mut plan = Plan::default();
    let log = plan.survey_events(place)?;
    plan.survey_base(place, log)?;
    plan.survey_state(place)?;
    Ok(plan)
}

impl Plan {
    fn fault(&mut self, file: PathBuf, line: Option<usize>, what: impl Into<String>, remedy: &str) {
        self.faults.push(StoredFault { file, line, what: what.into(), remedy: remedy.to_owned() });
    }

    fn line(&mut self, file: PathBuf, line: usize, error: &Error) {
        let what = match error.source() {
            Some(cause) => format!("{}: {cause}", said_of_line(error)),
            None => said_of_line(error),
        };
        self.fault(file.clone(), Some(line), what, "move the line aside");
        self.lines.entry(file).or_default().push(line);
    }

    fn survey_events(&mut self, place: &Place) -> Result<(Log, Vec<u8>)> {
        let path = place.events();
        let mut bytes = match events::read(&path) {
            Err(error) if error.code() == &ErrorCode::STORE_DAMAGED => {
                self.fault(
                    path.clone(),
                    None,
                    error.message(),
                    "move the file aside, and give up the turn that was open",
                );
                self.files.push(path);
                return Ok((Log::default(), Vec::new()));
            }
            read => read?,
        };
        bytes.truncate(torn_part(&bytes).unwrap_or(bytes.len()));
        let (log, refused) = Log::survey(&bytes, &path);
        refused.iter().for_each(|(line, error)| self.line(path.clone(), *line, error));
        Ok((log, bytes))
    }

    fn survey_base(&mut self, place: &Place, (log, events): (Log, Vec<u8>)) -> Result<()> {
        let path = place.base();
        if !path.exists() {
            return Ok(());
        }
        let mut refused = Vec::new();
        base::scan(&path, None, &mut |line, error| {
            refused.push((line, error));
            Ok(())
        })?;
        refused.iter().for_each(|(line, error)| self.line(path.clone(), *line, error));
        let Some(begin) = &log.begin else { return Ok(()) };
        let now = Mark::of(&path, u64::MAX)?;
        let folded = log.fold.as_ref().is_some_and(|fold| (now.bytes, now.crc()) == (fold.base_bytes_after, fold.crc));
        let exchanged = log.fold.as_ref().is_some_and(|fold| !fold.pure && now.bytes != begin.base_bytes);
        let fits = folded || (now.bytes >= begin.base_bytes && !exchanged);
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
            (log.records.clone(), "move its records aside, and apply its events to the base as it is then")
        };
        self.fault(place.events(), None, format!("the turn `{}` is not cleared", begin.turn), remedy);
        let out: &mut Vec<usize> = self.lines.entry(place.events()).or_default();
        out.extend(of_turn);
        self.state = log.fold.map(|fold| fold.state.into_owned()).unwrap_or_default();
        Ok(())
    }

    fn survey_state(&mut self, place: &Place) -> Result<()> {
        let dir = place.extensions();
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            entries => entries.map_err(|error| io_error("read the directory", &dir, error))?,
        };
        for entry in entries {
            let path = entry.map_err(|error| io_error("read the directory", &dir, error))?.path();
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

/// The message of an error about a line, without the place, which stands elsewhere.
fn said_of_line(error: &Error) -> String {
    let message = error.message();
    message.rsplit_once(": ").map_or(&*message, |(_, what)| what).to_owned()
}
