//! The kind `Extension`: the entry of an extension, and its settings.

use std::path::Path;

use goondan_core::ExtensionName;
use serde_json::{Map, Value};

use super::{Entry, ToCheck};
use crate::kind::Kind;
use crate::read::{ConfigPlaces, Document, MapReader, Resource, SourcedValue, read_sources};
use crate::schema::EXTENSION;

/// An extension that agents can use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExtensionResource {
    /// `metadata.name`.
    pub name: ExtensionName,
    /// `spec.entry`: the location of its code.
    // LOAD-03
    pub entry: Entry,
    /// `spec.config`: an object, which defaults to an empty one. Values from the environment are kept as they are
    /// written: `{"valueFrom": …}`.
    // LOAD-06
    pub config: Value,
    /// The settings in [`config`](Self::config) whose values are taken from the environment.
    pub sources: Vec<SourcedValue>,
    /// The places of the settings in [`config`](Self::config).
    pub(crate) places: ConfigPlaces,
}

impl Resource for ExtensionResource {
    const KIND: Kind = Kind::Extension;

    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl ExtensionResource {
    pub(crate) fn read<'a>(
        document: &Document<'a>,
        root: &Path,
        allow_absolute: bool,
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let spec = MapReader::new(document.spec.as_ref()?, &EXTENSION)?;
        let name = document.name().and_then(|name| ExtensionName::new(name).ok());
        let entry = Entry::read(&spec, name.as_ref(), root, allow_absolute, to_check);
        let config = spec.get("config").map_or_else(|| Some(Map::new()), |config| config.object());
        let sources = spec.get("config").map(|config| read_sources(&config)).unwrap_or_default();
        let places = ConfigPlaces::read(spec.cursor());
        Some(Self { name: name?, entry: entry?, config: Value::Object(config?), sources, places })
    }
}
