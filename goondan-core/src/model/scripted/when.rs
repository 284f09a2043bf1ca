//! Owns the patterns of a script: checked when they are read, compiled when they are asked.

use std::sync::OnceLock;

use regex_automata::meta::{Config, Regex};

use crate::error::{Error, ErrorCode, Result};

/// A pattern that an input must fit.
///
/// Most runs end before most items of a script are asked, and compiling a pattern takes longer than reading all of the
/// script.
#[derive(Clone, Debug)]
pub(super) struct When {
    pattern: String,
    compiled: OnceLock<Regex>,
}

impl When {
    /// # Errors
    /// When `pattern` is not a regular expression.
    pub(super) fn new(pattern: String) -> Result<Self, regex_syntax::Error> {
        regex_syntax::parse(&pattern)?;
        Ok(Self { pattern, compiled: OnceLock::new() })
    }

    /// Whether `heard` has a part that fits.
    ///
    /// # Errors
    /// `E_MODEL_SCRIPT` when the pattern is too large to be compiled.
    pub(super) fn fits(&self, heard: &str) -> Result<bool> {
        if let Some(compiled) = self.compiled.get() {
            return Ok(compiled.is_match(heard));
        }
        // A script is asked a few times: what makes long searches faster would never pay.
        let for_few = Config::new().auto_prefilter(false).hybrid(false).dfa(false).onepass(false);
        let compiled = Regex::builder().configure(for_few).build(&self.pattern).map_err(|error| {
            Error::new(ErrorCode::MODEL_SCRIPT, format!("the pattern `{}` cannot be compiled", self.pattern))
                .suggest("write a shorter pattern: repetitions like `{1000}` count as often as they say")
                .caused_by(error)
        })?;
        Ok(self.compiled.get_or_init(|| compiled).is_match(heard))
    }
}

impl PartialEq for When {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}
