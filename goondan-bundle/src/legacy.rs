//! Owns what is known of the old bundle format: the fields that are gone, and what is written in their place.

/// The `apiVersion` of the old format.
pub(crate) const API_VERSION: &str = "agents.example.io/v1alpha1";

/// Fields of the old format, by path, with the new form.
const FIELDS: &[(&str, &str)] = &[
    // LOAD-07: there is no `spec.runtime`.
    (
        "spec.runtime",
        "remove it: `spec.entry` alone says how an extension is loaded, such as `entry: \"linked:<name>\"`",
    ),
    ("spec.modelConfig", "name the model with `model: \"Model/<name>\"` instead"),
    ("spec.prompts", "write the system prompt as text in `system` instead"),
    ("spec.entrypoint", "name the first agent with `entryAgent: \"Agent/<name>\"` instead"),
];

/// The new form of a field, if it is one of the old format.
pub(crate) fn new_form(path: &str) -> Option<&'static str> {
    FIELDS.iter().find(|(old, _)| *old == path).map(|(_, remedy)| *remedy)
}
