//! The kind `Agent`: the model, the instructions and the extensions of an agent.

use std::sync::Arc;

use goondan_core::{AgentName, AnswerFormat, ErrorCode, OnError};
use goondan_runtime::Covers;
use goondan_runtime::schema::Schema;
use serde_json::{Map, Value};

use super::{ExtensionResource, ModelResource, Policy, ToCheck};
use crate::diagnostic::Diagnostics;
use crate::kind::Kind;
use crate::read::{
    ConfigPlaces, Cursor, Document, FetchedConfig, MapReader, Names, Resource, SourcedValue, read_sources,
};
use crate::schema::{AGENT, ANSWER, MapSchema, USE};
use crate::yaml;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentResource {
    /// `metadata.name`.
    pub name: AgentName,
    /// The model that it calls.
    pub model: Arc<ModelResource>,
    /// `spec.models`: the models that a middleware can choose by name, besides its own. If it is not written, those are
    /// all models of the bundle.
    // API-11
    pub models: Option<Vec<Arc<ModelResource>>>,
    /// The system prompt: a field of each request to the model, never a message of the conversation.
    // D-19
    pub system: Option<String>,
    /// Its extensions, in the order in which they are loaded.
    // LOAD-01
    pub extensions: Vec<ExtensionRef>,
    /// Its limits, which take precedence over those of the swarm.
    // D-22
    pub policy: Policy,
    /// The value that it answers with, in place of a text.
    // VALUE-01
    pub answer: Option<AnswerFormat>,
}

/// The use of an extension by an agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExtensionRef {
    /// The extension.
    pub target: Arc<ExtensionResource>,
    /// The settings of this use, which replace those of the extension key by key.
    // F-REF
    pub config: Map<String, Value>,
    /// The settings in [`config`](Self::config) whose values are taken from the environment.
    pub sources: Vec<SourcedValue>,
    /// The effect of a failure of its layers.
    // FAIL-01
    pub on_error: OnError,
    /// Whom it covers, if it guards.
    // GUARD-01
    pub covers: Covers,
    /// The places of the settings in [`config`](Self::config).
    places: ConfigPlaces,
}

impl ExtensionRef {
    /// Returns the settings of the extension, replaced key by key by those of this use.
    // F-REF
    pub fn merged_config(&self) -> Value {
        let mut merged = self.target.config.as_object().cloned().unwrap_or_default();
        merged.extend(self.config.clone());
        Value::Object(merged)
    }

    /// Returns the settings in [`merged_config`](Self::merged_config) whose values are taken from the environment.
    pub fn merged_sources(&self) -> impl Iterator<Item = &SourcedValue> {
        let replaced = |value: &&SourcedValue| value.keys.first().is_some_and(|key| self.config.contains_key(key));
        self.target.sources.iter().filter(move |value| !replaced(value)).chain(&self.sources)
    }

    /// Returns the [`merged_config`](Self::merged_config) with `$NAME` for values from the environment.
    pub(crate) fn shown_config(&self) -> Value {
        let mut config = self.merged_config();
        self.merged_sources().for_each(|value| value.insert_placeholder(&mut config));
        config
    }

    /// Returns the places of the config that has the setting that `keys` lead to. A missing setting can be added to
    /// this use or to the extension: it belongs to this use if that has a config.
    pub(crate) fn places_of(&self, keys: &[String]) -> &ConfigPlaces {
        let own = keys.first().is_none_or(|key| self.config.contains_key(key));
        match (own && self.places.written, self.target.places.written) {
            (false, true) => &self.target.places,
            _ => &self.places,
        }
    }

    /// Returns the [`merged_config`](Self::merged_config) with the values from the environment, or an error for each
    /// missing value.
    pub(crate) fn fetch_config(&self) -> Result<FetchedConfig, Diagnostics> {
        FetchedConfig::fetch(self.merged_config(), self.merged_sources())
    }
}

/// The extensions that an agent lists, with the places for the errors of checks.
#[derive(Clone, Default)]
pub(crate) struct AgentUses<'a> {
    /// The name of the agent.
    pub(crate) name: Option<String>,
    pub(crate) uses: Vec<ExtensionUse<'a>>,
    /// Whether all items of the list could be read. If not, an extension that seems to be missing may be one of them.
    pub(crate) complete: bool,
}

/// One extension that an agent lists.
#[derive(Clone)]
pub(crate) struct ExtensionUse<'a> {
    pub(crate) used: ExtensionRef,
    /// The item of the list.
    pub(crate) item: Cursor<'a>,
    /// The `ref` in it.
    pub(crate) reference: Cursor<'a>,
    /// The `onError` in it.
    pub(crate) on_error: Option<Cursor<'a>>,
    /// The `covers` in it.
    pub(crate) covers: Option<Cursor<'a>>,
}

