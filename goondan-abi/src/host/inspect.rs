//! Inspects a library file: everything that is known of it before any of its code runs (LINK-02).

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::{Error, ErrorCode, Result};

use super::copy::Content;
use super::declaration::Declared;
use super::record::ExtensionRecord;
use super::schemas::{self, ExtensionSchemas};
use super::{digest, elf, record};

/// Libraries of extensions. [`Library::inspect`] is the entry point.
#[derive(Debug)]
pub enum Library {}

impl Library {
    /// Reads the library at `path`, and checks whether this program could load it. No code of the file runs.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if the file is no library of goondan, is damaged, or cannot be read, or if it was packed and has
    /// another digest than then; `E_EXT_COMPAT`, with both versions and the remedy, if it was built for another version
    /// or another kind of machine.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Inspected> {
        let path = path.as_ref();
        let mut file = elf::open(path)?;
        // First, because everything else would only find consequences of the damage.
        let schemas = schemas::read(path, &mut file)?;
        let contents = elf::read(path, file)?;
        let declared = Declared::parse(path, &contents.declaration)?;
        declared.check(path)?;
        let (own, linked_in) = own_package(path, record::parse(path, &contents.records)?)?;
        let (path, bytes, digest) = (path.to_owned(), contents.declaration, OnceLock::new());
        Ok(Inspected { path, bytes, declared, own, linked_in, schemas, digest })
    }
}

/// Splits `records` into those of the library's own crate and those of its dependencies. The linker places the
/// objects of the crate that it links before those of other crates, so the first record is one of the own crate.
fn own_package(path: &Path, records: Vec<ExtensionRecord>) -> Result<(Vec<ExtensionRecord>, Vec<ExtensionRecord>)> {
    let Some(package) = records.first().map(|record| record.package.clone()) else {
        let message = format!("`{}` holds no extension", path.display());
        return Err(Error::new(ErrorCode::EXT_LOAD, message)
            .suggest("put `#[goondan::extension(name = \"…\")]` on an `impl` block of the crate"));
    };
    let (own, linked_in): (Vec<_>, _) = records.into_iter().partition(|record| record.package == package);
    let mut names = HashSet::new();
    if let Some(twice) = own.iter().find(|record| !names.insert(record.name.as_str())) {
        let message = format!("`{}` holds two extensions called `{}`", path.display(), twice.name);
        return Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("rename one of them"));
    }
    Ok((own, linked_in))
}

/// A library that was inspected and not loaded yet.
#[derive(Clone, Debug)]
pub struct Inspected {
    pub(super) path: PathBuf,
    /// The declaration as bytes, to compare it with the loaded one.
    pub(super) bytes: Vec<u8>,
    pub(super) declared: Declared,
    own: Vec<ExtensionRecord>,
    linked_in: Vec<ExtensionRecord>,
    schemas: Option<Vec<ExtensionSchemas>>,
    /// The digest of the file once `sha256` was called. From then on only a file with this digest is loaded.
    digest: OnceLock<String>,
}

impl Inspected {
    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the crate that the library was built from.
    pub fn package(&self) -> &str {
        self.own.first().map(|record| record.package.as_str()).unwrap_or_default()
    }

    /// Returns the extensions of that crate.
    pub fn extensions(&self) -> &[ExtensionRecord] {
        &self.own
    }

    /// Returns the extension that `name` refers to: the only one, whatever its name, or the one of that name.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if there are several extensions, and none has that name.
    pub fn extension(&self, name: &str) -> Result<&ExtensionRecord> {
        match self.own.as_slice() {
            [only] => Ok(only),
            _ => self.named_extension(name),
        }
    }

    /// Returns the extension that has this name in the library.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if there is none.
    pub fn named_extension(&self, name: &str) -> Result<&ExtensionRecord> {
        self.own.iter().find(|record| record.name == name).ok_or_else(|| {
            let names: Vec<_> = self.own.iter().map(|record| record.name.as_str()).collect();
            let count = match names.len() {
                1 => "one extension, which is not".to_owned(),
                several => format!("{several} extensions, and none is"),
            };
            let message = format!("`{}` holds {count} called `{name}`", self.path.display());
            Error::new(ErrorCode::EXT_LOAD, message).suggest(format!("choose by name one of: {}", names.join(", ")))
        })
    }

    /// Returns the schemas of the extensions, if they are packed into the file.
    pub fn schemas(&self) -> Option<&[ExtensionSchemas]> {
        self.schemas.as_deref()
    }

    /// Packs `schemas` and the digest of the library into the file. Earlier ones are replaced. The file still
    /// loads, because bytes after the end of a library are not mapped; after that it is refused if a byte of it
    /// changes. It is replaced atomically, so a program that has loaded it keeps the old one.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if an extension of this library has no schemas in `schemas`; `E_IO` if the file cannot be
    /// written.
    pub fn pack(&self, schemas: &[ExtensionSchemas]) -> Result<()> {
        if let Some(lost) = self.own.iter().find(|record| schemas.iter().all(|s| s.name != record.name)) {
            let message = format!("there are no schemas of the extension `{}`", lost.name);
            return Err(Error::new(ErrorCode::EXT_LOAD, message).suggest("build the library again"));
        }
        schemas::pack(&self.path, schemas)
    }

    /// Returns the SHA-256 digest of the file in lower-case hexadecimal digits. If the library is loaded afterwards,
    /// the loaded file has this digest.
    ///
    /// # Errors
    /// `E_EXT_LOAD` if the file cannot be read.
    pub fn sha256(&self) -> Result<String> {
        match self.digest.get() {
            Some(digest) => Ok(digest.clone()),
            None => digest::of_file(&self.path).map(|digest| self.digest.get_or_init(|| digest).clone()),
        }
    }

    /// Returns the content of `copy`, if it is a copy of the file that was inspected.
    pub(super) fn content_of_copy(&self, copy: &Path) -> Option<Content> {
        let content = Content::of_both(&self.path, copy).ok()??;
        let is_inspected = Library::inspect(copy).is_ok_and(|copied| copied.is_same(self)) && self.has_digest_of(copy);
        is_inspected.then_some(content)
    }

    /// Returns whether `file` has the digest that was computed, if it was.
    pub(super) fn has_digest_of(&self, file: &Path) -> bool {
        self.digest.get().is_none_or(|digest| digest::of_file(file).is_ok_and(|of| of == *digest))
    }

    /// Returns whether `other` declares the same.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        other.bytes == self.bytes && other.own == self.own
    }

    /// Returns the extensions of other crates that are linked into the library. It does not offer them.
    pub fn linked_in(&self) -> &[ExtensionRecord] {
        &self.linked_in
    }

    /// Returns the version of the ABI that the library was built for, as `major.minor`.
    pub fn abi_version(&self) -> String {
        format!("{}.{}", self.declared.abi_major, self.declared.abi_minor)
    }

    /// Returns the version of the extension contract that the library was built for.
    pub fn api_version(&self) -> &str {
        &self.declared.api_version
    }

    /// Returns the version of goondan that the library was built with.
    pub fn sdk_version(&self) -> &str {
        &self.declared.sdk_version
    }

    /// Returns the compiler that the library was built with.
    pub fn rustc(&self) -> &str {
        &self.declared.rustc
    }

    /// Returns the target that the library was built for.
    pub fn target(&self) -> &str {
        &self.declared.target
    }
}
