//! Writes, edits and deletes files, and creates directories.

use std::borrow::Cow;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use cap_std::fs::{Dir, OpenOptions};
use goondan::{Error, Result};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::diff;
use crate::guard::Guard;
use crate::list::Type;
use crate::place::Place;

/// The text to replace does not occur in the file once.
const NO_MATCH: &str = "E_FILE_NO_MATCH";
/// The largest file that can be edited, in bytes.
const EDITABLE: u64 = 10_000_000;
/// No bundle reads larger files, in bytes.
const DOCUMENT: u64 = 2_000_000;

/// The input of `file-system__write`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    /// The path of the file. A relative one starts at the usual directory.
    pub(crate) path: String,
    /// The whole content of the file, or the appended part.
    content: String,
    /// Whether to append to the file. Defaults to false: an old content is replaced.
    #[serde(default)]
    append: bool,
}

/// The output of `file-system__write`.
#[derive(Debug, Serialize)]
pub(crate) struct Written {
    path: PathBuf,
    /// Of the whole file.
    size: u64,
    written: bool,
    append: bool,
}

/// The input of `file-system__edit`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Edit {
    /// The path of the file. A relative one starts at the usual directory.
    pub(crate) path: String,
    /// The text to replace, exactly as it is in the file, with its indentation. Add lines around it until it occurs
    /// only once.
    #[schemars(length(min = 1))]
    old_text: String,
    /// The text that replaces it. If it is empty, the text is removed.
    new_text: String,
    /// Whether to replace all occurrences. Defaults to false: there must be only one.
    #[serde(default)]
    replace_all: bool,
}

/// The output of `file-system__edit`.
#[derive(Debug, Serialize)]
pub(crate) struct Edited {
    path: PathBuf,
    replacements: usize,
    /// The line of the first change.
    line: usize,
}

/// The output of `file-system__mkdir`.
#[derive(Debug, Serialize)]
pub(crate) struct MadeDir {
    path: PathBuf,
    /// Whether it did not exist before.
    created: bool,
}

/// The output of `file-system__delete`.
#[derive(Debug, Serialize)]
pub(crate) struct Deleted {
    path: PathBuf,
    r#type: Type,
}

/// Writes a file. The difference that it makes is returned too.
pub(crate) fn write(place: &Place, guard: &Guard<'_>, input: &Write) -> Result<(Written, Option<String>)> {
    let failed = |error| place.failed(error);
    let before = diff::before(place);
    let content = content(place, guard, input).map_err(failed)?;
    guard.check_content(content.as_deref().unwrap_or_default())?;
    create_parent(place).map_err(failed)?;
    let size = if let Some(content) = content {
        replace(place, &content)?;
        content.len() as u64
    } else {
        // Not through a link to a file that is not there, which could be protected.
        resolve(place).map_err(failed)?;
        let mut file = place.open(OpenOptions::new().append(true).create(true))?;
        file.write_all(input.content.as_bytes()).map_err(failed)?;
        file.metadata().map_err(failed)?.len()
    };
    let diff = before.and_then(|before| input.diff(place, &before));
    Ok((Written { path: place.shown(), size, written: true, append: input.append }, diff))
}

impl Write {
    /// Returns the difference that the call would make.
    pub(crate) fn preview(&self, place: &Place) -> Option<String> {
        self.diff(place, &diff::before(place)?)
    }

    fn diff(&self, place: &Place, before: &str) -> Option<String> {
        let after = if self.append { format!("{before}{}", self.content) } else { self.content.clone() };
        diff::unified(place, before, &after)
    }
}

/// Returns the whole content that a file will have; `None` if it is appended to instead. What could become a document
/// of the bundle is replaced, so that it has the content that was checked, whatever another call appends meanwhile.
fn content<'a>(place: &Place, guard: &Guard<'_>, input: &'a Write) -> io::Result<Option<Cow<'a, [u8]>>> {
    let new = input.content.as_bytes();
    if !input.append {
        return Ok(Some(new.into()));
    }
    let size = match place.dir.metadata(&place.path) {
        Ok(metadata) if metadata.is_file() => metadata.len(),
        Err(error) if error.kind() == ErrorKind::NotFound => 0,
        // Opening it reports the fault.
        _ => return Ok(None),
    };
    if size > DOCUMENT || !guard.judges_content() {
        return Ok(None);
    }
    let mut content = if size == 0 { Vec::new() } else { place.dir.read(&place.path)? };
    content.extend_from_slice(new);
    Ok(Some(content.into()))
}

/// Edits a file. The difference that it makes is returned too.
pub(crate) fn edit(place: &Place, guard: &Guard<'_>, input: &Edit) -> Result<(Edited, Option<String>)> {
    let Edit { old_text, new_text, .. } = input;
    let (text, edited) = find(place, input)?;
    let after = text.replace(old_text, new_text);
    guard.check_content(after.as_bytes())?;
    replace(place, after.as_bytes())?;
    Ok((edited, diff::unified(place, &text, &after)))
}

impl Edit {
    /// Returns the difference that the call would make.
    pub(crate) fn preview(&self, place: &Place) -> Option<String> {
        let (text, _) = find(place, self).ok()?;
        diff::unified(place, &text, &text.replace(&self.old_text, &self.new_text))
    }
}

