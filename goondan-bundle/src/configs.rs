//! Owns the check of settings: whether an extension is known, and whether its config fits the schema that it declares.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use goondan_core::schema::{Schema, Violation};
use goondan_core::{Error, ErrorCode, ExtensionName, Result};
use serde_json::Value;

use crate::bundle::Reader;
use crate::field::{Field, meant};
use crate::libraries::Libraries;
use crate::nearest::{nearest, one_of};
use crate::resource::{Entry, ExtensionRef, ExtensionResource, LibraryEntry};

/// What is known of extensions while a bundle is read.
pub(crate) struct Configs<'a> {
    /// Those of the program, by the names of their entries; `None` when it is not known which there are.
    known: Option<BTreeMap<String, Result<Schema>>>,
    /// Who reads libraries, if anybody does.
    libraries: Option<&'a dyn Libraries>,
    absolute: bool,
    /// The schemas of extensions in libraries, by the names that the bundle gives them; `None` for one that does not tell.
    read: RefCell<BTreeMap<ExtensionName, Option<Schema>>>,
    /// The extensions whose settings were checked as an agent uses them.
    used: RefCell<BTreeSet<String>>,
}

impl<'a> Configs<'a> {
    pub(crate) fn new(reader: &Reader<'a>) -> Self {
        let compile = |(name, schema): &(&str, Value)| ((*name).to_owned(), Schema::compile(schema));
        Self {
            known: reader.linked.map(|known| known.iter().map(compile).collect()),
            libraries: reader.libraries,
            absolute: reader.absolute,
            read: RefCell::default(),
            used: RefCell::default(),
        }
    }

    /// Whether entries may be absolute paths.
    pub(crate) fn allows_absolute(&self) -> bool {
        self.absolute
    }

    /// Reports a library that could not be loaded.
    pub(crate) fn check_library(&self, field: &Field<'_>, library: &LibraryEntry) {
        let Some(libraries) = self.libraries else { return };
        let schema = libraries.config_schema(library).and_then(|schema| {
            let schema = schema.as_ref().map(Schema::compile).transpose();
            schema.map_err(|error| invalid(&library.name, &error))
        });
        match schema {
            Ok(schema) => {
                self.read.borrow_mut().insert(library.name.clone(), schema);
            }
            Err(error) => {
                let remedy = error.suggestion().unwrap_or("build the library again").to_owned();
                field.refuse(error.code().clone(), error.message(), remedy);
            }
        }
    }

    /// Whether the library that holds this extension was read, and does not tell what its config must be.
    pub(crate) fn is_unchecked(&self, extension: &ExtensionResource) -> bool {
        matches!(self.read.borrow().get(&extension.name), Some(None))
    }

    /// Reports an entry that names an extension which is not known.
    pub(crate) fn check_entry(&self, field: &Field<'_>, name: &str) {
        let Some(known) = &self.known else { return };
        match known.get(name) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error = invalid(name, error);
                field.refuse(error.code().clone(), error.message(), "correct the extension");
            }
            None => {
                let guess = nearest(name, known.keys().map(String::as_str));
                let names = one_of(known.keys().map(String::as_str));
                field.refuse(
                    ErrorCode::EXT_LOAD,
                    format!("no extension `{name}` is linked into this program; it has {names}{}", meant(guess)),
                    guess.map_or_else(
                        || {
                            "depend on the crate that holds it, and write `use the_crate as _;` in the program"
                                .to_owned()
                        },
                        |guess| format!("write `linked:{guess}`"),
                    ),
                );
            }
        }
    }

    /// Reports what is wrong with the settings with which an agent uses an extension. `item` is the use, and `spec` the
    /// spec of the extension.
    pub(crate) fn check_use(&self, used: &ExtensionRef, item: &Field<'_>, spec: Option<&Field<'_>>) {
        self.used.borrow_mut().insert(used.target.name.to_string());
        let (own, base) = (item.follow(["config"]), spec.and_then(|spec| spec.follow(["config"])));
        for violation in self.violations(&used.target, &used.merged_config()) {
            let keys = keys(&violation);
            let of_agent = keys.first().is_some_and(|key| used.config.contains_key(key));
            // What is missing can be added by the agent or the extension; the agent is where it shows.
            let holder = if of_agent || keys.is_empty() { own.as_ref().or(base.as_ref()) } else { base.as_ref() };
            report(holder.unwrap_or(item), &keys, &violation, &used.target);
        }
    }

    /// Reports what is wrong with the settings of an extension that no agent uses.
    pub(crate) fn check_unused(&self, extension: &ExtensionResource, spec: &Field<'_>) {
        if !self.used.borrow().contains(extension.name.as_str()) {
            let config = spec.follow(["config"]);
            for violation in self.violations(extension, &extension.config) {
                report(config.as_ref().unwrap_or(spec), &keys(&violation), &violation, extension);
            }
        }
    }

    fn violations(&self, extension: &ExtensionResource, config: &Value) -> Vec<Violation> {
        let violations = match &extension.entry {
            Entry::Linked(name) => {
                let schema = self.known.as_ref().and_then(|known| known.get(name)?.as_ref().ok());
                schema.map(|schema| schema.violations(config))
            }
            Entry::Library(library) => {
                let read = self.read.borrow();
                read.get(&library.name).and_then(Option::as_ref).map(|schema| schema.violations(config))
            }
        };
        violations.unwrap_or_default()
    }
}

fn invalid(name: impl Display, error: &Error) -> Error {
    let message = format!("the extension `{name}` declares a config that is {}", error.message());
    Error::new(ErrorCode::SCHEMA_INVALID, message).suggest("correct the extension")
}

/// The keys of the pointer at the wrong value.
fn keys(violation: &Violation) -> Vec<String> {
    violation.path.split('/').skip(1).map(|key| key.replace("~1", "/").replace("~0", "~")).collect()
}

fn report(config: &Field<'_>, keys: &[String], violation: &Violation, extension: &ExtensionResource) {
    let field = config.follow(keys.iter().map(String::as_str));
    let message =
        format!("the config of the extension `{}` does not fit its schema: {}", extension.name, violation.message);
    let remedy = "change the config; the documentation of the extension says what it takes";
    field.as_ref().unwrap_or(config).refuse_once(ErrorCode::EXT_CONFIG, message, remedy);
}
