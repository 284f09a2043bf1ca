//! Owns `goondan new extension`: from the templates to a crate that builds and tests by itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use goondan::{Error, ErrorCode, ExtensionName, Result};

use crate::args::NewExtensionArgs;

/// The files of the crate: where they go, and their templates.
const FILES: [(&str, &str); 8] = [
    // Under its own name the template would be a package to cargo, and the ignore list would be one to git.
    ("Cargo.toml", include_str!("../templates/extension/manifest.toml")),
    (".gitignore", include_str!("../templates/extension/gitignore")),
    ("README.md", include_str!("../templates/extension/README.md")),
    ("src/lib.rs", include_str!("../templates/extension/lib.rs")),
    ("tests/conversation.rs", include_str!("../templates/extension/conversation.rs")),
    ("examples/run.rs", include_str!("../templates/extension/run.rs")),
    ("goondan.yaml", include_str!("../templates/extension/goondan.yaml")),
    ("script.yaml", include_str!("../templates/extension/script.yaml")),
];

/// Names that are legal for extensions, but not for the crate: words of Rust, crates of the language, and those that the
/// new crate depends on.
const TAKEN: &str = "abstract alloc as async await become box break const continue core crate do dyn else enum extern \
                     false final fn for gen goondan goondan-bundle goondan-cli goondan-core goondan-macros if impl in \
                     let loop macro match mod move mut override priv proc-macro pub ref return schemars self serde static \
                     std struct super test tokio trait true try type typeof unsafe unsized use virtual where while yield";

/// Where this command was built. Until goondan is published, that is where new crates find it.
const CHECKOUT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// So that `<name>__greet` has no more characters than a tool name may have (TOOL-01).
const LONGEST: usize = 64 - "__greet".len();

/// Checks the name on the command line.
///
/// # Errors
/// Why it cannot be the name, and one that can.
pub(crate) fn parse_name(text: &str) -> Result<ExtensionName, String> {
    match ExtensionName::new(text) {
        Ok(_) if TAKEN.split(' ').any(|taken| taken == text) => {
            Err(format!("a crate cannot have this name; try `{text}-extension`"))
        }
        Ok(_) if text.len() > LONGEST => {
            Err(format!("use at most {LONGEST} characters: tools are called after their extension"))
        }
        Ok(name) => Ok(name),
        Err(error) => {
            let rule = error.suggestion().unwrap_or_default();
            let near = kebab_case(text);
            let legal = near != text && parse_name(&near).is_ok();
            Err(if legal { format!("{rule}; try `{near}`") } else { rule.to_owned() })
        }
    }
}

pub(crate) fn extension(args: &NewExtensionArgs) -> Result<()> {
    let name = args.name.as_str();
    let directory = args.path.clone().unwrap_or_else(|| PathBuf::from(name));
    is_free(&directory)?;
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
    tell(name, &directory)
}

/// Nothing that somebody wrote is written over.
fn is_free(directory: &Path) -> Result<()> {
    let problem = match fs::read_dir(directory).map(|mut entries| entries.next().is_none()) {
        Ok(true) => return Ok(()),
        Ok(false) => "is not empty",
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => "is not a directory",
        Err(error) => return Err(io_error("read", directory, error)),
    };
    Err(Error::new(ErrorCode::USAGE, format!("`{}` {problem}", directory.display()))
        .suggest("choose another place with `--path DIR`, or another name"))
}

fn write(file: &Path, text: &str) -> Result<()> {
    let directory = file.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory).map_err(|error| io_error("make", directory, error))?;
    fs::write(file, text).map_err(|error| io_error("write", file, error))
}

fn io_error(verb: &str, path: &Path, error: io::Error) -> Error {
    Error::new(ErrorCode::IO, format!("cannot {verb} {}", path.display())).caused_by(error)
}

fn tell(name: &str, directory: &Path) -> Result<()> {
    let place = directory.display();
    let text = format!(
        "Made the extension `{name}` in {place}.\n\n\
         \x20 cd {place}\n\
         \x20 cargo test                 # the extension in a conversation with a scripted model\n\
         \x20 cargo run --example run    # the same on the terminal: type a line\n\
         \x20 cargo build --release      # the extension as a library\n\
         \x20 goondan run                # an agent that loads it: type a line\n\n\
         Then make src/lib.rs yours. README.md tells how bundles use the extension.\n"
    );
    crate::print(&text)
}

/// How the new crate finds goondan, in its manifest.
fn dependency() -> String {
    let checkout = Path::new(CHECKOUT);
    match checkout.canonicalize() {
        // A basic string of TOML is escaped like one of JSON.
        Ok(path) if path.join("goondan-core/Cargo.toml").is_file() => {
            format!("path = {}", serde_json::json!(path))
        }
        _ => format!("version = {:?}", env!("CARGO_PKG_VERSION")),
    }
}

/// `my-weather` → `MyWeatherExtension`: the ending keeps it apart from all that extensions import.
fn type_name(name: &str) -> String {
    let words = name.split('-').map(|word| {
        let (first, rest) = word.split_at(1);
        first.to_ascii_uppercase() + rest
    });
    words.chain(["Extension".to_owned()]).collect()
}

/// The legal name that is nearest to `text`: `MyWeather`, `my_weather` and `My Weather!` → `my-weather`.
fn kebab_case(text: &str) -> String {
    let mut name = String::new();
    let mut after_small = false;
    for c in text.chars() {
        let legal = c.is_ascii_alphanumeric();
        if (!legal || (c.is_ascii_uppercase() && after_small)) && !name.ends_with('-') {
            name.push('-');
        }
        if legal {
            name.push(c.to_ascii_lowercase());
        }
        after_small = c.is_ascii_lowercase() || c.is_ascii_digit();
    }
    name.trim_start_matches(|c: char| !c.is_ascii_lowercase()).trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wrong_name_is_answered_with_a_legal_one() {
        for (wrong, expected) in [
            ("MyWeather", "try `my-weather`"),
            ("my_weather", "try `my-weather`"),
            ("2 My  Weather!", "try `my-weather`"),
            ("-a--b-", "try `a-b`"),
            ("Type", "starting with a letter"),
            ("", "starting with a letter"),
            ("日本", "starting with a letter"),
            ("type", "try `type-extension`"),
            ("serde", "try `serde-extension`"),
        ] {
            let error = parse_name(wrong).unwrap_err();
            assert!(error.ends_with(expected), "{wrong}: {error}");
        }
        let long = "a".repeat(64);
        assert_eq!(parse_name(&long).unwrap_err(), "use at most 63 characters");
        assert!(parse_name(&"a".repeat(58)).unwrap_err().starts_with("use at most 57 characters"));
        assert!(parse_name(&"a".repeat(57)).is_ok() && parse_name("my-weather2").is_ok());
    }

    #[test]
    fn types_are_called_after_the_name() {
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
