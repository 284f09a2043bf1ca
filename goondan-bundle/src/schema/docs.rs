//! Checks that the tables of `docs/bundles.md` agree with the schemas, or writes them.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use goondan_runtime::{BundlePath, linked_providers};
use serde_json::Value;

use super::{DOCUMENT, FieldSchema, FieldType, MapSchema};
use crate::kind::Kind;

const DOCUMENT_FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/bundles.md");

#[test]
fn tables_of_the_documentation_are_those_of_the_reader() {
    let written = fs::read_to_string(Path::new(DOCUMENT_FILE)).unwrap();
    let mut right = replace(&written, "Document", &table(&DOCUMENT, ""));
    for kind in Kind::ALL {
        right = replace(&right, kind.as_str(), &table(kind.spec(), "spec."));
    }
    for provider in linked_providers() {
        right = replace(&right, provider.name(), &settings(&provider.config_schema().unwrap()));
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(DOCUMENT_FILE, right).unwrap();
        return;
    }
    assert_eq!(written, right, "docs/bundles.md is behind: BLESS=1 cargo test -p goondan-bundle writes it");
}

/// Returns `document` with `table` between the marks of `name`.
fn replace(document: &str, name: &str, table: &str) -> String {
    let (begin, end) = (format!("<!-- fields of {name} -->\n"), "<!-- end -->".to_owned());
    let (before, rest) = document.split_once(&begin).unwrap_or_else(|| panic!("docs/bundles.md has no `{begin}`"));
    let (_, after) = rest.split_once(&end).unwrap();
    format!("{before}{begin}\n{table}\n{end}{after}")
}

fn table(schema: &MapSchema, path: &str) -> String {
    let mut table = "| Field | Takes | Meaning |\n|---|---|---|\n".to_owned();
    add_rows(&mut table, schema, path);
    table
}

/// The table of the settings of a provider, as its schema describes them.
fn settings(schema: &Value) -> String {
    let mut table = "| Field | Takes | Meaning |\n|---|---|---|\n".to_owned();
    for (name, setting) in schema["properties"].as_object().unwrap() {
        let is_path = setting.get("format").is_some_and(|format| format == BundlePath::FORMAT);
        let takes = if is_path { "a path" } else { setting["type"].as_str().unwrap_or("see there") };
        let required = schema["required"].as_array().is_some_and(|all| all.iter().any(|one| one == name));
        let required = if required { "**Required.** " } else { "" };
        let about = setting["description"].as_str().unwrap();
        writeln!(table, "| `spec.{name}` | {takes} | {required}{about} |").unwrap();
    }
    table
}

fn add_rows(table: &mut String, schema: &MapSchema, path: &str) {
    for field in schema.fields {
        let FieldSchema { name, required, about, field_type, .. } = field;
        let required = if *required { "**Required.** " } else { "" };
        writeln!(table, "| `{path}{name}` | {} | {required}{about} |", describe(field_type)).unwrap();
        match field_type {
            FieldType::Map(schema) => add_rows(table, schema, &format!("{path}{name}.")),
            FieldType::List { of, .. } => add_rows(table, of, &format!("{path}{name}[].")),
            _ => {}
        }
    }
}

fn describe(field_type: &FieldType) -> String {
    match field_type {
        FieldType::Text => "text".to_owned(),
        FieldType::NonEmptyText => "text that is not empty".to_owned(),
        FieldType::Name => "a name".to_owned(),
        FieldType::Choice(words) => words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(" or "),
        FieldType::Choices(words) => {
            let words: Vec<_> = words.iter().map(|word| format!("`{word}`")).collect();
            format!("a list of {}", words.join(", "))
        }
        FieldType::Address => "an IP address and a port".to_owned(),
        FieldType::Provider => "the name of a provider that the program has".to_owned(),
        FieldType::Kind => Kind::ALL.map(|kind| format!("`{kind}`")).join(", "),
        FieldType::Path => "a path".to_owned(),
        FieldType::Entry => "`linked:` and a name, or a path".to_owned(),
        FieldType::Digest => "64 hexadecimal digits".to_owned(),
        FieldType::Flag => "`true` or `false`".to_owned(),
        FieldType::Count => format!("a whole number up to {}", u32::MAX),
        FieldType::References(kind) => format!("a list of references to resources of the kind {kind}"),
        FieldType::Positive => format!("a whole number from 1 to {}", u32::MAX),
        FieldType::Variable => "the name of a variable".to_owned(),
        FieldType::Object => "a mapping of anything".to_owned(),
        FieldType::Labels => "a mapping of text".to_owned(),
        FieldType::Reference(kind) => format!("a reference to a resource of the kind {kind}"),
        FieldType::Map(_) | FieldType::Spec => "a mapping".to_owned(),
        FieldType::List { at_least: 0, .. } => "a list".to_owned(),
        FieldType::List { at_least, .. } => format!("a list of at least {at_least}"),
    }
}
