//! The kind `Model`: the provider of a model, and its settings.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use goondan_core::{Error, ErrorCode, Result, Secret};
use goondan_runtime::{
    BundlePath, CassetteMode, Model, ProviderContext, ProviderDescriptor, RecordedModel, find_provider,
    linked_providers,
};
use serde_json::Value;

use super::ToCheck;
use super::settings::{Checked, Settings, config};
use crate::diagnostic::Diagnostics;
use crate::kind::Kind;
use crate::nearest::{did_you_mean, nearest, one_of};
use crate::read::{ConfigPlaces, Cursor, Document, FetchedConfig, MapReader, Resource, SourcedValue, read_sources};
use crate::schema::MODEL;

/// A model that agents call.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ModelResource {
    /// `metadata.name`.
    pub name: String,
    /// `spec.provider`: the name of a provider that is linked into this program.
    pub provider: String,
    /// The other fields of `spec`, which the provider defines: an object. Values from the environment are kept as they
    /// are written: `{"valueFrom": …}`.
    pub config: Value,
    /// The settings in [`config`](Self::config) whose values are taken from the environment.
    pub sources: Vec<SourcedValue>,
    /// `spec.record`: the file to which every request is appended as a line of JSON, below the root of the bundle and
    /// joined to it.
    pub record: Option<PathBuf>,
    /// The files that the model reads, as its provider says.
    pub files: Vec<PathBuf>,
    /// The files that it would read with other settings, such as a recording.
    pub recordings: Vec<PathBuf>,
    /// The hosts that it connects to and no setting names, as URLs.
    pub(crate) hosts: Vec<String>,
    /// The variables of the environment that it reads and no setting names.
    pub variables: Vec<String>,
    /// The use of the model's cassette, whatever its config says.
    cassettes: Option<CassetteMode>,
    /// The places of the settings in [`config`](Self::config).
    places: ConfigPlaces,
}

impl Resource for ModelResource {
    const KIND: Kind = Kind::Model;

    fn name(&self) -> &str {
        &self.name
    }
}

impl ModelResource {
    pub(crate) fn read<'a>(
        document: &Document<'a>,
        root: &Path,
        cassettes: Option<CassetteMode>,
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let cursor = document.spec.as_ref()?;
        let spec = MapReader::lenient(cursor, &MODEL)?;
        let provider = spec.require("provider");
        if provider.is_none() {
            // Without the provider, its settings are not known.
            spec.deny_misspelt("provider");
        }
        let provider = find(&provider?)?;
        let record = read_record(&spec, root, to_check);
        let mut sources = read_sources(cursor);
        sources.retain(|value| MODEL.names().all(|name| value.keys[0] != name));

