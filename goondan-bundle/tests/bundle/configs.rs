//! Settings of extensions that the program knows: told with the place where each is written.

use goondan_bundle::{Bundle, KnownExtension};
use goondan_covers::covers;
use serde_json::{Value, json};

use crate::fixture::{AGENT, EXTENSION, MODEL, bundle_of, code};

fn known() -> [KnownExtension<'static>; 1] {
    [window(schema())]
}

fn window(config_schema: Value) -> KnownExtension<'static> {
    KnownExtension { name: "message-window", config_schema, middlewares: &[] }
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

/// The faults of an extension with `config`, used by an agent whose use is `used`.
#[cfg(test)]
#[track_caller]
fn faults(config: &str, used: &str) -> Vec<String> {
    let extension = EXTENSION.replace("{ maxMessages: 40, nested: { a: 1, b: 2 } }", config);
    let agent = format!("{AGENT}  extensions: [ {used} ]\n");
    let directory = bundle_of(&[MODEL, &extension, &agent, &agent.replace("name: main", "name: other")]);
    let Err(faults) = Bundle::check_with(directory.path(), &known()) else { return Vec::new() };
    let told = |fault: &goondan_bundle::Diagnostic| format!("{} {} {}", fault.place.unwrap(), fault.path, code(fault));
    faults.iter().map(told).collect()
}

const USE: &str = "{ ref: Extension/message-window }";

#[test]
fn config_that_fits_is_no_fault() {
    assert_eq!(faults("{ maxMessages: 40 }", USE), [""; 0]);
    assert_eq!(faults("{}", "{ ref: Extension/message-window, config: { maxMessages: 3 } }"), [""; 0]);
    assert_eq!(faults("{ maxMessages: 0 }", "{ ref: Extension/message-window, config: { maxMessages: 3 } }"), [""; 0]);
}

#[test]
#[covers("RULE-02", "SCHEMA-01")]
fn config_that_does_not_fit_is_told_where_it_is_written() {
    assert_eq!(
        faults("{ maxMessages: 0, nested: { a: [x] } }", USE),
        ["11:26 spec.config.maxMessages E_EXT_CONFIG", "11:42 spec.config.nested.a E_EXT_CONFIG"],
        "once, though two agents use it"
    );
    assert_eq!(
        faults("{ maxMessages: 1 }", "{ ref: Extension/message-window, config: { maxMessages: x } }"),
        [
            "18:73 spec.extensions[0].config.maxMessages E_EXT_CONFIG",
            "25:73 spec.extensions[0].config.maxMessages E_EXT_CONFIG"
        ]
    );
    assert_eq!(faults("{}", USE), ["11:11 spec.config E_EXT_CONFIG"]);
    let twice = "{ ref: Extension/message-window, config: {} }";
    let at_the_agents =
        ["18:58 spec.extensions[0].config E_EXT_CONFIG", "25:58 spec.extensions[0].config E_EXT_CONFIG"];
    assert_eq!(faults("{}", twice), at_the_agents);
}

#[test]
fn config_of_an_unused_extension_is_checked_too() {
    let directory = bundle_of(&[MODEL, &EXTENSION.replace("40", "many"), AGENT]);
    let faults = Bundle::check_with(directory.path(), &known()).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults}");
    assert!(faults.first().message.contains("\"many\" is not of type \"integer\""), "{faults}");
    assert!(Bundle::check(directory.path()).is_ok(), "where no extension is known, none is checked");
}

#[test]
fn entry_that_the_program_does_not_have() {
    let directory = bundle_of(&[MODEL, &EXTENSION.replace("linked:message-window", "linked:mesage-window"), AGENT]);
    let faults = Bundle::check_with(directory.path(), &known()).unwrap_err();
    assert_eq!(faults.len(), 1, "{faults}");
    let fault = faults.first();
    assert_eq!((code(fault), fault.path.as_str()), ("E_EXT_LOAD", "spec.entry"));
    assert_eq!(fault.suggestion, "write `linked:message-window`");
}
