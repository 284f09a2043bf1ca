//! Owns `goondan plugin inspect`: what a library file tells of itself, for people and for programs.

use std::fmt::Write as _;

use goondan::{ExtensionSchemas, Inspected, Library, Result, ToolSchema, json};

use super::child;
use super::listed::{Listed, row};
use crate::args::PluginInspectArgs;
use crate::output;

/// Where the schemas come from.
enum Schemas<'a> {
    Packed(&'a [ExtensionSchemas]),
    Described(Vec<ExtensionSchemas>),
    None,
}

impl Schemas<'_> {
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
        Some(packed) => Schemas::Packed(packed),
        None if args.describe => Schemas::Described(child::schemas(&args.file, args.deadline.timeout())?),
        None => Schemas::None,
    };
    output::print(&if args.json { object(&inspected, &schemas)? } else { page(&inspected, &schemas)? })
}

fn object(inspected: &Inspected, schemas: &Schemas<'_>) -> Result<String> {
    let linked_in: Vec<_> = inspected.linked_in().iter().map(Listed::from).collect();
    let extensions: Vec<_> = inspected.extensions().iter().map(Listed::from).collect();
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
    });
    Ok(object.to_string() + "\n")
}

/// What the file is, a paragraph for each extension, and what it was linked with.
fn page(inspected: &Inspected, schemas: &Schemas<'_>) -> Result<String> {
    let mut page = format!("{}\n", inspected.path().display());
    let (sha256, abi) = (inspected.sha256()?, inspected.abi_version());
    let packed = match schemas {
        Schemas::Packed(_) => "packed",
        Schemas::Described(_) => "not packed; the library was run for them",
        Schemas::None => "not packed",
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
        // Writing into a string does not fail.
        _ = row(&mut page, label, plain(value));
    }
    for record in inspected.extensions() {
        let listed = Listed::from(record).to_string();
        _ = write!(page, "\n{}", plain_lines(&listed));
        let own = schemas.all().and_then(|all| all.iter().find(|schemas| schemas.name == record.name));
        if let Some(ExtensionSchemas { config, tools, .. }) = own {
            _ = row(&mut page, "config", plain(&config.to_string()));
            for ToolSchema { name, parameters } in tools {
                _ = row(&mut page, "arguments", plain(&format!("{name}  {parameters}")));
            }
        }
    }
    let linked_in: Vec<_> = inspected.linked_in().iter().map(|record| plain(&record.name)).collect();
    if !linked_in.is_empty() {
        _ = writeln!(page, "\nlinked in from other crates, and not offered: {}", linked_in.join(", "));
    }
    Ok(page)
}

/// `text` without characters that steer a terminal: it stands in a file, which may hold anything.
fn plain(text: &str) -> String {
    text.chars().filter(|char| !char.is_control()).collect()
}

/// The same for a text of several lines.
pub(super) fn plain_lines(text: &str) -> String {
    text.lines().map(|line| plain(line) + "\n").collect()
}
