//! Owns reading a YAML file of plain data: the limits and the error form of a bundle, the type of the caller.

use std::path::Path;

use goondan_core::{ErrorCode, Result};
use serde::de::DeserializeOwned;

use crate::fault::{Flaw, Place};
use crate::faults::Faults;
use crate::source;
use crate::yaml::{self, Node};

/// Reads a YAML file of one document into `T`, with the limits of a bundle: 1 MB, 64 levels, few aliases.
///
/// # Errors
/// `E_CONFIG_PARSE_ERROR` when the file cannot be read or is not YAML, `E_CONFIG_SCHEMA_INVALID` when it does not fit
/// `T`. The message begins with the file, and where they are known the line and the column.
pub fn read_yaml<T: DeserializeOwned + Send>(path: impl AsRef<Path>) -> Result<T> {
    read_file(path.as_ref()).map_err(Faults::into_error)
}

/// As [`read_yaml`], for readers that collect faults.
pub(crate) fn read_file<T: DeserializeOwned + Send>(path: &Path) -> Result<T, Faults> {
    source::read(path).and_then(|text| read(&text)).map_err(|flaw| flaw.of(path).into())
}

fn read<T: DeserializeOwned + Send>(text: &str) -> Result<T, Flaw> {
    yaml::on_large_stack(|| match yaml::one::<Option<T>>(text, ErrorCode::CONFIG_SCHEMA) {
        Ok(Some(read)) => Ok(read),
        // The parser would take nothing for an empty list.
        Ok(None) => {
            Err(Flaw::new(ErrorCode::CONFIG_PARSE, Place::START, "the file is empty", "write the data into it"))
        }
        // What fails as a tree as well is no YAML; the rest has another shape.
        Err(flaw) => Err(yaml::one::<Node>(text, ErrorCode::CONFIG_PARSE).err().unwrap_or(flaw)),
    })?
}
