//! Paths that do not lead out of a bundle.

use std::borrow::Cow;
use std::path::{Component, Path, PathBuf};

use goondan_core::{Error, ErrorCode, Result};
use schemars::{JsonSchema, SchemaGenerator};
use serde::{Deserialize, Deserializer, de};

use crate::schema::{BUNDLE_PATH, is_below_bundle};

/// A path below the directory of a bundle: relative and without `..`. Links are not followed.
///
/// As the type of a setting, it refuses other paths when the bundle is checked.
/// [`ProviderContext::file`](super::ProviderContext::file) joins it to the directory.
// F-REF
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BundlePath(PathBuf);

impl BundlePath {
    /// The `format` of such a path in the schema of a config.
    // Not a pattern: it would need look-ahead, and compiling that takes longer than all the rest of a short run.
    #[doc(hidden)]
    pub const FORMAT: &'static str = BUNDLE_PATH;

    /// Returns the path that is written as `text`.
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when it is absolute, has a `..`, or names nothing.
    pub fn new(text: &str) -> Result<Self> {
        if is_below_bundle(text) {
            let components = Path::new(text).components().filter(|component| *component != Component::CurDir);
            return Ok(Self(components.collect()));
        }
        let message = format!("`{text}` is not a path below the bundle's directory");
        Err(Error::new(ErrorCode::CONFIG_SCHEMA, message).suggest("write a relative path without `..`"))
    }

    /// Returns the path, relative to the directory of the bundle.
    pub fn as_path(&self) -> &Path {
        &self.0
    }
}

impl<'de> Deserialize<'de> for BundlePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(&text).map_err(|error| de::Error::custom(error.message()))
    }
}

impl JsonSchema for BundlePath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "BundlePath".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": Self::FORMAT })
    }
}
