//! Owns the patterns of a script: checked when they are read, compiled when they are asked.

use std::sync::OnceLock;

use regex::Regex;

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
    pub(super) fn new(pattern: String) -> Result<Self, Box<regex_syntax::Error>> {
        regex_syntax::parse(&pattern).map_err(Box::new)?;
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
        let compiled = Regex::new(&self.pattern).map_err(|error| {
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

#[cfg(test)]
mod tests {
    use super::*;

    fn when(pattern: &str) -> When {
        When::new(pattern.to_owned()).unwrap()
    }

    #[test]
    fn a_pattern_fits_anywhere_in_any_case_and_script() {
        assert!(when(r"(?i)\b(hi|hello)\b").fits("Well, HELLO there").unwrap());
        assert!(!when(r"(?i)\b(hi|hello)\b").fits("this").unwrap());
        assert!(when("(?i)ärger|größe").fits("GRÖSSE, ÄRGER").unwrap());
        let often = when(r"^\w+$");
        assert!(["eins", "два", "三"].iter().all(|heard| often.fits(heard).unwrap()));
        assert!(when("x$").fits(&"y".repeat(100_000).replace("yyyy", "yyyx")).unwrap());
    }

    #[test]
    fn a_pattern_that_is_none_is_refused_when_it_is_read() {
        assert!(When::new("(".to_owned()).is_err());
        assert!(When::new(r"\p{Nothing}".to_owned()).is_err());
    }

    #[test]
    fn a_pattern_that_is_too_large_says_so_when_it_is_asked() {
        let error = when(r"(\w{1000}){1000}").fits("a").unwrap_err();
        assert_eq!(error.code(), &ErrorCode::MODEL_SCRIPT);
        assert!(error.message().contains(r"(\w{1000}){1000}"), "{error}");
    }
}
