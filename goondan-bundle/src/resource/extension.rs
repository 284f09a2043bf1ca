//! Owns the kind `Extension`: what wraps an agent, and with which settings.

use goondan_core::{ErrorCode, ExtensionName};
use serde_json::{Map, Value};

use crate::configs::Configs;
use crate::document::{Document, Kind};
use crate::field::Field;
use crate::reference::Resource;
use crate::shape::EXTENSION;
use crate::value::{SourcedValue, read_sources};

/// An extension that agents can use.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExtensionResource {
    /// `metadata.name`.
    pub name: ExtensionName,
    /// `spec.entry`: where its code is (LOAD-03).
    pub entry: Entry,
    /// `spec.config`: an object, empty if none is written (LOAD-06). Values that come from elsewhere stand in it as they are
    /// written: `{"valueFrom": …}`.
    pub config: Value,
    /// The settings in [`config`](Self::config) whose values come from elsewhere.
    pub sources: Vec<SourcedValue>,
}

/// Where the code of an extension is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Entry {
    /// `linked:<name>`: in the program itself, under this name.
    Linked(String),
}

impl Resource for ExtensionResource {
    const KIND: Kind = Kind::Extension;

    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl ExtensionResource {
    pub(crate) fn read(document: &Document<'_>, configs: &Configs<'_>) -> Option<Self> {
        let spec = document.spec.as_ref()?.table(&EXTENSION)?;
        let entry = spec.need("entry").and_then(|field| entry(&field, configs));
        let config = spec.get("config").map_or_else(|| Some(Map::new()), |field| field.object());
        let sources = spec.get("config").map(|field| read_sources(&field)).unwrap_or_default();
        let name = ExtensionName::new(document.name()?).ok()?;
        Some(Self { name, entry: entry?, config: Value::Object(config?), sources })
    }
}

fn entry(field: &Field<'_>, configs: &Configs<'_>) -> Option<Entry> {
    let text = field.text()?;
    let Some(linked) = text.strip_prefix("linked:") else {
        field.refuse(
            ErrorCode::EXT_LOAD,
            format!("this version loads `linked:` entries only, but {} is {}", field.name(), field.value()),
            "link the extension into the program, and write `linked:<name>`",
        );
        return None;
    };
    if let Err(error) = ExtensionName::new(linked) {
        let remedy = error.suggestion().unwrap_or("write `linked:<name>`").to_owned();
        let message =
            format!("{} must be `linked:` and the name of an extension, but is {}", field.name(), field.value());
        field.refuse(ErrorCode::CONFIG_SCHEMA, message, remedy);
        return None;
    }
    configs.check_entry(field, linked);
    Some(Entry::Linked(linked.to_owned()))
}
