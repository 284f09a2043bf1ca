//! `spec.entry` of extensions, and its forms.

use std::path::Path;

use goondan_core::{ErrorCode, ExtensionName, linked};
use serde_json::Value;

use super::{ToCheck, library_file};
use crate::libraries::LibraryEntry;
use crate::read::{Cursor, MapReader};

/// The location of the code of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// `linked:<name>`: linked into the program, under this name.
    Linked(String),
    /// A path, and perhaps `#` and a name: in a library, under this name.
    Library(LibraryEntry),
}

impl Entry {
    /// Returns the schema of the config, if the extension is linked into this program.
    pub fn linked_schema(&self) -> Option<Value> {
        let Self::Linked(name) = self else { return None };
        let descriptor = linked().into_iter().find(|descriptor| descriptor.name == name)?;
        Some((descriptor.config_schema)())
    }

    pub(super) fn read<'a>(
        spec: &MapReader<'a>,
        name: Option<&ExtensionName>,
        root: &Path,
        allow_absolute: bool,
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let sha256 = spec.get("sha256");
        let digest = sha256.as_ref().map(|sha256| digest(sha256, "the library"));
        let cursor = spec.require("entry")?;
        let text = cursor.text()?;
        if let Some(linked) = text.strip_prefix("linked:") {
            let entry = read_linked(&cursor, linked)?;
            to_check.entries.push((entry.clone(), cursor));
            if let Some(sha256) = sha256 {
                let message =
                    format!("{} pins the file of a library, but `{text}` is part of the program", sha256.name());
                sha256.error(ErrorCode::CONFIG_SCHEMA, message, "remove it");
                return None;
            }
            return Some(entry);
        }
        let (path, extension) = match text.rsplit_once('#') {
            Some((path, extension)) => (path, Some(read_extension(&cursor, extension)?)),
            None => (text, None),
        };
        let file = library_file::find(&cursor, path, name, root, allow_absolute)?;
        // With an illegal digest, which is reported, there is no entry: the file must not be loaded unpinned.
        let sha256 = match digest {
            Some(digest) => Some(digest?),
            None => None,
        };
        let at = cursor.location();
        let library = LibraryEntry { name: name?.clone(), extension, written: text.to_owned(), file, sha256, at };
        let entry = Self::Library(library);
        to_check.entries.push((entry.clone(), cursor));
        Some(entry)
    }
}

fn read_linked(cursor: &Cursor<'_>, linked: &str) -> Option<Entry> {
    if let Err(error) = ExtensionName::new(linked) {
        let remedy = error.suggestion().unwrap_or("write `linked:<name>`").to_owned();
        let message =
            format!("{} must be `linked:` and the name of an extension, but is {}", cursor.name(), cursor.value());
        cursor.error(ErrorCode::CONFIG_SCHEMA, message, remedy);
        return None;
    }
    Some(Entry::Linked(linked.to_owned()))
}

/// The name after the `#` in the entry of a library.
fn read_extension(cursor: &Cursor<'_>, extension: &str) -> Option<ExtensionName> {
    let name = ExtensionName::new(extension);
    if let Err(error) = &name {
        let remedy = error.suggestion().unwrap_or("write `<path>#<name>`").to_owned();
        let message =
            format!("{} must end in `#` and the name of an extension, but is {}", cursor.name(), cursor.value());
        cursor.error(ErrorCode::CONFIG_SCHEMA, message, remedy);
    }
    name.ok()
}

/// Returns the SHA-256 digest of the thing that `of` names.
pub(super) fn digest(cursor: &Cursor<'_>, of: &str) -> Option<String> {
    let text = cursor.text()?;
    let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() == 64 && digits(text) {
        return Some(text.to_owned());
    }
    let message = format!("{} must be a SHA-256 digest in 64 lower-case hexadecimal digits", cursor.name());
    cursor.error(ErrorCode::CONFIG_SCHEMA, message, format!("write what `sha256sum` prints for {of}"));
    None
}
