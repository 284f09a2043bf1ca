//! Owns the kind `Extension`: what wraps an agent, and with which settings.

use std::path::Path;

use goondan_core::ExtensionName;
use serde_json::{Map, Value};

use super::Entry;
use crate::configs::Configs;
use crate::document::{Document, Kind};
use crate::reference::Resource;
use crate::shape::EXTENSION;

/// An extension that agents can use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExtensionResource {
    /// `metadata.name`.
    pub name: ExtensionName,
    /// `spec.entry`: where its code is (LOAD-03).
    pub entry: Entry,
    /// `spec.config`: an object, empty if none is written (LOAD-06).
    pub config: Value,
}

impl Resource for ExtensionResource {
    const KIND: Kind = Kind::Extension;

    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl ExtensionResource {
    pub(crate) fn read(document: &Document<'_>, root: &Path, configs: &Configs<'_>) -> Option<Self> {
        let spec = document.spec.as_ref()?.table(&EXTENSION)?;
        let name = document.name().and_then(|name| ExtensionName::new(name).ok());
        let entry = Entry::read(&spec, name.as_ref(), root, configs);
        let config = spec.get("config").map_or_else(|| Some(Map::new()), |field| field.object());
        Some(Self { name: name?, entry: entry?, config: Value::Object(config?) })
    }
}
