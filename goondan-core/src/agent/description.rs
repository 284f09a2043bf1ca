//! Owns what an agent is made of: everything that a reload can exchange.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::Policy;
use super::builder::ExtensionSpec;
use super::registration::Registered;
use crate::model::Model;
use crate::peers::Router;
use crate::tool::SharedTools;

/// What an agent is made of.
pub(super) struct Description {
    pub(super) model: Arc<dyn Model>,
    /// The models that a step middleware may ask for, by name.
    pub(super) models: BTreeMap<String, Arc<dyn Model>>,
    pub(super) system: Option<String>,
    pub(super) extensions: Vec<Arc<ExtensionSpec>>,
    pub(super) policy: Policy,
    pub(super) tools: SharedTools,
    /// What the metadata of every turn starts with (CTX-10).
    pub(super) hints: Map<String, Value>,
    pub(super) router: Option<Arc<dyn Router>>,
}

/// What one instance runs turns with: a description, and what its extensions registered. A turn has one to its end.
pub(super) struct Generation {
    pub(super) agent: Arc<Description>,
    pub(super) registered: Registered,
}
