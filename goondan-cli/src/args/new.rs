//! `goondan new`, and the rules for names of new extensions.

use std::path::PathBuf;

use goondan::name::ExtensionName;

/// Start a new project.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NewArgs {
    #[command(subcommand)]
    pub(crate) command: NewCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum NewCommand {
    Extension(NewExtensionArgs),
}

/// Create a crate with an extension, its test, and a program to try it.
///
/// Exit status: 0 the crate was created; 1 it could not be written; 2 the name is not valid, or the
/// directory is not empty.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct NewExtensionArgs {
    /// The name of the extension: lower-case words joined by hyphens, such as `message-window`.
    #[arg(value_parser = parse_name)]
    pub(crate) name: ExtensionName,

    /// Where to create the crate [default: a directory with its name].
    #[arg(long, value_name = "DIR")]
    pub(crate) path: Option<PathBuf>,
}

/// Names that are valid for extensions but not for the new crate: keywords, crates of the standard library, and the
/// dependencies of the new crate.
const RESERVED: &str = "abstract alloc as async await become box break const continue core crate do dyn else enum \
                        extern false final fn for gen goondan goondan-bundle goondan-cli goondan-core goondan-macros \
                        if impl in let loop macro match mod move mut override priv proc-macro pub ref return schemars \
                        self serde static std struct super test tokio trait true try type typeof unsafe unsized use \
                        virtual where while yield";

/// The longest name: with `__greet`, the tool in the template, it is as long as a tool name may be (TOOL-01).
const MAX_LEN: usize = 64 - "__greet".len();

/// Parses the name on the command line.
///
/// # Errors
/// Returns the reason why the name is not valid, and a similar valid name, if any.
fn parse_name(text: &str) -> Result<ExtensionName, String> {
    match ExtensionName::new(text) {
        Ok(_) if RESERVED.split(' ').any(|reserved| reserved == text) => {
            Err(format!("a crate cannot have this name; try `{text}-extension`"))
        }
        Ok(_) if text.len() > MAX_LEN => {
            Err(format!("use at most {MAX_LEN} characters: the names of tools begin with the name of their extension"))
        }
        Ok(name) => Ok(name),
        Err(error) => {
            let rule = error.suggestion().unwrap_or_default();
            let nearest = kebab_case(text);
            let valid = nearest != text && parse_name(&nearest).is_ok();
            Err(if valid { format!("{rule}; try `{nearest}`") } else { rule.to_owned() })
        }
    }
}

/// Returns the kebab-case form of `text`: `MyWeather`, `my_weather` and `My Weather!` become `my-weather`.
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
    fn a_wrong_name_is_answered_with_a_valid_one() {
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
}
