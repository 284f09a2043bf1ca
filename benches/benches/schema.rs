//! The cost of validating the arguments of a tool call, and of compiling a schema, beside a bare validator of
//! jsonschema.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::hint::black_box;

use goondan::{Value, json};
use goondan_benches::{head, row, side_by_side, time};
use goondan_runtime::schema::Schema;

const CALLS: u32 = 1_000;

fn main() {
    head("The arguments of a tool call", "jsonschema");
    let fits = json!({ "command": "ls -l", "timeout": 5, "env": [{ "name": "HOME", "value": "/" }] });
    let wrong = json!({ "command": 3, "env": [{ "name": "HOME" }] });
    let schema = schema();
    measure("arguments that fit", &schema, &fits);
    measure("arguments with two faults", &schema, &wrong);
    let bare = || time(|| drop(black_box(jsonschema::validator_for(&schema).expect("a schema"))));
    let checked = || time(|| drop(black_box(Schema::compile(&schema).expect("a schema"))));
    row("to compile a schema", 1, side_by_side(200, checked, bare));
    let derived = || time(|| drop(black_box(Schema::derived(&schema).expect("a schema"))));
    row("to compile one that was derived", 1, side_by_side(200, derived, bare));
}

/// Returns the schema of a tool that runs commands, as it would be derived from a type.
fn schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Run",
        "type": "object",
        "properties": {
            "command": { "type": "string", "description": "What to run." },
            "timeout": { "type": ["integer", "null"], "format": "uint32", "minimum": 0, "description": "In seconds." },
            "env": { "type": "array", "items": { "$ref": "#/$defs/Variable" } },
        },
        "required": ["command"],
        "additionalProperties": false,
        "$defs": { "Variable": {
            "type": "object",
            "properties": { "name": { "type": "string" }, "value": { "type": "string" } },
            "required": ["name", "value"],
        } },
    })
}

fn measure(what: &str, schema: &Value, arguments: &Value) {
    let ours = Schema::compile(schema).expect("a schema");
    let bare = jsonschema::validator_for(schema).expect("a schema");
    let check = || time(|| (0..CALLS).for_each(|_| drop(black_box(ours.violations(arguments)))));
    // The two texts that goondan reports of a violation, and no more.
    let texts = || bare.iter_errors(arguments).map(|error| (error.instance_path().to_string(), error.to_string()));
    let check_bare = || time(|| (0..CALLS).for_each(|_| drop(black_box(texts().collect::<Vec<_>>()))));
    row(what, CALLS, side_by_side(60, check, check_bare));
}
