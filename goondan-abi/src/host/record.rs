//! Owns the records of a library: what its file tells of its extensions without running anything.

use std::path::Path;

use goondan_core::{API_VERSION, Effect, Error, ErrorCode, MiddlewareKind, Result};
use serde::{Deserialize, Serialize};

/// What a library file tells of one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ExtensionRecord {
    /// The version of the contract that it was built for.
    pub api_version: String,
    /// The crate that holds it.
    pub package: String,
    /// The version of that crate.
    pub version: String,
    /// The name, which is the identity.
    pub name: String,
    /// The documentation.
    #[serde(default)]
    pub description: String,
    /// The middlewares that its attributes declare.
    #[serde(default)]
    pub middlewares: Vec<MiddlewareRecord>,
    /// The tools that its attributes declare.
    #[serde(default)]
    pub tools: Vec<ToolRecord>,
    /// The patterns of the events that its attributes subscribe to.
    #[serde(default)]
    pub subscriptions: Vec<String>,
    /// What the host must offer for it to run (COMPAT-03).
    #[serde(default)]
    pub requires: Vec<String>,
}

/// A middleware in an [`ExtensionRecord`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MiddlewareRecord {
    /// The kind.
    pub kind: MiddlewareKind,
    /// The function.
    pub function: String,
    /// The priority.
    pub priority: i32,
    /// The extensions that it must be outside of.
    #[serde(default)]
    pub before: Vec<String>,
    /// The extensions that it must be inside of.
    #[serde(default)]
    pub after: Vec<String>,
}

/// A tool in an [`ExtensionRecord`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolRecord {
    /// The full name.
    pub name: String,
    /// What the tool does.
    #[serde(default)]
    pub description: String,
    /// What a call does to the world.
    #[serde(default)]
    pub effect: Effect,
    /// How long a call may take, in milliseconds.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
}

/// The records in `section`, each four bytes of length, little-endian, and JSON.
///
/// # Errors
/// `E_EXT_LOAD` when that is not what the section holds, `E_EXT_COMPAT` for a record of another contract.
pub(super) fn parse(path: &Path, section: &[u8]) -> Result<Vec<ExtensionRecord>> {
    let mut rest = section;
    let mut records = Vec::new();
    while !rest.is_empty() {
        let at = section.len() - rest.len();
        let damaged = |why: String| {
            let message = format!("the record at byte {at} of the extensions in `{}` {why}", path.display());
            Error::new(ErrorCode::EXT_LOAD, message).suggest("build or copy the library again")
        };
        let (length, behind) = rest.split_first_chunk().ok_or_else(|| damaged("has no length".to_owned()))?;
        let length = u32::from_le_bytes(*length) as usize;
        let (json, behind) = behind
            .split_at_checked(length)
            .ok_or_else(|| damaged(format!("claims {length} bytes, and {} are left", behind.len())))?;
        records.push(record(path, json, damaged)?);
        rest = behind;
    }
    Ok(records)
}

fn record(path: &Path, json: &[u8], damaged: impl Fn(String) -> Error) -> Result<ExtensionRecord> {
    /// What a record of any version has.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        api_version: String,
        #[serde(default)]
        name: String,
    }
    let no_json = |error: serde_json::Error| damaged("is not one".to_owned()).caused_by(error);
    let any: Any = serde_json::from_slice(json).map_err(no_json)?;
    if any.api_version != API_VERSION {
        let message = format!(
            "the extension `{}` in `{}` was built for `{}`; this program speaks `{API_VERSION}`",
            any.name,
            path.display(),
            any.api_version
        );
        return Err(Error::new(ErrorCode::EXT_COMPAT, message)
            .suggest("build the library and the program with the same major version of goondan"));
    }
    serde_json::from_slice(json).map_err(no_json)
}
