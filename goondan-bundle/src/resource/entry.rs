//! Owns `spec.entry` of extensions: the ways in which it says where the code is, and which file it means.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Component, Path, PathBuf};

use goondan_core::{ErrorCode, ExtensionName};

use crate::configs::Configs;
use crate::diagnostic::location;
use crate::field::Field;
use crate::table::Table;

/// Where the code of an extension is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// `linked:<name>`: in the program itself, under this name.
    Linked(String),
    /// A path: in a library.
    Library(LibraryEntry),
}

/// An extension in a library, as a bundle names it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LibraryEntry {
    /// What the bundle calls the extension; it chooses among the extensions of a file that holds several.
    pub name: ExtensionName,
    /// The path as the bundle has it.
    pub written: String,
    /// The file: the path joined to the root of the bundle, with the name that libraries have on this platform (LOAD-04). It
    /// exists.
    pub file: PathBuf,
    /// `spec.sha256`: the digest that the file must have, in 64 lower-case hexadecimal digits.
    pub sha256: Option<String>,
    /// Where the bundle names it, as `<file>:<line>:<column>`.
    pub at: String,
}

impl Entry {
    pub(super) fn read(
        spec: &Table<'_>,
        name: Option<&ExtensionName>,
        root: &Path,
        configs: &Configs<'_>,
    ) -> Option<Self> {
        let sha256 = spec.get("sha256");
        let digest = sha256.as_ref().map(digest);
        let field = spec.need("entry")?;
        let text = field.text()?;
        if let Some(linked) = text.strip_prefix("linked:") {
            let linked = read_linked(&field, linked, configs)?;
            if let Some(sha256) = sha256 {
                let message =
                    format!("{} pins the file of a library, but `{text}` is part of the program", sha256.name());
                sha256.refuse(ErrorCode::CONFIG_SCHEMA, message, "remove it");
                return None;
            }
            return Some(linked);
        }
        let file = file(&field, text, root, configs.allows_absolute())?;
        // A digest that is none was reported, and is no reason to load what it should pin.
        let sha256 = match digest {
            Some(digest) => Some(digest?),
            None => None,
        };
        let at = location(field.sink().file(), Some(field.place()));
        let library = LibraryEntry { name: name?.clone(), written: text.to_owned(), file, sha256, at };
        configs.check_library(&field, &library);
        Some(Self::Library(library))
    }
}

fn read_linked(field: &Field<'_>, linked: &str, configs: &Configs<'_>) -> Option<Entry> {
    if let Err(error) = ExtensionName::new(linked) {
        let remedy = error.suggestion().unwrap_or("write `linked:<name>`").to_owned();
        let message =
            format!("{} must be `linked:` and the name of an extension, but is {}", field.name(), field.value());
        field.refuse(ErrorCode::CONFIG_SCHEMA, message, remedy);
        return None;
    }
    configs.check_entry(field, linked);
    Some(Entry::Linked(linked.to_owned()))
}

fn digest(field: &Field<'_>) -> Option<String> {
    let text = field.text()?;
    let digits = |text: &str| text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if text.len() == 64 && digits(text) {
        return Some(text.to_owned());
    }
    let message = format!("{} must be a SHA-256 digest in 64 lower-case hexadecimal digits", field.name());
    field.refuse(ErrorCode::CONFIG_SCHEMA, message, "write what `sha256sum` prints for the library");
    None
}

/// The file that `text` means, which does not lead out of the bundle unless the operator allows it.
fn file(field: &Field<'_>, text: &str, root: &Path, allows_absolute: bool) -> Option<PathBuf> {
    let refuse = |what: &str, remedy: &str| {
        field.refuse(ErrorCode::EXT_LOAD, format!("{} {what}, but is {}", field.name(), field.value()), remedy);
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
    if path.is_absolute() && !allows_absolute {
        return refuse(
            "must be relative to the bundle",
            "copy the library into the bundle, or let `goondan` load it with `--allow-absolute-plugins`",
        );
    }
    let named = root.join(path.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>());
    let file = of_platform(named);
    if file.exists() {
        return Some(file);
    }
    let message = format!("{} names a library that does not exist: `{}`", field.name(), file.display());
    let remedy = "build it with `cargo build --release`, and copy it there from `target/release`";
    field.refuse(ErrorCode::EXT_LOAD, message, remedy);
    None
}

/// The name that cargo gives a library on this platform, if `path` has no ending of its own.
fn of_platform(path: PathBuf) -> PathBuf {
    match path.file_name() {
        Some(name) if path.extension().is_none() => {
            let name = format!("{DLL_PREFIX}{}{DLL_SUFFIX}", name.to_string_lossy());
            path.with_file_name(name)
        }
        _ => path,
    }
}
