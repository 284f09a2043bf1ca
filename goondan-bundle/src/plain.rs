//! Reads a YAML file of plain data into a type of the caller, with the limits and the errors of a bundle.

use std::path::Path;

use goondan_core::{ErrorCode, Result};
use serde::de::DeserializeOwned;

use crate::diagnostic::{Diagnostic, Diagnostics, Place};
use crate::source;
use crate::yaml::{self, Node};

/// Reads a YAML file of one document into `T`, with the limits of a bundle: 1 MB, 64 levels, few aliases.
///
/// # Errors
/// `E_CONFIG_PARSE_ERROR` when the file cannot be read or is not YAML, `E_CONFIG_SCHEMA_INVALID` when it does not fit
/// `T`. The message begins with the file, followed by the line and the column if they are known.
pub fn read_yaml<T: DeserializeOwned + Send>(path: impl AsRef<Path>) -> Result<T> {
    let path = path.as_ref();
    source::read(path).and_then(|text| parse(path, &text)).map_err(Diagnostics::into_error)
}

/// As [`read_yaml`], of a file whose text is known, for readers that collect diagnostics.
pub(crate) fn parse<T: DeserializeOwned + Send>(path: &Path, text: &str) -> Result<T, Diagnostics> {
    yaml::parsing(path, || match yaml::one::<Option<T>>(path, text, ErrorCode::CONFIG_SCHEMA) {
        Ok(Some(read)) => Ok(read),
        // Without the `Option` the parser would accept an empty file as an empty list.
        Ok(None) => {
            let (message, suggestion) = ("the file is empty", "write the data into it");
            Err(Diagnostic::parse_error(path, Place::START, message, suggestion).into())
        }
        // A file that is not even a tree is no YAML; any other does not fit `T`.
        Err(mismatch) => Err(yaml::one::<Node>(path, text, ErrorCode::CONFIG_PARSE).err().unwrap_or(mismatch)),
    })?
}
