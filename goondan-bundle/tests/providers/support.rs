//! Bundles with a model.

use std::fs;

use goondan_bundle::{Bundle, Diagnostic, Severity};
use tempfile::TempDir;

pub(crate) fn model(name: &str, spec: &str) -> String {
    format!("apiVersion: goondan.ai/v1\nkind: Model\nmetadata: {{ name: {name} }}\nspec: {spec}\n---\n")
}

pub(crate) const AGENT: &str = "apiVersion: goondan.ai/v1
kind: Agent
metadata: { name: main }
spec:
  model: Model/main
";

#[cfg(test)]
pub(crate) fn bundle_of(text: &str) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("goondan.yaml"), text).unwrap();
    fs::write(directory.path().join("script.yaml"), "- say: hello\n").unwrap();
    directory
}

/// The error in a model with this spec, which begins at 4:7: its code, its place, its message and its remedy.
#[track_caller]
#[cfg(test)]
pub(crate) fn error(spec: &str) -> String {
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let errors = Bundle::check(directory.path()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    let Diagnostic { code, place, path, message, suggestion, .. } = errors.first();
    format!("{} {} {path}: {message} -> {suggestion}", code.as_ref().unwrap(), place.unwrap())
}

/// The warnings about a model with this spec.
#[cfg(test)]
pub(crate) fn warnings(spec: &str) -> Vec<String> {
    let directory = bundle_of(&(model("main", spec) + AGENT));
    let bundle = Bundle::load(directory.path()).unwrap();
    let warnings = bundle.warnings().iter();
    warnings
        .map(|warning| {
            assert_eq!(warning.severity, Severity::Warning);
            format!("{} {}: {}", warning.place.unwrap(), warning.path, warning.message)
        })
        .collect()
}