impl Resource for AgentResource {
    const KIND: Kind = Kind::Agent;

    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl AgentResource {
    pub(crate) fn read<'a>(
        document: &Document<'a>,
        names: &Names<'_>,
        models: &[Arc<ModelResource>],
        extensions: &[Arc<ExtensionResource>],
        to_check: &mut ToCheck<'a>,
    ) -> Option<Self> {
        let spec = MapReader::new(document.spec.as_ref()?, &AGENT)?;
        let model = spec.require("model").and_then(|model| names.resolve(&model, models));
        let choice = spec.get("models").map(|list| read_models(&list, names, models));
        let system = spec.get("system").map(|system| system.text().map(str::to_owned));
        let listed = spec.get("extensions").map(|list| AgentUses::read(&list, names, extensions, &USE));
        let name = document.name().map(str::to_owned);
        let listed = AgentUses { name, ..listed.unwrap_or_else(AgentUses::none) };
        let used = listed.uses.iter().map(|each| each.used.clone()).collect();
        to_check.agents.push(listed);
        let policy = spec.get("policy").map_or_else(|| Some(Policy::default()), |policy| Policy::read(&policy));
        let answer = spec.get("answer").map(|answer| read_answer(&answer));
        Some(Self {
            name: AgentName::new(document.name()?).ok()?,
            model: model?,
            models: choice.map_or(Some(None), |choice| choice.map(Some))?,
            system: system.unwrap_or_default(),
            extensions: used,
            policy: policy?,
            answer: answer.map_or(Some(None), |answer| answer.map(Some))?,
        })
    }
}

fn read_answer(cursor: &Cursor<'_>) -> Option<AnswerFormat> {
    let answer = MapReader::new(cursor, &ANSWER)?;
    let schema = answer.require("schema")?;
    let format = AnswerFormat::new(Value::Object(schema.object()?));
    if let Err(error) = Schema::compile(&format.schema) {
        schema.error(error.code().clone(), error.message(), "write a JSON Schema");
        return None;
    }
    match answer.get("atMost") {
        None => Some(format),
        Some(at_most) => Some(format.at_most(at_most.whole(0)?)),
    }
}

/// The models of the list; `None` if one of them cannot be resolved.
fn read_models(list: &Cursor<'_>, names: &Names<'_>, models: &[Arc<ModelResource>]) -> Option<Vec<Arc<ModelResource>>> {
    let items = list.items()?;
    let mut found: Vec<Arc<ModelResource>> = Vec::new();
    for item in &items {
        let Some(model) = names.resolve(item, models) else { continue };
        if found.iter().any(|earlier| earlier.name == model.name) {
            let message = format!("the model `{}` is listed twice", model.name);
            item.error(ErrorCode::CONFIG_SCHEMA, message, "keep one of the two");
            continue;
        }
        found.push(model);
    }
    (found.len() == items.len()).then_some(found)
}

impl<'a> AgentUses<'a> {
    /// The extensions of a list that is not written.
    pub(super) fn none() -> Self {
        Self { name: None, uses: Vec::new(), complete: true }
    }

    /// Reads a list, whose items have this schema.
    pub(super) fn read(
        list: &Cursor<'a>,
        names: &Names<'_>,
        extensions: &[Arc<ExtensionResource>],
        schema: &'static MapSchema,
    ) -> Self {
        let mut uses: Vec<ExtensionUse<'a>> = Vec::new();
        for item in names.list::<ExtensionResource>(list, schema) {
            let Some(read) = read_use(&item, names, extensions) else { continue };
            // An extension is identified by its name, so an agent cannot have it twice.
            if uses.iter().any(|earlier| earlier.used.target.name == read.used.target.name) {
                let message = format!("the extension `{}` is listed twice", read.used.target.name);
                read.item.error(ErrorCode::CONFIG_SCHEMA, message, "keep one of the two");
            }
            uses.push(read);
        }
        let complete = matches!(list.value(), yaml::Value::Sequence(items) if items.len() == uses.len());
        Self { name: None, uses, complete }
    }

    /// Adds the extensions of the swarm.
    pub(super) fn add_in_front(&mut self, of_swarm: &Self) {
        for twice in &self.uses {
            let name = &twice.used.target.name;
            if of_swarm.uses.iter().any(|each| each.used.target.name == *name) {
                let message = format!("the swarm has the extension `{name}` for all of its agents");
                twice.item.error(ErrorCode::CONFIG_SCHEMA, message, "remove it here, or there");
            }
        }
        self.uses.splice(0..0, of_swarm.uses.iter().cloned());
        self.complete &= of_swarm.complete;
    }
}

fn read_use<'a>(
    item: &MapReader<'a>,
    names: &Names<'_>,
    extensions: &[Arc<ExtensionResource>],
) -> Option<ExtensionUse<'a>> {
    let reference = item.require("ref");
    let target = reference.as_ref().and_then(|reference| names.resolve(reference, extensions));
    let config = item.get("config").map_or_else(|| Some(Map::new()), |config| config.object());
    let on_error = item.get("onError");
    let chosen = match on_error.as_ref().map(|on_error| on_error.choice(&["abort", "skip"])) {
        None | Some(Some("abort")) => Some(OnError::Abort),
        Some(Some(_)) => Some(OnError::Skip),
        Some(None) => None,
    };
    let covers = item.get("covers");
    let covered = match covers.as_ref().map(|covers| covers.choice(&["agent", "reachable"])) {
        None | Some(Some("agent")) => Some(Covers::Agent),
        Some(Some(_)) => Some(Covers::Reachable),
        Some(None) => None,
    };
    let sources = item.get("config").map(|config| read_sources(&config)).unwrap_or_default();
    let places = ConfigPlaces::read(item.cursor());
    let used = ExtensionRef { target: target?, config: config?, sources, on_error: chosen?, covers: covered?, places };
    Some(ExtensionUse { used, item: item.cursor().clone(), reference: reference?, on_error, covers })
}
