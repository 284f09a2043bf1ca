//! Providers of models: the values of `provider` in a bundle, registered by the crates that are linked into a program.

mod cassette;
mod finding;
mod path;

use std::fmt;
use std::path::{Path, PathBuf};

use goondan_core::host::panic::catch;
use goondan_core::{Error, ErrorCode, Result};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::model::Model;
use crate::schema::check_config;
pub use cassette::CassetteMode;
pub use finding::{Finding, FindingPlace, Findings};
pub use path::BundlePath;

/// The members of a model's `spec` that are no config.
const RESERVED: [&str; 2] = ["provider", "record"];

/// A provider of models, which bundles name as `provider`. [`model_provider!`](crate::model_provider) registers it.
///
/// The other members of a model's `spec` are its config, except for `record`. Unknown members, wrong types and missing
/// members are found by the schema of [`Config`](Self::Config); texts of it can come from the environment.
///
/// ```
/// use goondan::model::{Model, ModelProvider, ProviderContext, ScriptItem, ScriptedModel};
/// use goondan::prelude::*;
///
/// struct Fixed;
///
/// #[derive(Deserialize, JsonSchema)]
/// struct FixedConfig {
///     /// What every answer is.
///     answer: String,
/// }
///
/// impl ModelProvider for Fixed {
///     const NAME: &'static str = "fixed";
///     const DESCRIPTION: &'static str = "Answers the same to everything.";
///     type Config = FixedConfig;
///
///     fn build(config: FixedConfig, _: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
///         Ok(Box::new(ScriptedModel::new([ScriptItem::say(config.answer).repeat()])))
///     }
/// }
///
/// goondan::model_provider!(Fixed);
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a provider of models",
    note = "implement `goondan::model::ModelProvider` for it"
)]
pub trait ModelProvider: 'static {
    /// The name in bundles: words of lower-case letters and digits, joined by single hyphens.
    const NAME: &'static str;

    /// A sentence about the provider, for editors.
    const DESCRIPTION: &'static str;

    /// The members of `spec` besides `provider` and `record`. The documentation of its fields is shown by editors.
    type Config: DeserializeOwned + JsonSchema;

    /// Reports faults that the schema cannot find, and the files that the model reads. It has no key and no network,
    /// and must not change anything.
    ///
    /// When a bundle is checked, text from the environment is not known, and `config` has other text instead. Findings
    /// at such a setting are left out. When agents are built, the check runs again with the right text.
    fn check(config: &Self::Config, at: &ProviderContext<'_>, found: &mut Findings) {
        _ = (config, at, found);
    }

    /// Returns whether a model with this config can do without a setting, named by a JSON pointer, whose value is
    /// missing in the environment. The setting is then left out of the config, and not an error. `config` has other
    /// text there.
    ///
    /// By default, a model needs all of its settings.
    fn can_miss(config: &Self::Config, at: &ProviderContext<'_>, setting: &str) -> bool {
        _ = (config, at, setting);
        false
    }

    /// Returns a model with this config, in which `check` found no errors.
    ///
    /// # Errors
    /// Whatever keeps the model from being used.
    fn build(config: Self::Config, at: &ProviderContext<'_>) -> Result<Box<dyn Model>>;
}

/// Registers a [`ModelProvider`], so that every program that links this crate knows it.
///
/// A crate that nothing names is left out by the linker: the program writes `use the_crate as _;`.
///
/// A name that breaks the grammar does not compile:
///
/// ```compile_fail
/// use goondan::model::{Model, ModelProvider, ProviderContext};
///
/// struct Fixed;
///
/// impl ModelProvider for Fixed {
///     const NAME: &'static str = "My Provider";
///     # const DESCRIPTION: &'static str = "";
///     # type Config = ();
///     # fn build(_: (), _: &ProviderContext<'_>) -> goondan::Result<Box<dyn Model>> {
///     #     Err(goondan::Error::msg(""))
///     # }
///     // …
/// }
///
/// goondan::model_provider!(Fixed);
/// ```
#[macro_export]
macro_rules! model_provider {
    ($provider:ty) => {
        $crate::inventory::submit! {
            $crate::ProviderDescriptor::of::<$provider>(
                ::core::env!("CARGO_PKG_NAME"),
                ::core::env!("CARGO_PKG_VERSION"),
            )
        }
    };
}

/// Where a model is made.
#[derive(Clone, Copy, Debug)]
pub struct ProviderContext<'a> {
    root: &'a Path,
    model: &'a str,
    cassettes: Option<CassetteMode>,
}