        let written = Value::Object(cursor.object()?);
        let mut filled = written.clone();
        sources.iter().for_each(|value| value.insert_placeholder(&mut filled));
        let places = ConfigPlaces::of(cursor);
        let at = ProviderContext::new(root, document.name().unwrap_or_default()).with_cassettes(cassettes);
        let settings = Settings { provider, spec: &filled, unknown: &sources, places: &places, at: &at };
        let checked = match settings.check() {
            Ok(checked) => checked,
            Err(error) => {
                report(&spec.require("provider")?, &error);
                return None;
            }
        };
        let complete = checked.errors.is_empty();
        // A record that is no path below the bundle is reported above.
        let Checked { errors, hints, files, recordings, hosts, variables } = checked;
        let errors = errors.into_iter().filter(|error| record.is_some() || error.path != "spec.record");
        errors.for_each(|error| cursor.sink().report(error));
        to_check.hints.extend(hints);
        if !complete {
            return None;
        }
        let mut own = config(&written);
        sources.retain(|value| {
            let missed = value.is_missing()
                && provider.can_miss(config(&filled), &at, &value.pointer()).unwrap_or(false)
                && value.remove(&mut own);
            !missed
        });
        let (name, provider) = (document.name()?.to_owned(), provider.name().to_owned());
        let record = record?;
        Some(Self {
            name,
            provider,
            config: own,
            sources,
            record,
            files,
            recordings,
            hosts,
            variables,
            cassettes,
            places,
        })
    }

    /// Returns the config with `$NAME` for values from the environment.
    pub(crate) fn shown_config(&self) -> Value {
        let mut config = self.config.clone();
        self.sources.iter().for_each(|value| value.insert_placeholder(&mut config));
        config
    }

    /// Returns the config with the values from the environment, or an error for each missing value.
    pub(crate) fn fetch_config(&self) -> Result<FetchedConfig, Diagnostics> {
        FetchedConfig::fetch(self.config.clone(), self.sources.iter())
    }

    /// Returns a model of a bundle in the directory `root`, and the secrets in its config.
    ///
    /// # Errors
    /// `E_CONFIG_VALUE_NOT_FOUND` for a value that is missing in the environment, and those of the provider, with the
    /// place of the model.
    pub(crate) fn build(&self, root: &Path) -> Result<(Arc<dyn Model>, Vec<Secret>)> {
        let FetchedConfig { config, secrets } = self.fetch_config().map_err(Diagnostics::into_error)?;
        let at = ProviderContext::new(root, &self.name).with_cassettes(self.cassettes);
        let model = self.build_at(config, &at).map_err(|error| self.placed(&error))??;
        let model: Arc<dyn Model> = match &self.record {
            Some(record) => Arc::new(RecordedModel::new(model, record)),
            None => Arc::from(model),
        };
        Ok((model, secrets))
    }

    /// The outer error has no place yet.
    fn build_at(&self, config: Value, at: &ProviderContext<'_>) -> Result<Result<Box<dyn Model>>> {
        let provider = find_provider(&self.provider)?.ok_or_else(|| unknown(&self.provider))?;
        if !self.sources.is_empty() {
            // Only now all values are known.
            let mut spec = config.clone();
            spec["provider"] = self.provider.as_str().into();
            let settings = Settings { provider, spec: &spec, unknown: &[], places: &self.places, at };
            if let Some(errors) = Diagnostics::new(settings.check()?.errors) {
                return Ok(Err(errors.into_error()));
            }
        }
        provider.build(config, at).map(Ok)
    }

    /// Adds the place and the name of the model to an error of its provider.
    fn placed(&self, error: &Error) -> Error {
        let (code, message) = (error.code().clone(), format!("the model `{}`: {}", self.name, error.message()));
        let remedy = error.suggestion().unwrap_or("change the settings of the model").to_owned();
        let placed = Diagnostics::from(self.places.error(code, &[], message, remedy)).into_error();
        match error.source() {
            Some(cause) => placed.caused_by(cause.to_string()),
            None => placed,
        }
    }
}

/// Reads the file in which the model is recorded: `Some(None)` if there is none, and `None` if its path is refused.
fn read_record<'a>(spec: &MapReader<'a>, root: &Path, to_check: &mut ToCheck<'a>) -> Option<Option<PathBuf>> {
    let Some(cursor) = spec.get("record") else { return Some(None) };
    let file = below(root, &cursor)?;
    to_check.records.push((file.clone(), cursor));
    Some(Some(file))
}

/// The provider that `cursor` names.
fn find(cursor: &Cursor<'_>) -> Option<&'static ProviderDescriptor> {
    let name = cursor.text()?;
    let found = find_provider(name).and_then(|found| found.ok_or_else(|| unknown(name)));
    found.map_err(|error| report(cursor, &error)).ok()
}

fn unknown(name: &str) -> Error {
    let mut known: Vec<_> = linked_providers().into_iter().map(ProviderDescriptor::name).collect();
    known.dedup();
    let guess = nearest(name, known.iter().copied());
    let (names, meant) = (one_of(known.iter().copied()), did_you_mean(guess));
    let remedy = guess.map_or_else(
        || "write one of them, or link the crate that has the provider: `use the_crate as _;`".to_owned(),
        |guess| format!("write `provider: {guess}`"),
    );
    Error::new(ErrorCode::CONFIG_SCHEMA, format!("unknown provider `{name}`: this build knows {names}{meant}"))
        .suggest(remedy)
}

fn report(cursor: &Cursor<'_>, error: &Error) {
    cursor.error(error.code().clone(), error.message(), error.suggestion().unwrap_or_default());
}

/// The path at `cursor`, which must not lead out of the bundle (F-REF).
fn below(root: &Path, cursor: &Cursor<'_>) -> Option<PathBuf> {
    if let Ok(path) = BundlePath::new(cursor.text()?) {
        return Some(root.join(path.as_path()));
    }
    cursor.error(
        ErrorCode::CONFIG_SCHEMA,
        format!("{} must be a path below the bundle's directory, but is {}", cursor.name(), cursor.value()),
        "write a relative path without `..`",
    );
    None
}
