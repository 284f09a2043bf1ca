//! The description of the routes, and answers that it has.

use std::sync::LazyLock;

use goondan::model::ScriptedModel;
use goondan::{Agent, Value, json};
use goondan_serve::Service;
use jsonschema::Validator;

pub(crate) static DOCUMENT: LazyLock<Value> = LazyLock::new(|| {
    let agent = Agent::builder("assistant").model(ScriptedModel::new([])).build().unwrap();
    Service::new(agent).openapi()
});

/// Returns the path of the description that an address has, with what it has there.
pub(crate) fn path_of(url: &str) -> Option<(&'static str, &'static Value)> {
    let parts: Vec<_> = url.split('/').collect();
    let fits = |path: &&String| {
        let names: Vec<_> = path.split('/').collect();
        names.len() == parts.len() && names.iter().zip(&parts).all(|(name, part)| name.starts_with('{') || name == part)
    };
    let paths = DOCUMENT["paths"].as_object().unwrap();
    let found = paths.keys().filter(fits).max_by_key(|path| path.matches('/').count() * 10 - path.matches('{').count());
    found.map(|path| (path.as_str(), &paths[path]))
}

/// Fails if an answer is none of those that an address has in the description.
pub(crate) fn check(url: &str, status: u16, kind: &str, body: &Value) {
    let Some((path, operations)) = path_of(url) else { return assert_eq!(status, 404, "{url}") };
    if status == 405 {
        return;
    }
    let operations = operations.as_object().unwrap();
    let with_status: Vec<_> =
        operations.values().filter_map(|operation| operation["responses"].get(status.to_string())).collect();
    assert!(!with_status.is_empty(), "{path} does not answer {status}: {body}");
    let fits = |response: &&Value| {
        let response = response["$ref"].as_str().map_or(*response, |at| DOCUMENT.pointer(&at[1..]).unwrap());
        match response["content"].get(kind) {
            Some(content) => validator(&content["schema"]).is_valid(body),
            None => response.get("content").is_none() && body == "",
        }
    };
    assert!(with_status.iter().any(fits), "{path} does not answer {status} with this {kind}: {body}");
}

/// Returns a validator of a schema of the description.
fn validator(schema: &Value) -> Validator {
    let mut whole = json!({ "components": DOCUMENT["components"] });
    whole.as_object_mut().unwrap().extend(schema.as_object().cloned().unwrap_or_default());
    jsonschema::validator_for(&whole).unwrap()
}
