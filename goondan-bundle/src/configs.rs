//! Owns the check of settings: whether an extension is known, and whether its config fits the schema that it declares.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

use goondan_core::schema::{Schema, Violation};
use goondan_core::{ErrorCode, MiddlewareDescriptor, Result};
use serde_json::Value;

use crate::field::{Field, meant};
use crate::known::KnownExtension;
use crate::nearest::{nearest, one_of};
use crate::resource::{Entry, ExtensionRef, ExtensionResource};
use crate::value::SourcedValue;

/// The extensions that are known, by the names of their entries.
pub(crate) struct Configs<'a> {
    /// `None` when it is not known which extensions there are.
    known: Option<BTreeMap<&'a str, Known<'a>>>,
    /// The extensions whose settings were checked as an agent uses them.
    used: RefCell<BTreeSet<String>>,
}

struct Known<'a> {
    schema: Result<Schema>,
    middlewares: &'a [MiddlewareDescriptor],
}

impl<'a> Configs<'a> {
    pub(crate) fn new(known: Option<&'a [KnownExtension<'a>]>) -> Self {
        let compile = |known: &'a KnownExtension<'a>| {
            (known.name, Known { schema: Schema::compile(&known.config_schema), middlewares: known.middlewares })
        };
        Self { known: known.map(|known| known.iter().map(compile).collect()), used: RefCell::default() }
    }

    fn of(&self, extension: &ExtensionResource) -> Option<&Known<'a>> {
        let Entry::Linked(name) = &extension.entry;
        self.known.as_ref()?.get(name.as_str())
    }

    /// The middlewares that an extension is known to declare.
    pub(crate) fn middlewares(&self, used: &ExtensionRef) -> &'a [MiddlewareDescriptor] {
        self.of(&used.target).map(|known| known.middlewares).unwrap_or_default()
    }

    /// Reports an entry that names an extension which is not known.
    pub(crate) fn check_entry(&self, field: &Field<'_>, name: &str) {
        let Some(known) = &self.known else { return };
        match known.get(name).map(|known| &known.schema) {
            Some(Ok(_)) => {}
            Some(Err(error)) => field.refuse(
                ErrorCode::SCHEMA_INVALID,
                format!("the extension `{name}` declares a config that is {}", error.message()),
                "correct the extension",
            ),
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
        let Some(Known { schema: Ok(schema), .. }) = self.of(extension) else { return Vec::new() };
        let pointers: Vec<_> = sources
            .map(|value| {
                value.stand_in(&mut config);
                pointer(&value.keys)
            })
            .collect();
        let mut violations = schema.violations(&config);
        violations.retain(|violation| !pointers.iter().any(|pointer| may_fit(violation, pointer)));
        violations
    }
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
