//! The extensions that a bundle is checked against: those of the program, and those in the libraries that it names.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use goondan_core::{Error, ErrorCode, ExtensionName, LayerInfo, MiddlewareDescriptor, MiddlewareOptions, Result};
use goondan_runtime::schema::{Schema, Violation, check_config, check_input, config_value};
use serde_json::Value;

use crate::known::KnownExtension;
use crate::libraries::{Declared, DeclaredTool, Libraries, LibraryEntry};
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
    /// Computed on first use: a program has more extensions than a bundle uses.
    config_schema: OnceCell<Value>,
    /// Compiled on first use.
    schema: OnceCell<Result<Schema>>,
    known: &'a KnownExtension<'a>,
}

impl<'a> LinkedExtension<'a> {
    fn new(known: &'a KnownExtension<'a>) -> Self {
        Self { config_schema: OnceCell::new(), schema: OnceCell::new(), known }
    }

    fn config_schema(&self) -> &Value {
        self.config_schema.get_or_init(|| self.known.config_schema.compute())
    }

    fn schema(&self) -> Result<&Schema, &Error> {
        let checked = || {
            let config_schema = self.config_schema();
            check_config(config_schema)?;
            self.known.tools.iter().try_for_each(|tool| check_input(tool.name, &(tool.parameters)()))?;
            Schema::derived(config_schema).map_err(|error| invalid_config(&error))
        };
        self.schema.get_or_init(checked).as_ref()
    }
}

/// An extension in a library.
struct LibraryExtension {
    guard: bool,
    requires: Vec<String>,
    /// `None` if the library does not contain it.
    schema: Option<Schema>,
    config_schema: Option<Value>,
    layers: Vec<LayerInfo>,
    tools: Vec<DeclaredTool>,
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
                let message = format!("the extension `{name}`: {}", error.message());
                cursor.error(error.code().clone(), message, "correct the extension");
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
        let inspected =
            libraries.declared(library).and_then(|Declared { guard, requires, config_schema, layers, tools }| {
                let schema = check_declared(config_schema.as_ref(), &tools).map_err(|error| {
                    let message = format!("the extension `{}`: {}", library.name, error.message());
                    Error::new(error.code().clone(), message).suggest("correct the extension")
                })?;
                Ok(LibraryExtension { guard, requires, schema, config_schema, layers, tools })
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

    /// Returns whether anything is known of the extension.
    pub(super) fn is_known(&self, extension: &ExtensionResource) -> bool {
        match &extension.entry {
            Entry::Linked(entry) => self.linked(entry).is_some(),
            Entry::Library(_) => self.loaded.contains_key(&extension.name),
        }
    }

    /// Whether the extension guards.
    pub(super) fn guards(&self, extension: &ExtensionResource) -> bool {
        match &extension.entry {
            Entry::Linked(entry) => self.linked(entry).is_some_and(|linked| linked.known.guard),
            Entry::Library(_) => self.loaded.get(&extension.name).is_some_and(|loaded| loaded.guard),
        }
    }

    /// Returns whether the extension requires this capability.
    pub(super) fn requires(&self, extension: &ExtensionResource, capability: &str) -> bool {
        match &extension.entry {
            Entry::Linked(entry) => {
                self.linked(entry).is_some_and(|linked| linked.known.requires.contains(&capability))
            }
            Entry::Library(_) => {
                let loaded = self.loaded.get(&extension.name);
                loaded.is_some_and(|loaded| loaded.requires.iter().any(|required| required == capability))
            }
        }
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
    pub(super) fn violations(&self, extension: &ExtensionResource, config: Value) -> Vec<Violation> {
        let schemas = match &extension.entry {
            Entry::Linked(name) => {
                self.linked(name).and_then(|linked| Some((linked.schema().ok()?, linked.config_schema())))
            }
            Entry::Library(library) => {
                let loaded = self.loaded.get(&library.name);
                loaded.and_then(|loaded| Some((loaded.schema.as_ref()?, loaded.config_schema.as_ref()?)))
            }
        };
        let violations = schemas.map(|(schema, written)| schema.violations(&config_value(written, config)));
        violations.unwrap_or_default()
    }

    /// The names of the tools that the extension declares without a description.
    pub(super) fn undescribed_tools(&self, extension: &ExtensionResource) -> Vec<String> {
        let tools: Vec<(&str, &str)> = match &extension.entry {
            Entry::Linked(entry) => {
                let declared = self.linked(entry).map(|linked| linked.known.tools).unwrap_or_default();
                declared.iter().map(|tool| (tool.name, tool.description)).collect()
            }
            Entry::Library(_) => {
                let declared = self.loaded.get(&extension.name).map(|loaded| loaded.tools.as_slice());
                let declared = declared.unwrap_or_default().iter();
                declared.map(|tool| (tool.name.as_str(), tool.description.as_str())).collect()
            }
        };
        let undescribed = tools.into_iter().filter(|(_, description)| description.trim().is_empty());
        undescribed.map(|(name, _)| name.to_owned()).collect()
    }
}

fn layer(extension: &ExtensionName, declared: &MiddlewareDescriptor) -> LayerInfo {
    let options = MiddlewareOptions::priority(declared.priority).named(declared.function);
    let options = declared.before.iter().fold(options, |options, name| options.before(*name));
    let options = declared.after.iter().fold(options, |options, name| options.after(*name));
    LayerInfo::new(extension.clone(), declared.kind, options)
}

/// Checks the schemas that a library contains. Returns the schema of the config, compiled.
fn check_declared(config: Option<&Value>, tools: &[DeclaredTool]) -> Result<Option<Schema>> {
    config.map_or(Ok(()), check_config)?;
    for tool in tools {
        tool.parameters.as_ref().map_or(Ok(()), |schema| check_input(&tool.name, schema))?;
    }
    config.map(Schema::compile).transpose().map_err(|error| invalid_config(&error))
}

fn invalid_config(error: &Error) -> Error {
    Error::new(ErrorCode::SCHEMA_INVALID, format!("the schema of its config is {}", error.message()))
}
