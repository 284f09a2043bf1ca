//! Owns the kind `Agent`: which model it asks, with which instructions, and what wraps it.

use std::sync::Arc;

use goondan_core::{AgentName, ErrorCode};
use serde_json::{Map, Value};

use super::{ExtensionResource, ModelResource, Policy};
use crate::configs::Configs;
use crate::document::{Document, Kind};
use crate::field::Field;
use crate::reference::{Names, Resource, items};
use crate::shape::{AGENT, USE};
use crate::table::Table;

/// An agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AgentResource {
    /// `metadata.name`.
    pub name: AgentName,
    /// The model that it asks.
    pub model: Arc<ModelResource>,
    /// The system prompt: a field of the model's request, never a message (D-19).
    pub system: Option<String>,
    /// What wraps it, in the order in which it is loaded (LOAD-01).
    pub extensions: Vec<ExtensionRef>,
    /// Limits of its own; they go before those of the swarm (D-22).
    pub policy: Policy,
}

/// The use of an extension by an agent.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ExtensionRef {
    /// The extension.
    pub target: Arc<ExtensionResource>,
    /// The settings of this use, which go before those of the extension key by key (F-REF).
    pub config: Map<String, Value>,
}

impl ExtensionRef {
    /// The extension's settings with those of this use laid over them, key by key (F-REF).
    pub fn merged_config(&self) -> Value {
        let mut merged = self.target.config.as_object().cloned().unwrap_or_default();
        merged.extend(self.config.clone());
        Value::Object(merged)
    }
}

impl Resource for AgentResource {
    const KIND: Kind = Kind::Agent;

    fn name(&self) -> &str {
        self.name.as_str()
    }
}

impl AgentResource {
    pub(crate) fn read(
        document: &Document<'_>,
        names: &Names<'_>,
        models: &[Arc<ModelResource>],
        extensions: &[Arc<ExtensionResource>],
        configs: &Configs<'_>,
    ) -> Option<Self> {
        let spec = document.spec.as_ref()?.table(&AGENT)?;
        let model = spec.need("model").and_then(|field| names.resolve(&field, models));
        let system = spec.get("system").map(|field| field.text().map(str::to_owned));
        let uses = spec.get("extensions").map(|list| read_uses(&list, names, extensions, configs));
        let policy = spec.get("policy").map_or_else(|| Some(Policy::default()), |field| Policy::read(&field));
        Some(Self {
            name: AgentName::new(document.name()?).ok()?,
            model: model?,
            system: system.unwrap_or_default(),
            extensions: uses.unwrap_or_default(),
            policy: policy?,
        })
    }
}

fn read_uses(
    list: &Field<'_>,
    names: &Names<'_>,
    read: &[Arc<ExtensionResource>],
    configs: &Configs<'_>,
) -> Vec<ExtensionRef> {
    let mut uses: Vec<ExtensionRef> = Vec::new();
    for item in items(list, &USE) {
        let Some(used) = read_use(&item, names, read) else { continue };
        let declared = names.document(Kind::Extension, used.target.name.as_str());
        configs.check_use(&used, &item.field, declared.and_then(|document| document.spec.as_ref()));
        // The name of an extension is its identity, so an agent cannot hold it twice.
        if uses.iter().any(|earlier| earlier.target.name == used.target.name) {
            let message = format!("the extension `{}` is listed twice", used.target.name);
            item.field.refuse(ErrorCode::CONFIG_SCHEMA, message, "keep one of the two");
        }
        uses.push(used);
    }
    uses
}

fn read_use(item: &Table<'_>, names: &Names<'_>, read: &[Arc<ExtensionResource>]) -> Option<ExtensionRef> {
    let target = item.need("ref").and_then(|field| names.resolve(&field, read));
    let config = item.get("config").map_or_else(|| Some(Map::new()), |field| field.object());
    if let Some(field) = item.get("onError")
        && field.word(&["abort", "skip"]) == Some("skip")
    {
        field.refuse(
            ErrorCode::CONFIG_SCHEMA,
            format!("{} is `skip`, which this version does not offer yet: expected `abort`", field.name()),
            "write `onError: abort`, or remove it: a failure of the extension ends the turn",
        );
    }
    Some(ExtensionRef { target: target?, config: config? })
}
