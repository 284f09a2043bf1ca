//! Owns inspection: what is known of a library before any code of it runs (LINK-02).

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use goondan_core::{Error, ErrorCode, Result};

use super::declaration::Declared;
use super::record::ExtensionRecord;
use super::schemas::{self, ExtensionSchemas};
use super::{digest, elf, record};

/// Libraries of extensions: [`Library::inspect`] is the way in.
#[derive(Debug)]
pub enum Library {}

impl Library {
    /// Reads the library at `path`, and checks whether this program could load it. Nothing of the file runs.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when the file is no library of goondan, is damaged, or cannot be read; `E_EXT_COMPAT`, with both
    /// versions and the remedy, when it was built for another version or kind of machine.
    pub fn inspect(path: impl AsRef<Path>) -> Result<Inspected> {
        let path = path.as_ref();
        let contents = elf::read(path)?;
        let declared = Declared::parse(path, &contents.declaration)?;
        declared.check(path)?;
        let (own, linked_in) = own_package(path, record::parse(path, &contents.records)?)?;
        let schemas = schemas::read(path)?;
        let (path, bytes, digest) = (path.to_owned(), contents.declaration, OnceLock::new());
        Ok(Inspected { path, bytes, declared, own, linked_in, schemas, digest })
    }
}

/// Splits `records` into those of the library's own crate and those of crates that it merely links. The linker lays the
/// objects of the crate that it links for before those of other crates, so the first record tells which crate that is.
fn own_package(path: &Path, records: Vec<ExtensionRecord>) -> Result<(Vec<ExtensionRecord>, Vec<ExtensionRecord>)> {
    let Some(package) = records.first().map(|record| record.package.clone()) else {
        let message = format!("`{}` holds no extension", path.display());
        return Err(Error::new(ErrorCode::EXT_LOAD, message)
            .suggest("put `#[goondan::extension(name = \"…\")]` on an `impl` block of the crate"));
    };
    Ok(records.into_iter().partition(|record| record.package == package))
}

/// A library that was read and not loaded.
#[derive(Clone, Debug)]
pub struct Inspected {
    pub(super) path: PathBuf,
    /// The declaration as it lies in the file.
    pub(super) bytes: Vec<u8>,
    pub(super) declared: Declared,
    own: Vec<ExtensionRecord>,
    linked_in: Vec<ExtensionRecord>,
    schemas: Option<Vec<ExtensionSchemas>>,
    /// Of the file, for whoever asked for it: then nothing else is loaded.
    digest: OnceLock<String>,
}

impl Inspected {
    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The crate that the library was built of.
    pub fn package(&self) -> &str {
        self.own.first().map(|record| record.package.as_str()).unwrap_or_default()
    }

    /// The extensions of that crate.
    pub fn extensions(&self) -> &[ExtensionRecord] {
        &self.own
    }

    /// The extension that is meant by `name`: the one called so, or the only one.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when there are several, and none is called so.
    pub fn extension(&self, name: &str) -> Result<&ExtensionRecord> {
        if let [only] = self.own.as_slice() {
            return Ok(only);
        }
        self.own.iter().find(|record| record.name == name).ok_or_else(|| {
            let names: Vec<_> = self.own.iter().map(|record| record.name.as_str()).collect();
            let message =
                format!("`{}` holds {} extensions, and none is called `{name}`", self.path.display(), names.len());
            Error::new(ErrorCode::EXT_LOAD, message).suggest(format!("choose by name one of: {}", names.join(", ")))
        })
    }

    /// The schemas of the extensions, if they are packed into the file.
    pub fn schemas(&self) -> Option<&[ExtensionSchemas]> {
        self.schemas.as_deref()
    }

    /// The SHA-256 digest of the file, in lower-case hexadecimal digits. What is loaded afterwards has it.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when the file cannot be read.
    pub fn sha256(&self) -> Result<String> {
        match self.digest.get() {
            Some(digest) => Ok(digest.clone()),
            None => digest::of_file(&self.path).map(|digest| self.digest.get_or_init(|| digest).clone()),
        }
    }

    /// Whether `copy` is one of what was inspected.
    pub(super) fn is_copied_to(&self, copy: &Path) -> bool {
        let same_digest = || self.digest.get().is_none_or(|digest| digest::of_file(copy).is_ok_and(|of| of == *digest));
        let copied = Library::inspect(copy);
        copied.is_ok_and(|copied| copied.bytes == self.bytes && copied.own == self.own) && same_digest()
    }

    /// Extensions of other crates that the library was linked with. It does not offer them.
    pub fn linked_in(&self) -> &[ExtensionRecord] {
        &self.linked_in
    }

    /// The version of the ABI that it was built for, as `major.minor`.
    pub fn abi_version(&self) -> String {
        format!("{}.{}", self.declared.abi_major, self.declared.abi_minor)
    }

    /// The version of the contract that it was built for.
    pub fn api_version(&self) -> &str {
        &self.declared.api_version
    }

    /// The version of goondan that it was built with.
    pub fn sdk_version(&self) -> &str {
        &self.declared.sdk_version
    }

    /// The compiler that it was built with.
    pub fn rustc(&self) -> &str {
        &self.declared.rustc
    }

    /// The target that it was built for.
    pub fn target(&self) -> &str {
        &self.declared.target
    }
}
