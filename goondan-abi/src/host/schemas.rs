//! Schemas that are packed into a library file, after the end of the library, where they can be read without running
//! it.

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The first bytes of the footer, which ends a packed file. The length of the library, the length of the schemas, and
/// the SHA-256 digest of the schemas follow.
const FOOTER_MAGIC: [u8; 16] = *b"GOONDAN-SCHEMAS\0";
/// The size of the footer. The lengths are 8 bytes each, little-endian.
const FOOTER: u64 = 16 + 8 + 8 + 32;
/// The most bytes of schemas that are read. No real library has more.
const MAX_SCHEMAS: u64 = 16 << 20;

/// The schemas of an extension in a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionSchemas {
    /// The name of the extension.
    pub name: String,
    /// The schema of its config.
    pub config: Value,
    /// The schemas of the tools that its attributes declare.
    pub tools: Vec<ToolSchema>,
}

/// The schema of a tool in a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolSchema {
    /// The name of the tool.
    pub name: String,
    /// The schema of its arguments.
    pub parameters: Value,
}

/// The parts of a packed file: the length of the library, and the schemas after it.
struct Packed {
    library: u64,
    schemas: Vec<u8>,
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::new(ErrorCode::EXT_LOAD, format!("the schemas that are packed into `{}` {what}", path.display()))
        .suggest("build or copy the library again, and pack it with `goondan plugin pack`")
}

/// Returns the schemas that are packed into the file at `path`, or `None` if the file was not packed.
///
/// # Errors
/// `E_EXT_LOAD` if they are damaged.
pub(super) fn read(path: &Path) -> Result<Option<Vec<ExtensionSchemas>>> {
    let unreadable = |error: std::io::Error| damaged(path, "cannot be read").caused_by(error);
    let mut file = File::open(path).map_err(unreadable)?;
    let Some(Packed { schemas, .. }) = trailer(path, &mut file).map_err(unreadable)?.transpose()? else {
        return Ok(None);
    };
    serde_json::from_slice(&schemas).map(Some).map_err(|error| damaged(path, "cannot be parsed").caused_by(error))
}

fn trailer(path: &Path, file: &mut File) -> std::io::Result<Option<Result<Packed>>> {
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(FOOTER) else { return Ok(None) };
    let mut footer = [0; FOOTER as usize];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut footer)?;
    if !footer.starts_with(&FOOTER_MAGIC) {
        return Ok(None);
    }
    let number = |at: usize| {
        let bytes = footer.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).unwrap_or_default()
    };
    let (library, size) = (number(16), number(24));
    if size > MAX_SCHEMAS || library.checked_add(size) != Some(end) {
        return Ok(Some(Err(damaged(path, "do not reach from the end of the library to that of the file"))));
    }
    let mut schemas = vec![0; size as usize];
    file.seek(SeekFrom::Start(library))?;
    file.read_exact(&mut schemas)?;
    if footer.get(32..) != Some(Sha256::digest(&schemas).as_slice()) {
        return Ok(Some(Err(damaged(path, "do not match the checksum that follows them"))));
    }
    Ok(Some(Ok(Packed { library, schemas })))
}

/// Packs `schemas` into the library file at `path`. Schemas that were packed before are replaced. The file still
/// loads, because bytes after the end of a library are not mapped. It is replaced atomically, so a program that has
/// loaded it keeps the old one.
///
/// # Errors
/// `E_IO` if the file cannot be written, `E_EXT_LOAD` if the schemas that are packed into it are damaged.
pub(super) fn pack(path: &Path, schemas: &[ExtensionSchemas]) -> Result<()> {
    let schemas = serde_json::to_vec(schemas)?;
    let failed = |error: std::io::Error| {
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

/// Writes the first `length` bytes of `file`, the schemas and the footer to a new file in the same directory, and
/// renames it to `path`.
fn replace(path: &Path, file: &mut File, length: u64, schemas: &[u8]) -> std::io::Result<()> {
    let permissions: Permissions = file.metadata()?.permissions();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let written = (|| {
        let mut packed = File::create(&temporary)?;
        file.rewind()?;
        std::io::copy(&mut Read::by_ref(file).take(length), &mut packed)?;
        packed.write_all(schemas)?;
        packed.write_all(&FOOTER_MAGIC)?;
        packed.write_all(&length.to_le_bytes())?;
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
