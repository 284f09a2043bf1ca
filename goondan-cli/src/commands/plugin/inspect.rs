//! `goondan plugin inspect`: the content of a library file, for people and for programs.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use goondan::plugin::{ExtensionSchemas, Inspected, Library, ToolRecord, ToolSchema};
use goondan::{Result, Value, json};
use serde::Serialize;

use super::child;
use super::listed::{ListedExtension, row};
use crate::args::PluginInspectArgs;
use crate::output;

/// The schemas of a library, by their source.
enum LibrarySchemas<'a> {
    Packed(&'a [ExtensionSchemas]),
    Described(Vec<ExtensionSchemas>),
    None,
}

impl LibrarySchemas<'_> {
    fn all(&self) -> Option<&[ExtensionSchemas]> {
        match self {
            Self::Packed(all) => Some(all),
            Self::Described(all) => Some(all),
            Self::None => None,
        }
    }
}

pub(crate) fn inspect(args: &PluginInspectArgs) -> Result<()> {
    let inspected = Library::inspect(&args.file)?;
    let schemas = match inspected.schemas() {
        Some(packed) => LibrarySchemas::Packed(packed),
        None if args.describe => LibrarySchemas::Described(child::schemas(&args.file, args.deadline.timeout())?),
        None => LibrarySchemas::None,
    };
    if args.json {
        output::print_data(object(&inspected, &schemas)?)
    } else {
        output::print(&page(&inspected, &schemas)?)
    }
}

fn object(inspected: &Inspected, schemas: &LibrarySchemas<'_>) -> Result<String> {
    let linked_in: Vec<_> = inspected.linked_in().iter().map(ListedExtension::from).collect();
    let extensions: Vec<_> = inspected.extensions().iter().map(ListedExtension::from).collect();
    let object = json!({
        "file": inspected.path().to_string_lossy(),
        "sha256": inspected.sha256()?,
        "package": inspected.package(),
        "abiVersion": inspected.abi_version(),
        "apiVersion": inspected.api_version(),
        "sdkVersion": inspected.sdk_version(),
        "rustc": inspected.rustc(),
        "target": inspected.target(),
        "extensions": extensions,
        "linkedIn": linked_in,
        "schemas": schemas.all(),
        "capabilities": schemas.all().map(capabilities),
        "hints": hints(inspected),
    });
    Ok(object.to_string() + "\n")
}

/// Describes the file, then each extension in a paragraph, then the extensions that were linked in from other crates.
fn page(inspected: &Inspected, schemas: &LibrarySchemas<'_>) -> Result<String> {
    let mut page = format!("{}\n", inspected.path().display());
    let (sha256, abi) = (inspected.sha256()?, inspected.abi_version());
    let packed = match schemas {
        LibrarySchemas::Packed(_) => "packed",
        LibrarySchemas::Described(_) => "not packed; the library was run for them",
        LibrarySchemas::None => "not packed",
    };
    for (label, value) in [
        ("crate", inspected.package()),
        ("abi", &abi),
        ("api", inspected.api_version()),
        ("goondan", inspected.sdk_version()),
        ("compiler", inspected.rustc()),
        ("target", inspected.target()),
        ("sha256", &sha256),
        ("schemas", packed),
    ] {
        // Writing to a string does not fail.
        _ = row(&mut page, label, value);
    }
    for record in inspected.extensions() {
        let listed = ListedExtension::from(record).to_string();
        _ = write!(page, "\n{}", listed);
        let own = schemas.all().and_then(|all| all.iter().find(|schemas| schemas.name == record.name));
        if let Some(ExtensionSchemas { config, tools, .. }) = own {
            _ = row(&mut page, "config", config);
            for Mark { kind, setting } in marks(config) {
                _ = row(&mut page, "can act", format_args!("{kind}  (by {setting})"));
            }
            for ToolSchema { name, parameters, .. } in tools {
                _ = row(&mut page, "arguments", format_args!("{name}  {parameters}"));
            }
        }
    }
    let linked_in: Vec<_> = inspected.linked_in().iter().map(|record| record.name.as_str()).collect();
    if !linked_in.is_empty() {
        _ = writeln!(page, "\nlinked in from other crates, and not offered: {}", linked_in.join(", "));
    }
    let hints = hints(inspected);
    if !hints.is_empty() {
        page.push('\n');
    }
    hints.iter().for_each(|hint| _ = writeln!(page, "hint: {hint}"));
    Ok(page)
}

/// A setting by which an extension acts outside of conversations.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct Mark {
    /// The kind, such as `command`.
    kind: String,
    /// The name of the setting; for the config as a whole, `any config`.
    setting: String,
}

/// Returns the settings by which each extension acts, by its name.
fn capabilities(schemas: &[ExtensionSchemas]) -> Value {
    schemas.iter().map(|schemas| (schemas.name.clone(), json!(marks(&schemas.config)))).collect()
}

/// Returns the settings of a config by which its extension acts outside of conversations, as its schema marks them.
// TRUST-01
fn marks(schema: &Value) -> BTreeSet<Mark> {
    fn visit(schema: &Value, name: &str, found: &mut BTreeSet<Mark>) {
        match schema {
            Value::Object(keywords) => keywords.iter().for_each(|(keyword, inner)| match (keyword.as_str(), inner) {
                ("x-goondan", Value::String(kind)) => _ = found.insert(mark(kind, name)),
                ("x-goondan", Value::Object(kinds)) => found.extend(kinds.keys().map(|kind| mark(kind, name))),
                ("properties", Value::Object(members)) => {
                    members.iter().for_each(|(member, inner)| visit(inner, member, found));
                }
                _ => visit(inner, name, found),
            }),
            Value::Array(items) => items.iter().for_each(|item| visit(item, name, found)),
            _ => {}
        }
    }
    let mut found = BTreeSet::new();
    visit(schema, "", &mut found);
    found
}

fn mark(kind: &str, name: &str) -> Mark {
    let setting = if name.is_empty() { "any config".to_owned() } else { format!("`{name}`") };
    Mark { kind: kind.to_owned(), setting }
}

/// Returns hints about valid things that are probably not meant.
fn hints(inspected: &Inspected) -> Vec<String> {
    let tools = inspected.extensions().iter().flat_map(|extension| &extension.tools);
    let undescribed = tools.filter(|tool| tool.description.trim().is_empty());
    let hint = |tool: &ToolRecord| {
        format!(
            "the tool `{}` has no description, by which models choose tools: write a doc comment above its function",
            tool.name
        )
    };
    undescribed.map(hint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_a_schema_say_how_an_extension_can_act() {
        let schema = json!({
            "x-goondan": { "shell": "bash" },
            "properties": { "server": { "$ref": "#/$defs/Server" }, "roots": { "items": { "x-goondan": "root" } } },
            "$defs": { "Server": { "oneOf": [{ "properties": { "url": { "x-goondan": "host" } } }] } },
        });
        let found: Vec<_> = marks(&schema).into_iter().map(|mark| format!("{} {}", mark.kind, mark.setting)).collect();
        assert_eq!(found, ["host `url`", "root `roots`", "shell any config"]);
        assert!(marks(&json!({ "properties": { "x-goondan": { "type": "string" } } })).is_empty());
    }
}
