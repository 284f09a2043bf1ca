//! The members of a request beside its messages.

use goondan_core::{ModelOptions, Result};
use serde::Serialize;
use serde_json::{Map, Value};

use super::refuse_option;

/// The small members of a request's body, into which `options.provider` is merged last. A body flattens them beside its
/// messages and tools:
///
/// ```text
/// #[derive(Serialize)]
/// struct Body<'a> {
///     #[serde(flatten)]
///     settings: Settings,
///     messages: Vec<Message<'a>>,
///     #[serde(skip_serializing_if = "Vec::is_empty")]
///     tools: Vec<Tool<'a>>,
/// }
/// ```
#[derive(Clone, Debug, Default, Serialize)]
#[serde(transparent)]
pub struct Settings(Map<String, Value>);

impl Settings {
    /// Sets a member.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name.to_owned(), value.into());
    }

    /// Sets a member of an object, such as `format` of `output_config`.
    pub fn set_in(&mut self, object: &str, name: &str, value: impl Into<Value>) {
        let slot = self.0.entry(object).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(members) = slot {
            members.insert(name.to_owned(), value.into());
        }
    }

    /// Merges `options.provider`: objects member by member, everything else as it is. Returns its tools, which the body
    /// adds to those of the step: they run at the provider.
    ///
    /// # Errors
    /// `E_MODEL_OPTION` if it has one of the members `own`, which the wire writes from the conversation.
    pub fn merge(&mut self, api: &str, options: &ModelOptions, own: &[&str]) -> Result<Vec<Value>> {
        let mut tools = Vec::new();
        for (name, value) in &options.provider {
            if own.contains(&name.as_str()) {
                let why = "this member is made from the conversation, and cannot be replaced";
                return Err(refuse_option(api, &format!("provider/{name}"), why));
            }
            match value {
                Value::Array(items) if name == "tools" => tools.clone_from(items),
                value => merge(self.0.entry(name).or_insert(Value::Null), value),
            }
        }
        Ok(tools)
    }
}

/// Merges objects, and replaces everything else.
fn merge(slot: &mut Value, value: &Value) {
    match (slot, value) {
        (Value::Object(slot), Value::Object(members)) => {
            for (name, value) in members {
                merge(slot.entry(name).or_insert(Value::Null), value);
            }
        }
        (slot, value) => slot.clone_from(value),
    }
}
