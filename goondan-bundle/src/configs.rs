//! Owns the check of settings: whether an extension is known, and whether its config fits the schema that it declares.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Display;

use goondan_core::schema::{Schema, Violation};
use goondan_core::{Error, ErrorCode, ExtensionName, LayerInfo, MiddlewareDescriptor, Options, Result};
use serde_json::Value;

use crate::bundle::Reader;
use crate::field::{Field, meant};
use crate::known::KnownExtension;
use crate::libraries::{Declared, Libraries};
use crate::nearest::{nearest, one_of};
use crate::resource::{Entry, ExtensionRef, ExtensionResource, LibraryEntry};
use crate::value::SourcedValue;

/// What is known of extensions while a bundle is read.
pub(crate) struct Configs<'a> {
    /// Those of the program, by the names of their entries; `None` when it is not known which there are.
    known: Option<BTreeMap<&'a str, Known<'a>>>,
    /// Who reads libraries, if anybody does.
    libraries: Option<&'a dyn Libraries>,
    absolute: bool,
    /// Those in libraries that were read, by the names that the bundle gives them.
    read: RefCell<BTreeMap<ExtensionName, Read>>,
    /// The extensions whose settings were checked as an agent uses them.
    used: RefCell<BTreeSet<String>>,
}

/// An extension of the program.
struct Known<'a> {
    /// Compiled when it is asked for: a program has more extensions than a bundle uses.
    schema: OnceCell<Result<Schema>>,
    extension: &'a KnownExtension<'a>,
}

impl<'a> Known<'a> {
    fn new(extension: &'a KnownExtension<'a>) -> (&'a str, Self) {
        (extension.name, Self { schema: OnceCell::new(), extension })
    }

    fn schema(&self) -> Result<&Schema, &Error> {
        self.schema.get_or_init(|| Schema::derived(&self.extension.config_schema)).as_ref()
    }
}

/// An extension in a library.
struct Read {
    /// `None` for one that does not tell it.
    schema: Option<Schema>,
    layers: Vec<LayerInfo>,
}

impl<'a> Configs<'a> {
    pub(crate) fn new(reader: &Reader<'a>) -> Self {
        Self {
            known: reader.linked.map(|known| known.iter().map(Known::new).collect()),
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
        let read = libraries.declared(library).and_then(|Declared { config_schema, layers }| {
            let schema = config_schema.as_ref().map(Schema::compile).transpose();
            schema.map(|schema| Read { schema, layers }).map_err(|error| invalid(&library.name, &error))
        });
        match read {
            Ok(read) => {
                self.read.borrow_mut().insert(library.name.clone(), read);
            }
            Err(error) => {
                let remedy = error.suggestion().unwrap_or("build the library again").to_owned();
                field.refuse(error.code().clone(), error.message(), remedy);
            }
        }
    }

    /// Whether the library that holds this extension was read, and does not tell what its config must be.
    pub(crate) fn is_unchecked(&self, extension: &ExtensionResource) -> bool {
        matches!(self.read.borrow().get(&extension.name), Some(Read { schema: None, .. }))
    }

    fn linked(&self, name: &str) -> Option<&Known<'a>> {
        self.known.as_ref()?.get(name)
    }

    /// The layers that an extension is known to declare.
    pub(crate) fn layers(&self, used: &ExtensionRef) -> Vec<LayerInfo> {
        let name = &used.target.name;
        match &used.target.entry {
            Entry::Linked(entry) => {
                let declared = self.linked(entry).map(|known| known.extension.middlewares).unwrap_or_default();
                declared.iter().map(|declared| layer(name, declared)).collect()
            }
            Entry::Library(_) => self.read.borrow().get(name).map(|read| read.layers.clone()).unwrap_or_default(),
        }
    }

    /// Reports an entry that names an extension which is not known.
    pub(crate) fn check_entry(&self, field: &Field<'_>, name: &str) {
        let Some(known) = &self.known else { return };
        match known.get(name).map(Known::schema) {
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                let error = invalid(name, error);
                field.refuse(error.code().clone(), error.message(), "correct the extension");
            }
            None => {
                let guess = nearest(name, known.keys().copied());
                let names = one_of(known.keys().copied());
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
        for violation in self.violations(&used.target, used.merged_config(), used.merged_sources()) {
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
            for violation in self.violations(extension, extension.config.clone(), extension.sources.iter()) {
                report(config.as_ref().unwrap_or(spec), &keys(&violation), &violation, extension);
            }
        }
    }

    /// What is wrong with `config`, whatever the values of its `sources` may be.
    fn violations<'s>(
        &self,
        extension: &ExtensionResource,
        mut config: Value,
        sources: impl Iterator<Item = &'s SourcedValue>,
    ) -> Vec<Violation> {
        let pointers: Vec<_> = sources
            .map(|value| {
                value.stand_in(&mut config);
                pointer(&value.keys)
            })
            .collect();
        let mut violations = self.violations_of(extension, &config);
        violations.retain(|violation| !pointers.iter().any(|pointer| may_fit(violation, pointer)));
        violations
    }

    fn violations_of(&self, extension: &ExtensionResource, config: &Value) -> Vec<Violation> {
        let violations = match &extension.entry {
            Entry::Linked(name) => {
                let schema = self.linked(name).and_then(|known| known.schema().ok());
                schema.map(|schema| schema.violations(config))
            }
            Entry::Library(library) => {
                let read = self.read.borrow();
                let schema = read.get(&library.name).and_then(|read| read.schema.as_ref());
                schema.map(|schema| schema.violations(config))
            }
        };
        violations.unwrap_or_default()
    }
}

fn layer(extension: &ExtensionName, declared: &MiddlewareDescriptor) -> LayerInfo {
    let options = Options::priority(declared.priority).named(declared.function);
    let options = declared.before.iter().fold(options, |options, name| options.before(*name));
    let options = declared.after.iter().fold(options, |options, name| options.after(*name));
    LayerInfo::new(extension.clone(), declared.kind, options)
}

fn pointer(keys: &[String]) -> String {
    keys.iter().map(|key| format!("/{}", key.replace('~', "~0").replace('/', "~1"))).collect()
}

/// Whether `violation` may not be one with another text at `pointer`.
fn may_fit(violation: &Violation, pointer: &str) -> bool {
    let below = pointer.strip_prefix(violation.path.as_str());
    match below {
        Some("") => violation.keyword != "type",
        Some(below) if below.starts_with('/') => {
            matches!(
                violation.keyword.as_str(),
                "anyOf" | "oneOf" | "not" | "enum" | "const" | "contains" | "uniqueItems"
            )
        }
        _ => false,
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
