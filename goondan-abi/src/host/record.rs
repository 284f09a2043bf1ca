//! The records of a library: the part of its extensions' descriptors that is read from the file without running it.

use std::path::Path;

use goondan_core::{API_VERSION, Effect, Error, ErrorCode, MiddlewareKind, Result};
use serde::{Deserialize, Serialize};

/// The record of one extension in a library file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ExtensionRecord {
    /// The version of the extension contract that it was built for.
    pub api_version: String,
    /// The name of its crate.
    pub package: String,
    /// The version of that crate.
    pub version: String,
    /// The name, which identifies the extension.
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
    /// The capabilities that it requires of the host.
    // COMPAT-03
    #[serde(default)]
    pub requires: Vec<String>,
    /// Whether it guards: then its failures are never skipped.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub guard: bool,
}

/// A middleware in an [`ExtensionRecord`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MiddlewareRecord {
    /// The kind.
    pub kind: MiddlewareKind,
    /// The name of the function.
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
#[non_exhaustive]
pub struct ToolRecord {
    /// The full name.
    pub name: String,
    /// The description of the tool.
    #[serde(default)]
    pub description: String,
    /// The effect of a call.
    #[serde(default)]
    pub effect: Effect,
    /// The timeout of a call in milliseconds, if any.
    #[serde(default)]
    pub timeout_ms: Option<u64>,
    /// Whether the handler asks a person.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub asks: bool,
    /// Whether calls run beside other calls of the same answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub parallel: bool,
}

/// Parses the records in `section`. Each is four bytes of length, little-endian, and JSON.
///
/// # Errors
/// `E_EXT_LOAD` if the section does not have this form, `E_EXT_COMPAT` for a record of another contract version.
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
    /// The fields that a record of any version has.
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Any {
        api_version: String,
        #[serde(default)]
        name: String,
    }
    let malformed = |error: serde_json::Error| damaged("cannot be parsed".to_owned()).caused_by(error);
    let any: Any = serde_json::from_slice(json).map_err(malformed)?;
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
    let record: ExtensionRecord = serde_json::from_slice(json).map_err(malformed)?;
    match record.tools.iter().find(|tool| tool.effect == Effect::Other) {
        Some(tool) => Err(damaged(format!("has a tool `{}` with an unknown effect", tool.name))),
        None => Ok(record),
    }
}
