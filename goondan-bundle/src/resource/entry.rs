//! `spec.entry` of extensions: its forms, and the file of a library that it refers to.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Component, Path, PathBuf};

use goondan_core::{ErrorCode, ExtensionName};

use super::ToCheck;
use crate::libraries::LibraryEntry;
use crate::read::{Cursor, MapReader};

/// The location of the code of an extension.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// `linked:<name>`: linked into the program, under this name.
    Linked(String),
    /// A path: in a library.
    Library(LibraryEntry),
}

impl Entry {
    pub(super) fn read<'a>(
        spec: &MapReader<'a>,
        name: Option<&ExtensionName>,
        root: &Path,
        allow_absolute: bool,
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let sha256 = spec.get("sha256");
        let digest = sha256.as_ref().map(digest);
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
        let file = file(&cursor, text, root, allow_absolute)?;
        // With an illegal digest, which is reported, there is no entry: the file must not be loaded unpinned.
        let sha256 = match digest {
            Some(digest) => Some(digest?),
            None => None,
        };
        let at = cursor.location();
        let library = LibraryEntry { name: name?.clone(), written: text.to_owned(), file, sha256, at };
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

fn digest(cursor: &Cursor<'_>) -> Option<String> {
    let text = cursor.text()?;
    let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() == 64 && digits(text) {
        return Some(text.to_owned());
    }
    let message = format!("{} must be a SHA-256 digest in 64 lower-case hexadecimal digits", cursor.name());
    cursor.error(ErrorCode::CONFIG_SCHEMA, message, "write what `sha256sum` prints for the library");
    None
}

/// The file that `text` refers to. It must not lead out of the bundle unless the operator allows absolute paths.
fn file(cursor: &Cursor<'_>, text: &str, root: &Path, allow_absolute: bool) -> Option<PathBuf> {
    let refuse = |what: &str, remedy: &str| {
        cursor.error(ErrorCode::EXT_LOAD, format!("{} {what}, but is {}", cursor.name(), cursor.value()), remedy);
        None
    };
    let path = Path::new(text);
    if !text.contains('/') {
        return refuse(
            "must be `linked:` and the name of an extension, or a path to a library",
            "write `linked:<name>`, or a path with a slash, such as `./plugins/weather`",
        );
    }
    if path.components().any(|part| part == Component::ParentDir) {
        return refuse(
            "must not lead out of the bundle",
            "copy the library into the bundle, and write its path without `..`",
        );
    }
    if path.is_absolute() && !allow_absolute {
        return refuse(
            "must be relative to the bundle",
            "copy the library into the bundle, or let `goondan` load it with `--allow-absolute-plugins`",
        );
    }
    let named = root.join(path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>());
    let file = on_this_platform(named);
    if file.exists() {
        return Some(file);
    }
    let message = format!("{} names a library that does not exist: `{}`", cursor.name(), file.display());
    let remedy = "build it with `cargo build --release`, and copy it there from `target/release`";
    cursor.error(ErrorCode::EXT_LOAD, message, remedy);
    None
}

/// Adds the prefix and the ending that cargo gives libraries on this platform, unless `path` has an ending.
fn on_this_platform(path: PathBuf) -> PathBuf {
    match path.file_name() {
        Some(name) if path.extension().is_none() => {
            let name = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", name.to_string_lossy());
            path.with_file_name(name)
        }
        _ => path,
    }
}