impl<'a> ProviderContext<'a> {
    /// Returns the context of the model `model` of the bundle in the directory `root`.
    pub fn new(root: &'a Path, model: &'a str) -> Self {
        Self { root, model, cassettes: None }
    }

    /// Returns the context of a program that decides whether models record or play their cassettes.
    #[must_use]
    pub fn with_cassettes(self, cassettes: Option<CassetteMode>) -> Self {
        Self { cassettes, ..self }
    }

    /// Returns the directory of the bundle.
    pub fn root(&self) -> &'a Path {
        self.root
    }

    /// Returns the name of the model in the bundle.
    pub fn model(&self) -> &'a str {
        self.model
    }

    /// Returns the use that the model makes of its cassette, if the program decides that, and not the settings of the
    /// model. Models without cassettes ignore it.
    pub fn cassettes(&self) -> Option<CassetteMode> {
        self.cassettes
    }

    /// Returns `path` joined to the directory of the bundle.
    pub fn file(&self, path: &BundlePath) -> PathBuf {
        self.root.join(path.as_path())
    }
}

/// A provider of models, described before any of its code runs. [`model_provider!`](crate::model_provider) makes it.
pub struct ProviderDescriptor {
    name: &'static str,
    description: &'static str,
    package: &'static str,
    version: &'static str,
    config_schema: fn() -> Value,
    check: fn(Value, &ProviderContext<'_>) -> Result<Findings>,
    can_miss: fn(Value, &ProviderContext<'_>, &str) -> Result<bool>,
    build: fn(Value, &ProviderContext<'_>) -> Result<Box<dyn Model>>,
}

inventory::collect!(ProviderDescriptor);

impl ProviderDescriptor {
    /// Describes `P`, which is in a version of a package.
    ///
    /// # Panics
    /// If the name of the provider breaks the grammar. In a constant, that is a compile error.
    pub const fn of<P: ModelProvider>(package: &'static str, version: &'static str) -> Self {
        assert!(
            is_name(P::NAME),
            "the name of a model provider is words of lower-case letters and digits, joined by single hyphens"
        );
        Self {
            name: P::NAME,
            description: P::DESCRIPTION,
            package,
            version,
            config_schema: config_schema::<P>,
            check: check::<P>,
            can_miss: can_miss::<P>,
            build: build::<P>,
        }
    }

    /// Returns the name in bundles.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns a sentence about the provider.
    pub fn description(&self) -> &'static str {
        self.description
    }

    /// Returns the crate that contains it.
    pub fn package(&self) -> &'static str {
        self.package
    }

    /// Returns the version of that crate.
    pub fn version(&self) -> &'static str {
        self.version
    }

    /// Returns the JSON Schema of the config: of an object without other members than it names, unless it says that
    /// there can be.
    ///
    /// # Errors
    /// `E_MODEL_PROVIDER` when the provider panics, or when no object can fit.
    pub fn config_schema(&self) -> Result<Value> {
        let schema = self.guarded("its config", self.config_schema)?;
        check_config(&schema).map_err(|error| self.broken(&error.message()))?;
        let own = |member: &&&str| schema.get("properties").and_then(|members| members.get(**member)).is_some();
        if let Some(member) = RESERVED.iter().find(own) {
            return Err(self.broken(&format_args!("its config has a member `{member}`, which means something else")));
        }
        Ok(closed(schema))
    }

    /// Checks a config that fits the schema.
    ///
    /// # Errors
    /// `E_CONFIG_SCHEMA_INVALID` when the type of the config refuses it nevertheless, `E_MODEL_PROVIDER` when the
    /// provider panics.
    pub fn check(&self, config: Value, at: &ProviderContext<'_>) -> Result<Findings> {
        self.guarded("a check", || (self.check)(config, at))?
    }

    /// Returns whether a model with this config can do without a setting: see [`ModelProvider::can_miss`].
    ///
    /// # Errors
    /// As [`check`](Self::check).
    pub fn can_miss(&self, config: Value, at: &ProviderContext<'_>, setting: &str) -> Result<bool> {
        self.guarded("a check", || (self.can_miss)(config, at, setting))?
    }

    /// Returns a model with a config in which [`check`](Self::check) finds no errors.
    ///
    /// # Errors
    /// As [`check`](Self::check), and those of the provider.
    pub fn build(&self, config: Value, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
        self.guarded("building a model", || (self.build)(config, at))?
    }

    fn guarded<T>(&self, what: &str, work: impl FnOnce() -> T) -> Result<T> {
        catch(work).map_err(|text| self.broken(&format_args!("{what} panicked: {text}")))
    }

