//! Owns the schemas of a library: what it tells of them when it runs, and the packed ones behind the end of its file, which
//! can be read without running it.

use std::fs::{self, File, Permissions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use goondan_core::{Error, ErrorCode, Result};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::inspect::Inspected;
use super::load::Loaded;

/// What the last bytes of a packed file begin with: `MAGIC`, the length of the library, that of the schemas, and their
/// SHA-256 digest.
const MAGIC: [u8; 16] = *b"GOONDAN-SCHEMAS\0";
/// The lengths are 8 bytes each, little-endian.
const FOOTER: u64 = 16 + 8 + 8 + 32;
/// No library has more schemas.
const MOST: u64 = 16 << 20;

/// The schemas of an extension in a library.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExtensionSchemas {
    /// The name of the extension.
    pub name: String,
    /// The schema of its config.
    pub config: Value,
    /// Those of the tools that its attributes declare.
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

impl Loaded {
    /// The schemas of the extensions, computed by the library.
    pub fn schemas(&self) -> Vec<ExtensionSchemas> {
        let extensions = self.extensions().iter();
        let schemas = extensions.map(|extension| ExtensionSchemas {
            name: extension.name.to_owned(),
            config: (extension.config_schema)(),
            tools: extension
                .tools
                .iter()
                .map(|tool| ToolSchema { name: tool.name.to_owned(), parameters: (tool.parameters)() })
                .collect(),
        });
        schemas.collect()
    }
}

/// A packed file: how long the library in it is, and the schemas behind that.
struct Packed {
    library: u64,
    schemas: Vec<u8>,
}

fn damaged(path: &Path, what: &str) -> Error {
    Error::new(ErrorCode::EXT_LOAD, format!("the schemas that are packed into `{}` {what}", path.display()))
        .suggest("build or copy the library again, and pack it with `goondan plugin pack`")
}

/// The schemas that are packed into the file at `path`; `None` for a file that was not packed.
///
/// # Errors
/// `E_EXT_LOAD` when they are damaged.
pub(super) fn read(path: &Path) -> Result<Option<Vec<ExtensionSchemas>>> {
    let unreadable = |error: std::io::Error| damaged(path, "cannot be read").caused_by(error);
    let mut file = File::open(path).map_err(unreadable)?;
    let Some(Packed { schemas, .. }) = trailer(path, &mut file).map_err(unreadable)?.transpose()? else {
        return Ok(None);
    };
    serde_json::from_slice(&schemas).map(Some).map_err(|error| damaged(path, "are none").caused_by(error))
}

fn trailer(path: &Path, file: &mut File) -> std::io::Result<Option<Result<Packed>>> {
    let length = file.metadata()?.len();
    let Some(end) = length.checked_sub(FOOTER) else { return Ok(None) };
    let mut footer = [0; FOOTER as usize];
    file.seek(SeekFrom::Start(end))?;
    file.read_exact(&mut footer)?;
    if !footer.starts_with(&MAGIC) {
        return Ok(None);
    }
    let number = |at: usize| {
        let bytes = footer.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        bytes.map(u64::from_le_bytes).unwrap_or_default()
    };
    let (library, size) = (number(16), number(24));
    if size > MOST || library.checked_add(size) != Some(end) {
        return Ok(Some(Err(damaged(path, "do not reach from the end of the library to that of the file"))));
    }
    let mut schemas = vec![0; size as usize];
    file.seek(SeekFrom::Start(library))?;
    file.read_exact(&mut schemas)?;
    if footer.get(32..) != Some(Sha256::digest(&schemas).as_slice()) {
        return Ok(Some(Err(damaged(path, "do not have the checksum that stands behind them"))));
    }
    Ok(Some(Ok(Packed { library, schemas })))
}

impl Inspected {
    /// Appends `schemas` to the file, in the place of those that are packed already. It still loads: what stands behind the
    /// end of a library is not mapped. The file is replaced as a whole, so a program that has it loaded keeps what it has.
    ///
    /// # Errors
    /// `E_EXT_LOAD` when `schemas` are not those of the extensions of this library; `E_IO` when the file cannot be written.
    pub fn pack(&self, schemas: &[ExtensionSchemas]) -> Result<()> {
        if let Some(lost) = self.extensions().iter().find(|record| schemas.iter().all(|s| s.name != record.name)) {
            return Err(Error::new(
                ErrorCode::EXT_LOAD,
                format!("there are no schemas of the extension `{}`", lost.name),
            )
            .suggest("build the library again"));
        }
        let schemas = serde_json::to_vec(schemas)?;
        let path = self.path();
        let failed = |error: std::io::Error| {
            Error::new(ErrorCode::IO, format!("cannot pack `{}`: {error}", path.display()))
                .suggest("check that its directory can be written")
                .caused_by(error)
        };
        // A link stays one.
        let path = path.canonicalize().map_err(failed)?;
        let mut file = File::open(&path).map_err(failed)?;
        let length = match trailer(&path, &mut file).map_err(failed)?.transpose()? {
            Some(packed) => packed.library,
            None => file.metadata().map_err(failed)?.len(),
        };
        replace(&path, &mut file, length, &schemas).map_err(failed)
    }
}

/// Writes the first `length` bytes of `file` and what follows them to a file beside `path`, which then takes its place.
fn replace(path: &Path, file: &mut File, length: u64, schemas: &[u8]) -> std::io::Result<()> {
    let permissions: Permissions = file.metadata()?.permissions();
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(name);
    let written = (|| {
        let mut packed = File::create(&beside)?;
        file.rewind()?;
        std::io::copy(&mut Read::by_ref(file).take(length), &mut packed)?;
        packed.write_all(schemas)?;
        packed.write_all(&MAGIC)?;
        packed.write_all(&length.to_le_bytes())?;
        packed.write_all(&(schemas.len() as u64).to_le_bytes())?;
        packed.write_all(&Sha256::digest(schemas))?;
        packed.set_permissions(permissions)?;
        packed.sync_all()?;
        fs::rename(&beside, path)
    })();
    if written.is_err() {
        // The first error is the one to tell.
        _ = fs::remove_file(&beside);
    }
    written
}