/// Returns the text of the file to edit, and where it is changed.
fn find(place: &Place, input: &Edit) -> Result<(String, Edited)> {
    let Edit { old_text, replace_all, .. } = input;
    let shown = place.shown();
    let mut text = String::new();
    let file = place.open(OpenOptions::new().read(true))?;
    file.take(EDITABLE + 1).read_to_string(&mut text).map_err(|error| place.failed(error))?;
    if text.len() as u64 > EDITABLE {
        let message = format!("{} has more than {EDITABLE} bytes", shown.display());
        return Err(Error::new(NO_MATCH, message).suggest("use another tool for this file"));
    }
    let mut lines = text.match_indices(old_text).map(|(at, _)| text[..at].matches('\n').count() + 1);
    let Some(line) = lines.next() else {
        let hint = if squeeze(&text).contains(&squeeze(old_text)) {
            "it occurs with other white space: read the file, and copy the text as it is there"
        } else {
            "read the file, and copy the text as it is there"
        };
        return Err(Error::new(NO_MATCH, format!("`oldText` does not occur in {}", shown.display())).suggest(hint));
    };
    let others: Vec<_> = lines.map(|line| line.to_string()).collect();
    if !others.is_empty() && !replace_all {
        let message = format!("`oldText` occurs {} times in {}", others.len() + 1, shown.display());
        let hint =
            format!("add lines around it, or use `replaceAll`; it is on the lines {line}, {}", others.join(", "));
        return Err(Error::new(NO_MATCH, message).suggest(hint));
    }
    let replacements = others.len() + 1;
    Ok((text, Edited { path: shown, replacements, line }))
}

/// Returns a text whose words have single spaces between them.
fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

pub(crate) fn mkdir(place: &Place, guard: &Guard<'_>, recursive: bool) -> Result<MadeDir> {
    let failed = |error| place.failed(error);
    if place.dir.is_dir(&place.path) {
        return Ok(MadeDir { path: place.shown(), created: false });
    }
    guard.check_content(&[])?;
    if recursive {
        create_parent(place).map_err(failed)?;
    }
    place.dir.create_dir(&place.path).map_err(failed)?;
    Ok(MadeDir { path: place.shown(), created: true })
}

pub(crate) fn delete(place: &Place, recursive: bool) -> Result<Deleted> {
    let failed = |error| place.failed(error);
    // A path that ends in `..` or is a root has none.
    if place.path.file_name().is_none() {
        return Err(place.failed(io::Error::new(ErrorKind::InvalidInput, "a root is not deleted")));
    }
    let kind = Type::from(place.dir.symlink_metadata(&place.path).map_err(failed)?.file_type());
    match kind {
        Type::Dir if recursive => place.dir.remove_dir_all(&place.path),
        Type::Dir => place.dir.remove_dir(&place.path),
        _ => place.dir.remove_file(&place.path),
    }
    .map_err(failed)?;
    Ok(Deleted { path: place.shown(), r#type: kind })
}

/// Creates the directory above a place, and those above it.
fn create_parent(place: &Place) -> io::Result<()> {
    let Some(parent) = place.path.parent().filter(|parent| !parent.as_os_str().is_empty()) else { return Ok(()) };
    match place.dir.create_dir_all(parent) {
        // Something is there that does not lead to a directory: opening it tells why.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => place.dir.open_dir(parent).map(drop),
        created => created,
    }
}

/// Replaces the content of a file, or creates one. It has either the old content or the new one at each moment: a new
/// file is written beside it, and takes its name. A link stays, and the file that it leads to is replaced.
fn replace(place: &Place, content: &[u8]) -> Result<()> {
    let failed = |error| place.failed(error);
    let target = resolve(place).map_err(failed)?;
    let (Some(name), parent) = (target.file_name(), target.parent().unwrap_or(Path::new(""))) else {
        return Err(place.no_file(true));
    };
    let parent = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
    // From here on, everything is in this directory, whatever its path leads to by now.
    let directory = place.dir.open_dir(parent).map_err(failed)?;
    let permissions = match directory.symlink_metadata(name) {
        Ok(metadata) if metadata.is_file() => Some(metadata.permissions()),
        Ok(metadata) => return Err(place.no_file(metadata.is_dir())),
        Err(error) if error.kind() == ErrorKind::NotFound => None,
        Err(error) => return Err(place.failed(error)),
    };
    let (new, mut file) = create_new(&directory).map_err(failed)?;
    let written = file.write_all(content).and_then(|()| match permissions {
        Some(permissions) => file.set_permissions(permissions),
        None => Ok(()),
    });
    let written = written.and_then(|()| file.sync_all()).and_then(|()| directory.rename(&new, &directory, name));
    written.map_err(|error| {
        // The error to tell is the first one.
        let _ = directory.remove_file(&new);
        place.failed(error)
    })
}

/// Returns the path from the root to the file that is at the place or will be, without links.
fn resolve(place: &Place) -> io::Result<PathBuf> {
    match place.dir.canonicalize(&place.path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if place.dir.symlink_metadata(&place.path).is_ok() {
                return Err(io::Error::new(ErrorKind::InvalidInput, "it is a link that leads to nothing"));
            }
            Ok(place.path.clone())
        }
        resolved => resolved,
    }
}

/// Creates a file with a name that no other has.
fn create_new(directory: &Dir) -> io::Result<(String, cap_std::fs::File)> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    loop {
        let name = format!(".goondan-{}-{}.tmp", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        match directory.open_with(&name, OpenOptions::new().write(true).create_new(true)) {
            Ok(file) => return Ok((name, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}
