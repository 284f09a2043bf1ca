//! Settings of known extensions: violations of their schemas are reported at the setting.

use goondan_bundle::{Bundle, KnownExtension};
use goondan_covers::covers;
use serde_json::{Value, json};

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, code};

fn known() -> [KnownExtension<'static>; 1] {
    [window(schema())]
}

fn window(config_schema: Value) -> KnownExtension<'static> {
    KnownExtension::new("message-window", config_schema)
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": { "maxMessages": { "type": "integer", "minimum": 1 }, "nested": {
            "type": "object", "additionalProperties": { "type": "integer" }
        } },
        "required": ["maxMessages"],
    })
}

/// The errors of a bundle with an extension with `config`, which two agents use as `used`.
#[cfg(test)]
#[track_caller]
fn errors(config: &str, used: &str) -> Vec<String> {
    let extension = EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", config);
    let agent = format!("{AGENT}  extensions: [ {used} ]\n");
    let directory = bundle_of(&[MODEL, &extension, &agent, &agent.replace("name: main", "name: other")]);
    let Err(errors) = Bundle::check_with(directory.path(), &known()) else { return Vec::new() };
    let reported =
        |error: &goondan_bundle::Diagnostic| format!("{} {} {}", error.place.unwrap(), error.path, code(error));
    errors.iter().map(reported).collect()
}

const USE: &str = "{ ref: Extension/message-window }";

#[test]
fn config_that_fits_is_no_error() {
    assert_eq!(errors("{ maxMessages: 40 }", USE), [""; 0]);
    assert_eq!(errors("{}", "{ ref: Extension/message-window, config: { maxMessages: 3 } }"), [""; 0]);
    assert_eq!(errors("{ maxMessages: 0 }", "{ ref: Extension/message-window, config: { maxMessages: 3 } }"), [""; 0]);
}

#[test]
#[covers("RULE-02", "SCHEMA-01")]
fn config_that_does_not_fit_is_reported_at_the_setting() {
    assert_eq!(
        errors("{ maxMessages: 0, nested: { a: [x] } }", USE),
        ["11:26 spec.config.maxMessages E_EXT_CONFIG", "11:42 spec.config.nested.a E_EXT_CONFIG"],
        "once, though two agents use it"
    );
    assert_eq!(
        errors("{ maxMessages: 1 }", "{ ref: Extension/message-window, config: { maxMessages: x } }"),
        [
            "18:73 spec.extensions[0].config.maxMessages E_EXT_CONFIG",
            "25:73 spec.extensions[0].config.maxMessages E_EXT_CONFIG"
        ]
    );
    assert_eq!(errors("{}", USE), ["11:11 spec.config E_EXT_CONFIG"]);
    let twice = "{ ref: Extension/message-window, config: {} }";
    let at_the_agents =
        ["18:58 spec.extensions[0].config E_EXT_CONFIG", "25:58 spec.extensions[0].config E_EXT_CONFIG"];
    assert_eq!(errors("{}", twice), at_the_agents);
}

#[test]
fn config_of_an_unused_extension_is_checked_too() {
    let directory = bundle_of(&[MODEL, &EXTENSION.replace("40", "many"), AGENT]);
    let errors = Bundle::check_with(directory.path(), &known()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    assert!(errors.first().message.contains("\"many\" is not of type \"integer\""), "{errors}");
    assert!(Bundle::check(directory.path()).is_ok(), "where no extension is known, none is checked");
}

#[test]
fn entry_that_the_program_does_not_have() {
    let directory = bundle_of(&[MODEL, &EXTENSION.replace("linked:message-window", "linked:mesage-window"), AGENT]);
    let errors = Bundle::check_with(directory.path(), &known()).unwrap_err();
    assert_eq!(errors.len(), 1, "{errors}");
    let error = errors.first();
    assert_eq!((code(error), error.path.as_str()), ("E_EXT_LOAD", "spec.entry"));
    assert_eq!(error.suggestion, "write `linked:message-window`");
}
