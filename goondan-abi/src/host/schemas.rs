//! Data that is packed behind the end of a library, where it can be read without running the library: its digest, and
//! the schemas of its extensions.
//!
//! In this order: the library, the digest mark, the digest, the schemas, the footer.

use std::fs::{self, File, Permissions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::digest;

/// The bytes before the digest of the library.
const DIGEST_MAGIC: [u8; 16] = *b"GOONDAN-LIBRARY\0";
/// The size of the mark and the SHA-256 digest.
const DIGEST: u64 = 16 + 32;
/// The first bytes of the footer, which ends a packed file. The length of everything before the schemas, the length of
/// the schemas, and the SHA-256 digest of the schemas follow.
const FOOTER_MAGIC: [u8; 16] = *b"GOONDAN-SCHEMAS\0";
/// The size of the footer. The lengths are 8 bytes each, little-endian.
const FOOTER: u64 = 16 + 8 + 8 + 32;
/// The most bytes of schemas that are read. No real library has more.
const MAX_SCHEMAS: u64 = 16 << 20;

/// The schemas of an extension in a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ExtensionSchemas {
    /// The name of the extension.
    pub name: String,
    /// The schema of its config.
    pub config: Value,
    /// The schemas of the tools that its attributes declare.
    pub tools: Vec<ToolSchema>,
}

impl ExtensionSchemas {
    /// The schemas of the extension `name`: of its config, and of its tools.
    pub fn new(name: impl Into<String>, config: Value, tools: Vec<ToolSchema>) -> Self {
        Self { name: name.into(), config, tools }
    }
}

/// The schema of a tool in a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolSchema {
    /// The name of the tool.
    pub name: String,
    /// The schema of its arguments.
    pub parameters: Value,
}

impl ToolSchema {
    /// The schema of the arguments of the tool `name`.
    pub fn new(name: impl Into<String>, parameters: Value) -> Self {
        Self { name: name.into(), parameters }
    }
}

/// The parts of a packed file.
struct Packed {
    /// The length of the library.
    library: u64,
    /// The digest of the library.
    digest: [u8; 32],
    schemas: Vec<u8>,
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::new(ErrorCode::EXT_LOAD, format!("the schemas that are packed into `{}` {what}", path.display()))
        .suggest("build or copy the library again, and pack it with `goondan plugin pack`")
}

/// Returns whether `bytes` begin with `magic`, or `None` if they probably did before they were damaged.
fn begin_with(bytes: &[u8], magic: &[u8; 16]) -> Option<bool> {
    match bytes.iter().zip(magic).filter(|(byte, expected)| byte == expected).count() {
        16 => Some(true),
        8..16 => None,
        _ => Some(false),
    }
}

/// Returns the schemas that are packed into `file`, which was opened at `path`, or `None` if it was not packed. Checks
/// that the library in it is the one that was packed.
///
/// # Errors
/// `E_EXT_LOAD` if the library or the schemas are damaged.
pub(super) fn read(path: &Path, file: &mut File) -> Result<Option<Vec<ExtensionSchemas>>> {
    let unreadable = |error: io::Error| damaged(path, "cannot be read").caused_by(error);
    let Some(Packed { library, digest, schemas }) = trailer(path, file).map_err(unreadable)?.transpose()? else {
        return Ok(None);
    };
    let actual = file.rewind().and_then(|()| digest::of(file.take(library))).map_err(unreadable)?;
    if actual != digest {
        let message = format!("`{}` is damaged: it has another digest than when it was packed", path.display());
        return Err(Error::new(ErrorCode::EXT_LOAD, message)
            .suggest("copy the library again, or build it again and pack it with `goondan plugin pack`"));
    }
    serde_json::from_slice(&schemas).map(Some).map_err(|error| damaged(path, "cannot be parsed").caused_by(error))
}

