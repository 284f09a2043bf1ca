//! `goondan new extension`: fills the templates of a crate that builds and passes its test as it is.

use std::collections::BTreeSet;
use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goondan::store::state_root;
use goondan::{Error, ErrorCode, Result};

use super::capabilities;
use super::trust::{self, Agreements};
use crate::args::NewExtensionArgs;
use crate::output;

/// The files of the crate: their paths and templates.
const FILES: [(&str, &str); 8] = [
    // The templates have other names, since cargo would take Cargo.toml for a package, and git would apply .gitignore.
    ("Cargo.toml", include_str!("../../templates/extension/manifest.toml")),
    (".gitignore", include_str!("../../templates/extension/gitignore")),
    ("README.md", include_str!("../../templates/extension/README.md")),
    ("src/lib.rs", include_str!("../../templates/extension/lib.rs")),
    ("tests/conversation.rs", include_str!("../../templates/extension/conversation.rs")),
    ("examples/run.rs", include_str!("../../templates/extension/run.rs")),
    ("goondan.yaml", include_str!("../../templates/extension/goondan.yaml")),
    ("script.yaml", include_str!("../../templates/extension/script.yaml")),
];

/// The source tree that this command was built from. Until goondan is published, new crates depend on it by path.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// The agent in the template of the bundle.
const AGENT: &str = "try";

pub(crate) fn extension(args: &NewExtensionArgs) -> Result<()> {
    let name = args.name.as_str();
    let directory = args.path.clone().unwrap_or_else(|| PathBuf::from(name));
    require_empty(&directory)?;
    let placeholders = [
        ("{{name}}", name.to_owned()),
        ("{{crate}}", name.replace('-', "_")),
        ("{{type}}", type_name(name)),
        ("{{goondan}}", dependency()),
        ("{{rust}}", env!("CARGO_PKG_RUST_VERSION").to_owned()),
    ];
    for (file, template) in FILES {
        let fill = |text: String, (placeholder, value): &(&str, String)| text.replace(placeholder, value);
        write(&directory.join(file), &placeholders.iter().fold(template.to_owned(), fill))?;
    }
    agree(args, &directory)?;
    print_next_steps(name, &directory)
}

/// Agrees to the bundle of the crate, whose agent loads the library that will be built.
// TRUST-01
fn agree(args: &NewExtensionArgs, directory: &Path) -> Result<()> {
    // Without a home, nothing runs anyway.
    let Ok(root) = state_root(None) else { return Ok(()) };
    let file = format!("target/release/{DLL_PREFIX}{}{DLL_SUFFIX}", args.name.as_str().replace('-', "_"));
    let line = capabilities::library(&file, args.name.as_str(), AGENT);
    Agreements::below(&root).agree(&trust::canonical(directory)?, BTreeSet::from([line]))
}

/// Fails unless `directory` is missing or empty, so that no existing file is overwritten.
fn require_empty(directory: &Path) -> Result<()> {
    let problem = match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "is not empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => "is not a directory",
        Err(error) => return Err(io_error("read", directory, error)),
    };
    Err(Error::new(ErrorCode::USAGE, format!("`{}` {problem}", directory.display()))
        .suggest("choose another directory with `--path DIR`, or another name"))
}

fn write(file: &Path, text: &str) -> Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|error| io_error("create", directory, error))?;
    fs::write(file, text).map_err(|error| io_error("write", file, error))
}

fn io_error(verb: &str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorCode::IO, format!("cannot {verb} {}", path.display())).caused_by(error)
}

fn print_next_steps(name: &str, directory: &Path) -> Result<()> {
    let directory = directory.display();
    let text = format!(
        "Created the extension `{name}` in {directory}.\n\n\
         \x20 cd {directory}\n\
         \x20 cargo test                 # the extension in a conversation with a scripted model\n\
         \x20 cargo run --example run    # the same on the terminal: type a line\n\
         \x20 cargo build --release      # the extension as a library\n\
         \x20 goondan run                # an agent that loads it: type a line\n\n\
         Then edit src/lib.rs. README.md shows how a bundle uses the extension.\n"
    );
    output::print(&text)
}

/// Returns the source of the dependency on goondan, for the manifest.
fn dependency() -> String {
    let checkout = Path::new(CHECKOUT);
    match checkout.canonicalize() {
        // A basic string in TOML is escaped like a string in JSON.
        Ok(path) if path.join("goondan-core/Cargo.toml").is_file() => {
            format!("path = {}", serde_json::json!(path))
        }
        _ => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
    }
}

/// Returns the type name: `my-weather` becomes `MyWeatherExtension`. The suffix avoids clashes with imported names.
fn type_name(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    words.chain(["Extension".to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_names_are_derived_from_the_name() {
        assert_eq!(type_name("weather"), "WeatherExtension");
        assert_eq!(type_name("my-2nd-weather"), "My2ndWeatherExtension");
    }

    #[test]
    fn every_placeholder_of_a_template_is_known() {
        for (file, template) in FILES {
            let mut text = template.to_owned();
            for known in ["name", "crate", "type", "goondan", "rust"] {
                text = text.replace(&format!("{{{{{known}}}}}"), "");
            }
            assert!(!text.contains("{{"), "{file}: {text}");
        }
    }
}
