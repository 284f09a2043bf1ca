//! `goondan explain`.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use goondan::ErrorCode;

/// Explain an error code: what happened, and what to do.
///
/// Without a code, all codes are listed. The codes of an extension are explained by its own
/// documentation.
///
/// Exit status: 0 explained, 2 goondan has no such code.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct ExplainArgs {
    /// The code, such as E_EXT_LOAD, in upper or lower case.
    #[arg(value_parser = CodeParser, hide_possible_values = true)]
    pub(crate) code: Option<String>,
}

/// Accepts any text, since the command answers a wrong code better than clap, and completes codes.
#[derive(Clone)]
struct CodeParser;

impl TypedValueParser for CodeParser {
    type Value = String;

    fn parse_ref(&self, _: &clap::Command, _: Option<&clap::Arg>, value: &OsStr) -> Result<String, clap::Error> {
        Ok(value.to_string_lossy().into_owned())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(ErrorCode::ALL.iter().map(|code| PossibleValue::new(code.as_str()))))
    }
}
