//! What errors advise: each says what to write instead, in a form that is right.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;

use goondan_bundle::{Bundle, Diagnostic, Diagnostics, KnownExtension};
use goondan_core::Result;
use serde_json::json;
use tempfile::TempDir;

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, code};

fn check(directory: &TempDir) -> Result<Bundle, Diagnostics> {
    let config_schema = json!({
        "type": "object",
        "properties": { "maxMessages": { "type": "integer" }, "nested": { "$ref": "#/$defs/nested" } },
        "additionalProperties": false,
        "$defs": { "nested": {
            "type": "object",
            "properties": { "colour": { "type": "string" } },
            "additionalProperties": false,
        } },
    });
    let known = KnownExtension::new("message-window", config_schema);
    Bundle::check_with(directory.path(), &[known])
}

#[track_caller]
fn only_error(directory: &TempDir) -> Diagnostic {
    let errors = check(directory).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    errors.first().clone()
}

/// A bundle with an extension with this entry, and with these files.
fn with_entry(entry: &str, files: &[(&str, &str)]) -> TempDir {
    let extension = EXTENSION.replace("linked:message-window", entry).replace("message-window", "weather");
    let agent = format!("{AGENT}  extensions: [ {{ ref: Extension/weather }} ]\n");
    let directory = bundle_of(&[MODEL, &extension, &agent]);
    for (path, content) in files {
        let file = directory.path().join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
    directory
}

#[test]
fn a_missing_library_names_the_extension_and_what_to_write() {
    let library = |name: &str| format!("plugins/{DLL_PREFIX}{name}{DLL_SUFFIX}");
    let (rate_limit, weather) = (library("rate_limit"), library("weather"));
    let manifest = "[package]\nname = \"weather\"\n";
    let with_cdylib = "[package]\nname = \"weather\"\n[lib]\ncrate-type = [\"cdylib\"]\n";
    for (entry, files, advice) in [
        ("./plugins/rate-limit", vec![(rate_limit.as_str(), "")], "write `./plugins/rate_limit`; cargo writes `_`"),
        ("./plugins/libweather", vec![(weather.as_str(), "")], "write `./plugins/weather`"),
        ("./plugins/wether", vec![(weather.as_str(), "")], "write `./plugins/weather`"),
        ("./plugins/weather", vec![], "build it with `cargo build --release`"),
        ("./weather", vec![("weather/Cargo.toml", manifest)], "add `crate-type = [\"rlib\", \"cdylib\"]` to `[lib]`"),
        ("./weather", vec![("weather/Cargo.toml", with_cdylib)], "crate: run `cargo build --release` there"),
        (
            "./target/release/weather",
            vec![("target/release/libweather.rlib", "")],
            "the crate makes no such library yet: add `crate-type",
        ),
    ] {
        let error = only_error(&with_entry(entry, &files));
        assert_eq!((code(&error), error.path.as_str()), ("E_EXT_LOAD", "spec.entry"), "{error}");
        assert!(error.message.contains("of the extension `weather` names a library"), "{error}");
        assert!(error.suggestion.contains(advice), "{advice}: {error}");
    }
    let error = only_error(&with_entry("libweather", &[]));
    assert!(
        error.suggestion.contains("`linked:weather`, or a path with a slash, such as `./plugins/weather`"),
        "{error}"
    );
}

#[test]
fn a_reference_of_a_wrong_form_is_answered_with_the_right_one() {
    let extension = EXTENSION.replace("name: message-window", "name: weather").replace("{ a: 1, b: 2 }", "{}");
    for (listed, advice) in [
        ("{ ref: weather }", "write `Extension/weather`"),
        ("{ ref: wether }", "write `Extension/weather`"),
        ("{ ref: extension/weather }", "write `Extension/weather`"),
        ("{ ref: Plugin/weather }", "write `Extension/weather`"),
        ("{ ref: Model/weather }", "write `Extension/weather`"),
        ("{ ref: { kind: extension, name: weather } }", "write `Extension`"),
        ("weather", "write `{ ref: \"Extension/weather\" }`"),
    ] {
        let agent = format!("{AGENT}  extensions: [ {listed} ]\n");
        let error = only_error(&bundle_of(&[MODEL, &extension, &agent]));
        assert_eq!((code(&error), error.suggestion.as_str()), ("E_CONFIG_INVALID_REF", advice), "{listed}: {error}");
    }
    let error = only_error(&bundle_of(&[MODEL, &AGENT.replace("Model/main", "main")]));
    assert_eq!(error.suggestion, "write `Model/main`");
}

#[test]
fn a_wrong_or_unknown_member_of_a_config_is_named() {
    let agent = format!("{AGENT}  extensions: [ {{ ref: Extension/message-window }} ]\n");
    for (config, path, message, advice) in [
        ("{ maxMessages: many }", "spec.config.maxMessages", "`maxMessages`: \"many\" is not of type", "change the"),
        ("{ maxMesages: 5 }", "spec.config.maxMesages", "did you mean `maxMessages`?", "write `maxMessages`"),
        ("{ nested: { color: a } }", "spec.config.nested.color", "`nested.color`: unknown member", "write `colour`"),
        ("{ nested: { q: a } }", "spec.config.nested.q", "unknown member: expected `colour`", "change the config"),
    ] {
        let extension = EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", config);
        let error = only_error(&bundle_of(&[MODEL, &extension, &agent]));
        assert_eq!((code(&error), error.path.as_str()), ("E_EXT_CONFIG", path), "{error}");
        assert!(error.message.contains(message) && error.suggestion.starts_with(advice), "{error}");
    }
    let unknown = "{ maxMesages: { valueFrom: { env: NO_SUCH_VARIABLE } } }";
    let extension = EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", unknown);
    let error = only_error(&bundle_of(&[MODEL, &extension, &agent]));
    assert_eq!(error.suggestion, "write `maxMessages`", "also when its value comes from elsewhere");
}

#[test]
fn a_document_of_an_unknown_kind_hides_no_broken_reference() {
    let unknown = MODEL.replace("kind: Model", "kind: Modle").replace("name: main", "name: other");
    let agent = |name: &str, model: &str| AGENT.replace("name: main", name).replace("Model/main", model);
    let directory = bundle_of(&[
        &unknown,
        MODEL,
        &agent("name: one", "Model/missing"),
        // It may mean the document of the unknown kind.
        &agent("name: two", "Model/other"),
    ]);
    let errors = Bundle::check(directory.path()).unwrap_err();
    let reported: Vec<_> = errors.iter().map(|error| (code(error), error.place.unwrap().line)).collect();
    assert_eq!(reported, [("E_CONFIG_UNKNOWN_KIND", 2), ("E_CONFIG_REF_NOT_FOUND", 15)], "{errors}");
}
