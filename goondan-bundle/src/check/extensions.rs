//! The extensions that a bundle is checked against: those of the program, and those in the libraries that it names.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fmt::Display;

use goondan_core::schema::{Schema, Violation};
use goondan_core::{Error, ErrorCode, ExtensionName, LayerInfo, MiddlewareDescriptor, Options, Result};
use serde_json::Value;

use crate::known::KnownExtension;
use crate::libraries::{Declared, Libraries, LibraryEntry};
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::read::Cursor;
use crate::resource::{Entry, ExtensionResource};

/// The extensions of the program and of libraries, as far as they are known. Without knowledge nothing is checked.
pub(crate) struct Extensions<'a> {
    /// Those of the program, by name; `None` if the caller did not pass them.
    linked: Option<BTreeMap<&'a str, LinkedExtension<'a>>>,
    /// Inspects libraries, if the caller passed it.
    libraries: Option<&'a dyn Libraries>,
    /// Those in inspected libraries, by their names in the bundle.
    loaded: BTreeMap<ExtensionName, LibraryExtension>,
}

/// An extension of the program.
struct LinkedExtension<'a> {
    /// Compiled on first use: a program has more extensions than a bundle uses.
    schema: OnceCell<Result<Schema>>,
    known: &'a KnownExtension<'a>,
}

impl<'a> LinkedExtension<'a> {
    fn new(known: &'a KnownExtension<'a>) -> Self {
        Self { schema: OnceCell::new(), known }
    }

    fn schema(&self) -> Result<&Schema, &Error> {
        self.schema.get_or_init(|| Schema::derived(&self.known.config_schema)).as_ref()
    }
}

/// An extension in a library.
struct LibraryExtension {
    /// `None` if the library does not contain it.
    schema: Option<Schema>,
    layers: Vec<LayerInfo>,
}

impl<'a> Extensions<'a> {
    pub(crate) fn new(linked: Option<&'a [KnownExtension<'a>]>, libraries: Option<&'a dyn Libraries>) -> Self {
        let by_name = |known: &'a [KnownExtension<'a>]| {
            known.iter().map(|known| (known.name, LinkedExtension::new(known))).collect()
        };
        Self { linked: linked.map(by_name), libraries, loaded: BTreeMap::new() }
    }

    /// Reports an entry of an extension that does not exist or cannot be loaded. Inspects the library of the entry.
    pub(super) fn check_entry(&mut self, entry: &Entry, cursor: &Cursor<'_>) {
        match entry {
            Entry::Linked(name) => self.check_linked(name, cursor),
            Entry::Library(library) => self.inspect(library, cursor),
        }
    }

    fn check_linked(&self, name: &str, cursor: &Cursor<'_>) {
        let Some(linked) = &self.linked else { return };
        match linked.get(name).map(LinkedExtension::schema) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error = invalid_schema(name, error);
                cursor.error(error.code().clone(), error.message(), "correct the extension");
            }
            None => {
                let guess = nearest(name, linked.keys().copied());
                let (names, meant) = (one_of(linked.keys().copied()), did_you_mean(guess));
                let message = format!("no extension `{name}` is linked into this program; it has {names}{meant}");
                let remedy = guess.map_or_else(
                    || "depend on the crate that holds it, and write `use the_crate as _;` in the program".to_owned(),
                    |guess| format!("write `linked:{guess}`"),
                );
                cursor.error(ErrorCode::EXT_LOAD, message, remedy);
            }
        }
    }

    fn inspect(&mut self, library: &LibraryEntry, cursor: &Cursor<'_>) {
        let Some(libraries) = self.libraries else { return };
        let inspected = libraries.declared(library).and_then(|Declared { config_schema, layers }| {
            let schema = config_schema.as_ref().map(Schema::compile).transpose();
            let schema = schema.map_err(|error| invalid_schema(&library.name, &error))?;
            Ok(LibraryExtension { schema, layers })
        });
        match inspected {
            Ok(extension) => {
                self.loaded.insert(library.name.clone(), extension);
            }
            Err(error) => {
                let remedy = error.suggestion().unwrap_or("build the library again").to_owned();
                cursor.error(error.code().clone(), error.message(), remedy);
            }
        }
    }

    fn linked(&self, name: &str) -> Option<&LinkedExtension<'a>> {
        self.linked.as_ref()?.get(name)
    }

    /// Whether the library of this extension was inspected, and does not contain the schema of the config.
    pub(super) fn lacks_schema(&self, extension: &ExtensionResource) -> bool {
        matches!(self.loaded.get(&extension.name), Some(LibraryExtension { schema: None, .. }))
    }

    /// The layers that the extension declares.
    pub(super) fn layers(&self, extension: &ExtensionResource) -> Vec<LayerInfo> {
        let name = &extension.name;
        match &extension.entry {
            Entry::Linked(entry) => {
                let declared = self.linked(entry).map(|linked| linked.known.middlewares).unwrap_or_default();
                declared.iter().map(|declared| layer(name, declared)).collect()
            }
            Entry::Library(_) => self.loaded.get(name).map(|loaded| loaded.layers.clone()).unwrap_or_default(),
        }
    }

    /// The violations of the extension's schema by `config`.
    pub(super) fn violations(&self, extension: &ExtensionResource, config: &Value) -> Vec<Violation> {
        let schema = match &extension.entry {
            Entry::Linked(name) => self.linked(name).and_then(|linked| linked.schema().ok()),
            Entry::Library(library) => self.loaded.get(&library.name).and_then(|loaded| loaded.schema.as_ref()),
        };
        schema.map(|schema| schema.violations(config)).unwrap_or_default()
    }
}

fn layer(extension: &ExtensionName, declared: &MiddlewareDescriptor) -> LayerInfo {
    let options = Options::priority(declared.priority).named(declared.function);
    let options = declared.before.iter().fold(options, |options, name| options.before(*name));
    let options = declared.after.iter().fold(options, |options, name| options.after(*name));
    LayerInfo::new(extension.clone(), declared.kind, options)
}

fn invalid_schema(name: impl Display, error: &Error) -> Error {
    let message = format!("the extension `{name}` declares a config that is {}", error.message());
    Error::new(ErrorCode::SCHEMA_INVALID, message).suggest("correct the extension")
}
