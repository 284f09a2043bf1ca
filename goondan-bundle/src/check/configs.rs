//! Checks that the config of each extension fits the schema that the extension declares.

use std::collections::BTreeSet;

use goondan_core::ErrorCode;
use goondan_runtime::schema::Violation;
use serde_json::Value;

use super::extensions::Extensions;
use crate::kind::Kind;
use crate::read::{Cursor, Names, SourcedValue};
use crate::resource::{ExtensionResource, ExtensionUse, Resources, ToCheck};

/// Reports the violations of each use of an extension, and those of extensions without uses.
pub(super) fn check(to_check: &ToCheck<'_>, resources: &Resources, names: &Names<'_>, extensions: &Extensions<'_>) {
    let spec = |extension: &ExtensionResource| {
        let document = names.document(Kind::Extension, extension.name.as_str());
        document.and_then(|document| document.spec.as_ref())
    };
    let mut used = BTreeSet::new();
    for each in to_check.agents.iter().flat_map(|agent| &agent.uses) {
        used.insert(each.used.target.name.as_str());
        check_use(each, spec(&each.used.target), extensions);
    }
    for extension in resources.extensions.iter().filter(|extension| !used.contains(extension.name.as_str())) {
        if let Some(spec) = spec(extension) {
            check_unused(extension, spec, extensions);
        }
    }
}

/// Reports the violations of the settings with which an agent uses an extension. `spec` is the spec of the extension.
fn check_use(each: &ExtensionUse<'_>, spec: Option<&Cursor<'_>>, extensions: &Extensions<'_>) {
    let ExtensionUse { used, item, .. } = each;
    let (own, base) = (item.follow(["config"]), spec.and_then(|spec| spec.follow(["config"])));
    for violation in violations(&used.target, used.merged_config(), used.merged_sources(), extensions) {
        let keys = violation.keys();
        let of_agent = keys.first().is_some_and(|key| used.config.contains_key(key));
        // A missing setting can be added to the agent or to the extension. It is reported at the agent if that has a
        // config.
        let config = if of_agent || keys.is_empty() { own.as_ref().or(base.as_ref()) } else { base.as_ref() };
        report(config.unwrap_or(item), &keys, &violation, &used.target);
    }
}

fn check_unused(extension: &ExtensionResource, spec: &Cursor<'_>, extensions: &Extensions<'_>) {
    let config = spec.follow(["config"]);
    for violation in violations(extension, extension.config.clone(), extension.sources.iter(), extensions) {
        report(config.as_ref().unwrap_or(spec), &violation.keys(), &violation, extension);
    }
}

/// The violations that `config` has for all values of its `sources`.
fn violations<'s>(
    extension: &ExtensionResource,
    mut config: Value,
    sources: impl Iterator<Item = &'s SourcedValue>,
    extensions: &Extensions<'_>,
) -> Vec<Violation> {
    let sources: Vec<_> = sources.collect();
    sources.iter().for_each(|value| value.insert_placeholder(&mut config));
    let mut violations = extensions.violations(extension, config);
    violations.retain(|violation| !sources.iter().any(|value| value.decides(violation)));
    violations
}

fn report(config: &Cursor<'_>, keys: &[String], violation: &Violation, extension: &ExtensionResource) {
    let setting = config.follow(keys.iter().map(String::as_str));
    let (message, remedy) = describe(violation, extension);
    // Several agents can use one extension, each with the same violation of its settings.
    setting.as_ref().unwrap_or(config).error_once(ErrorCode::EXT_CONFIG, message, remedy);
}

/// The message and the remedy for a violation of the extension's schema.
pub(crate) fn describe(violation: &Violation, extension: &ExtensionResource) -> (String, String) {
    let mut setting = String::new();
    for key in violation.keys() {
        match key.parse::<usize>() {
            Ok(index) => setting.push_str(&format!("[{index}]")),
            Err(_) if setting.is_empty() => setting.push_str(&key),
            Err(_) => setting.push_str(&format!(".{key}")),
        }
    }
    let setting = if setting.is_empty() { setting } else { format!("`{setting}`: ") };
    let message = format!(
        "the config of the extension `{}` does not fit its schema: {setting}{}",
        extension.name, violation.message
    );
    let remedy = violation.meant.as_ref().map_or_else(
        || "change the config; the documentation of the extension says what it takes".to_owned(),
        |meant| format!("write `{meant}`"),
    );
    (message, remedy)
}