fn trailer(path: &Path, file: &mut File) -> io::Result<Option<Result<Packed>>> {
    let broken = |what: &str| Ok(Some(Err(damaged(path, what))));
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(FOOTER) else { return Ok(None) };
    let mut footer = [0; FOOTER as usize];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut footer)?;
    match begin_with(&footer, &FOOTER_MAGIC) {
        Some(true) => {}
        Some(false) => return Ok(None),
        None => return broken("have a damaged footer"),
    }
    let number = |at: usize| {
        let bytes = footer.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).unwrap_or_default()
    };
    let (before, size) = (number(16), number(24));
    if size > MAX_SCHEMAS || before.checked_add(size) != Some(end) {
        return broken("do not reach from the end of the library to that of the file");
    }
    let mut schemas = vec![0; size as usize];
    file.seek(SeekFrom::Start(before))?;
    file.read_exact(&mut schemas)?;
    if footer.get(32..) != Some(Sha256::digest(&schemas).as_slice()) {
        return broken("do not match the checksum that follows them");
    }
    let no_digest = || broken("do not follow the digest of the library");
    let Some(library) = before.checked_sub(DIGEST) else { return no_digest() };
    let (mut mark, mut digest) = ([0; 16], [0; 32]);
    file.seek(SeekFrom::Start(library))?;
    file.read_exact(&mut mark)?;
    file.read_exact(&mut digest)?;
    if mark == DIGEST_MAGIC { Ok(Some(Ok(Packed { library, digest, schemas }))) } else { no_digest() }
}

/// Packs `schemas`, and the digest of the library, into the library file at `path`. Earlier ones are replaced.
/// The file still loads, because bytes after the end of a library are not mapped. It is replaced atomically, so a
/// program that has loaded it keeps the old one.
///
/// # Errors
/// `E_IO` if the file cannot be written, `E_EXT_LOAD` if the schemas that are packed into it are damaged.
pub(super) fn pack(path: &Path, schemas: &[ExtensionSchemas]) -> Result<()> {
    let schemas = serde_json::to_vec(schemas)?;
    let failed = |error: io::Error| {
        Error::new(ErrorCode::IO, format!("cannot pack `{}`: {error}", path.display()))
            .suggest("check that its directory can be written")
            .caused_by(error)
    };
    // Resolved, so that the target of a symbolic link is replaced and not the link.
    let path = path.canonicalize().map_err(failed)?;
    let mut file = File::open(&path).map_err(failed)?;
    let length = match trailer(&path, &mut file).map_err(failed)?.transpose()? {
        Some(packed) => packed.library,
        None => file.metadata().map_err(failed)?.len(),
    };
    replace(&path, &mut file, length, &schemas).map_err(failed)
}

/// Writes the first `length` bytes of `file`, their digest, the schemas and the footer to a new file in the same
/// directory, and renames it to `path`.
fn replace(path: &Path, file: &mut File, length: u64, schemas: &[u8]) -> io::Result<()> {
    let permissions: Permissions = file.metadata()?.permissions();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut packed = File::create(&temporary)?;
        file.rewind()?;
        let digest = digest::of(Copied { from: Read::by_ref(file).take(length), to: &packed })?;
        packed.write_all(&DIGEST_MAGIC)?;
        packed.write_all(&digest)?;
        packed.write_all(schemas)?;
        packed.write_all(&FOOTER_MAGIC)?;
        packed.write_all(&(length + DIGEST).to_le_bytes())?;
        packed.write_all(&(schemas.len() as u64).to_le_bytes())?;
        packed.write_all(&Sha256::digest(schemas))?;
        packed.set_permissions(permissions)?;
        packed.sync_all()?;
        fs::rename(&temporary, path)
    })();
    if written.is_err() {
        // A failure to clean up would hide the error that caused it.
        _ = fs::remove_file(&temporary);
    }
    written
}

/// A reader that copies all bytes that are read, so that the digest covers the copied bytes.
struct Copied<R, W> {
    from: R,
    to: W,
}

impl<R: Read, W: Write> Read for Copied<R, W> {
    fn read(&mut self, part: &mut [u8]) -> io::Result<usize> {
        let read = self.from.read(part)?;
        self.to.write_all(part.get(..read).unwrap_or_default())?;
        Ok(read)
    }
}
