//! The findings, as they are counted on the bus.

use std::collections::BTreeMap;

use goondan::prelude::*;

use crate::rules::{Found, Rules};

/// The payload of `redact.masked`.
#[derive(Debug, Serialize)]
struct Masked<'a> {
    /// Where: `inputs`, `answers` or `tools`.
    place: &'a str,
    /// The number of findings of each kind.
    kinds: BTreeMap<&'a str, usize>,
}

/// The rules, and the log of their matches.
pub(crate) struct Told {
    pub(crate) rules: Rules,
    pub(crate) api: ExtensionApi,
}

impl Told {
    /// Tells the number of matches, and not their text.
    pub(crate) fn found(&self, place: &str, found: &[Found]) {
        if found.is_empty() {
            return;
        }
        let mut kinds = BTreeMap::new();
        for one in found {
            *kinds.entry(self.rules.rules[one.rule].name.as_str()).or_default() += 1;
        }
        self.api.events().emit("redact.masked", (Masked { place, kinds },));
    }

    /// Returns the text with its matches replaced, if there are some.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn redacted(&self, place: &str, text: &str) -> Result<Option<String>> {
        let Some((text, found)) = self.rules.redacted(text)? else { return Ok(None) };
        self.found(place, &found);
        Ok(Some(text))
    }
}