    fn broken(&self, why: &dyn fmt::Display) -> Error {
        let Self { name, package, version, .. } = self;
        let message = format!("the provider `{name}` of the crate {package} {version} does not work: {why}");
        Error::new(ErrorCode::MODEL_PROVIDER, message).suggest("correct the provider, or take another version of it")
    }
}

impl fmt::Debug for ProviderDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, package, version, .. } = self;
        f.debug_struct("ProviderDescriptor")
            .field("name", name)
            .field("package", &format_args!("{package} {version}"))
            .finish_non_exhaustive()
    }
}

/// Returns the providers that are linked into this program, sorted by name and then by package, because the linker
/// guarantees no order.
pub fn linked_providers() -> Vec<&'static ProviderDescriptor> {
    let mut all: Vec<_> = inventory::iter::<ProviderDescriptor>().collect();
    all.sort_by_key(|descriptor| (descriptor.name, descriptor.package));
    all
}

/// Returns the provider called `name` that is linked into this program, if there is one.
///
/// # Errors
/// `E_MODEL_PROVIDER` when there are two.
pub fn find_provider(name: &str) -> Result<Option<&'static ProviderDescriptor>> {
    let mut found = linked_providers().into_iter().filter(|descriptor| descriptor.name == name);
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => {
            let message =
                format!("two crates, `{}` and `{}`, link a provider called `{name}`", one.package, other.package);
            Err(Error::new(ErrorCode::MODEL_PROVIDER, message)
                .suggest("rename one of them, or link only one of the crates"))
        }
        (found, _) => Ok(found),
    }
}

/// Whether `name` has the grammar of names in bundles.
const fn is_name(name: &str) -> bool {
    let (bytes, mut index, mut after_hyphen) = (name.as_bytes(), 0, true);
    while index < bytes.len() {
        match bytes[index] {
            b'a'..=b'z' => after_hyphen = false,
            b'0'..=b'9' if index > 0 => after_hyphen = false,
            b'-' if !after_hyphen => after_hyphen = true,
            _ => return false,
        }
        index += 1;
    }
    !after_hyphen && bytes.len() <= 63
}

fn config_schema<P: ModelProvider>() -> Value {
    schemars::schema_for!(P::Config).into()
}

fn read<P: ModelProvider>(config: Value) -> Result<P::Config> {
    // The schema of the unit type takes `null`, and a provider without settings is written without any.
    let config = match config {
        Value::Object(members) if members.is_empty() => {
            serde_json::from_value(Value::Object(members)).or_else(|_| serde_json::from_value(Value::Null))
        }
        config => serde_json::from_value(config),
    };
    config.map_err(|error| {
        Error::new(ErrorCode::CONFIG_SCHEMA, format!("the settings do not fit the provider `{}`: {error}", P::NAME))
            .suggest("change the settings; the documentation of the provider says what it takes")
    })
}

fn check<P: ModelProvider>(config: Value, at: &ProviderContext<'_>) -> Result<Findings> {
    let mut found = Findings::default();
    P::check(&read::<P>(config)?, at, &mut found);
    Ok(found)
}

fn can_miss<P: ModelProvider>(config: Value, at: &ProviderContext<'_>, setting: &str) -> Result<bool> {
    Ok(P::can_miss(&read::<P>(config)?, at, setting))
}

fn build<P: ModelProvider>(config: Value, at: &ProviderContext<'_>) -> Result<Box<dyn Model>> {
    P::build(read::<P>(config)?, at)
}

/// Returns a schema of objects without unknown members, unless `schema` itself says something of them.
fn closed(schema: Value) -> Value {
    let Value::Object(mut keywords) = schema else { return schema };
    if keywords.get("type").is_some_and(|name| name == "null") {
        // The unit type: no settings.
        keywords.insert("type".to_owned(), "object".into());
    }
    if !["additionalProperties", "unevaluatedProperties"].iter().any(|keyword| keywords.contains_key(*keyword)) {
        // Unlike `additionalProperties`, it knows the members that `oneOf` and its like name.
        keywords.insert("unevaluatedProperties".to_owned(), false.into());
    }
    keywords.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_lower_case_words_joined_by_single_hyphens() {
        assert!(["a", "openai", "openai-compatible", "gpt4", "a-1"].into_iter().all(is_name));
        let long = "a".repeat(64);
        let wrong = ["", "A", "-a", "a-", "a--b", "a b", "1a", "ä", "a_b", &long];
        assert!(!wrong.into_iter().any(is_name));
    }
}
