//! The `when` patterns of a script: checked when they are read, compiled at their first use.

use std::sync::{Arc, OnceLock};

use goondan_core::{Error, ErrorCode, Result};
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{BuildError, NFA};
use regex_syntax::hir::Hir;

/// A regular expression that the input must match.
///
/// It is compiled lazily: most runs end before they reach most items of a script, and compiling a pattern takes longer
/// than reading the whole script. It is compiled to the simplest of engines, which matches slowly and is ready in an
/// eighth of the time: most patterns of a script are matched once, with a line that a person has typed.
#[derive(Clone, Debug)]
pub(super) struct InputPattern {
    pattern: String,
    read: Arc<Hir>,
    compiled: OnceLock<PikeVM>,
}

/// The most memory of a compiled pattern, in bytes.
const LARGEST: usize = 10 << 20;

impl InputPattern {
    /// Checks `pattern` without compiling it.
    ///
    /// # Errors
    /// When `pattern` is not a regular expression.
    pub(super) fn new(pattern: String) -> Result<Self, Box<regex_syntax::Error>> {
        let read = Arc::new(regex_syntax::parse(&pattern).map_err(Box::new)?);
        Ok(Self { pattern, read, compiled: OnceLock::new() })
    }

    /// Returns whether the pattern matches `input` or a part of it.
    ///
    /// # Errors
    /// `E_MODEL_SCRIPT` when the pattern is too large to be compiled.
    pub(super) fn matches(&self, input: &str) -> Result<bool> {
        let compiled = match self.compiled.get() {
            Some(compiled) => compiled,
            None => {
                let compiled = self.compile().map_err(|error| {
                    Error::new(ErrorCode::MODEL_SCRIPT, format!("the pattern `{}` cannot be compiled", self.pattern))
                        .suggest("write a shorter pattern: repetitions like `{1000}` count as often as they say")
                        .caused_by(error)
                })?;
                self.compiled.get_or_init(|| compiled)
            }
        };
        Ok(compiled.is_match(&mut compiled.create_cache(), input))
    }

    fn compile(&self) -> Result<PikeVM, Box<BuildError>> {
        let limit = NFA::config().nfa_size_limit(Some(LARGEST));
        let program = NFA::compiler().configure(limit).build_from_hir(&self.read);
        program.and_then(PikeVM::new_from_nfa).map_err(Box::new)
    }
}

impl PartialEq for InputPattern {
    fn eq(&self, other: &Self) -> bool {
        self.pattern == other.pattern
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn when(pattern: &str) -> InputPattern {
        InputPattern::new(pattern.to_owned()).unwrap()
    }

    #[test]
    fn a_pattern_matches_anywhere_in_any_case_and_script() {
        assert!(when(r"(?i)\b(hi|hello)\b").matches("Well, HELLO there").unwrap());
        assert!(!when(r"(?i)\b(hi|hello)\b").matches("this").unwrap());
        assert!(when("(?i)ärger|größe").matches("GRÖSSE, ÄRGER").unwrap());
        let often = when(r"^\w+$");
        assert!(["eins", "два", "三"].iter().all(|input| often.matches(input).unwrap()));
        assert!(when("x$").matches(&"y".repeat(100_000).replace("yyyy", "yyyx")).unwrap());
    }

    #[test]
    fn an_invalid_pattern_is_refused_when_it_is_read() {
        assert!(InputPattern::new("(".to_owned()).is_err());
        assert!(InputPattern::new(r"\p{Nothing}".to_owned()).is_err());
    }

    #[test]
    fn a_pattern_that_is_too_large_fails_at_its_first_use() {
        let error = when(r"(\w{1000}){1000}").matches("a").unwrap_err();
        assert_eq!(error.code(), &ErrorCode::MODEL_SCRIPT);
        assert!(error.message().contains(r"(\w{1000}){1000}"), "{error}");
    }
}
