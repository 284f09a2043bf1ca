//! The rules by which texts are searched, and the replacement of their matches.

use std::ops::Range;

use goondan::prelude::*;
use goondan::secret::Secret;
use regex::Regex;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::{Anchored, Input, MatchKind};
use sha2::{Digest, Sha256};

use crate::checks::{self, Check};
use crate::config::{Action, Config, Kind, KindConfig};

/// One kind of text that is looked for.
pub(crate) struct Rule {
    pub(crate) name: String,
    action: Action,
    search: Regex,
    /// Says of the end of a text whether a match may begin there.
    begins: DFA,
    check: Check,
    /// The most bytes of a match.
    longest: usize,
}

/// All that is looked for.
pub(crate) struct Rules {
    pub(crate) rules: Vec<Rule>,
    salt: Option<Secret>,
}

/// Something that was found.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Found {
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// The index of the rule.
    pub(crate) rule: usize,
}

const EMAIL: &str = r"[A-Za-z0-9._%+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){0,6}\.[A-Za-z]{2,24}";
const PHONE: &str = r"(?:\+|00)[1-9](?:[ ()./-]{0,2}[0-9]){6,14}|0[1-9](?:[ ()./-]{0,2}[0-9]){6,12}|\(?[2-9][0-9]{2}\)?[ .-][0-9]{3}[ .-][0-9]{4}";
const CARD: &str = r"[0-9](?:[ -]?[0-9]){12,18}";
const IBAN: &str = r"[A-Z]{2}[0-9]{2}(?: ?[A-Za-z0-9]){11,30}";

impl Rule {
    fn new(name: &str, action: Action, pattern: &str, check: Check, longest: usize) -> Result<Self> {
        let wrong = |error: &dyn std::fmt::Display| {
            Error::msg(format!("the pattern of `{name}` is no regular expression: {error}"))
                .suggest("write it as the crate `regex` reads it, without references back and look-around")
        };
        let search = Regex::new(pattern).map_err(|error| wrong(&error))?;
        let begins = DFA::builder()
            .configure(DFA::config().match_kind(MatchKind::All).unicode_word_boundary(true))
            .build(pattern)
            .map_err(|error| wrong(&error))?;
        Ok(Self { name: name.to_owned(), action, search, begins, check, longest })
    }

    fn of_kind(kind: Kind, action: Action) -> Result<Self> {
        let name = kind.name();
        match kind {
            Kind::Email => Self::new(name, action, EMAIL, checks::any, 320),
            Kind::Phone => Self::new(name, action, PHONE, checks::phone, 48),
            Kind::Card => Self::new(name, action, CARD, checks::card, 40),
            Kind::Iban => Self::new(name, action, IBAN, checks::iban, 48),
            Kind::Key => {
                let rules: Vec<_> = goondan_keys::RULES.iter().map(|rule| format!("(?:{})", rule.pattern)).collect();
                Self::new(name, action, &rules.join("|"), checks::key, 8 << 10)
            }
        }
    }

    /// Returns the first match in a text from `at` on.
    fn find(&self, text: &str, mut at: usize) -> Option<(usize, usize)> {
        while let Some(found) = self.search.find_at(text, at) {
            if !found.is_empty()
                && let Some(end) = (self.check)(text, found.start(), found.end())
            {
                return Some((found.start(), end));
            }
            at = next_char(text, found.start())?;
        }
        None
    }

    /// Returns whether the text from `start` on may be the beginning of a match.
    fn begins(&self, cache: &mut Cache, text: &str, start: usize) -> bool {
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        let Ok(mut state) = self.begins.start_state_forward(cache, &input) else { return true };
        for byte in &text.as_bytes()[start..] {
            match self.begins.next_state(cache, state, *byte) {
                Ok(next) if next.is_dead() => return false,
                // It cannot say.
                Ok(next) if next.is_quit() => return true,
                Ok(next) => state = next,
                Err(_) => return true,
            }
        }
        true
    }
}

fn next_char(text: &str, at: usize) -> Option<usize> {
    text[at..].chars().next().map(|c| at + c.len_utf8())
}

impl Rules {
    pub(crate) fn new(config: &Config) -> Result<Self> {
        let of_kind = |kind: &KindConfig| match *kind {
            KindConfig::Plain(kind) => Rule::of_kind(kind, config.action),
            KindConfig::WithAction { kind, action } => Rule::of_kind(kind, action),
        };
        let of_pattern = |pattern: &crate::config::Pattern| {
            let action = pattern.action.unwrap_or(config.action);
            Rule::new(&pattern.name, action, &pattern.pattern, checks::any, pattern.longest)
        };
        let rules = config.patterns.iter().map(of_pattern).chain(config.kinds.iter().map(of_kind));
        Ok(Self { rules: rules.collect::<Result<_>>()?, salt: config.salt.clone() })
    }

    /// Returns caches for [`Rules::held_from`].
    pub(crate) fn caches(&self) -> Vec<Cache> {
        self.rules.iter().map(|rule| rule.begins.create_cache()).collect()
    }

    /// Returns the matches in a text from `from` on, in order.
    pub(crate) fn find(&self, text: &str, from: usize) -> Vec<Found> {
        let mut next: Vec<_> = self.rules.iter().map(|rule| rule.find(text, from)).collect();
        let (mut found, mut at) = (Vec::new(), from);
        loop {
            for (rule, next) in self.rules.iter().zip(&mut next) {
                if next.is_some_and(|(start, _)| start < at) {
                    *next = rule.find(text, at);
                }
            }
            let first = (0..).zip(&next).filter_map(|(rule, next)| next.map(|(start, end)| Found { start, end, rule }));
            // Of those that begin first, the longest; of two of them, the match of a pattern of the config.
            let Some(first) = first.min_by_key(|found| (found.start, usize::MAX - found.end)) else { return found };
            at = first.end;
            found.push(first);
        }
    }

    /// Returns where the part of a text begins, from `from` on, that may be the beginning of a match.
    pub(crate) fn held_from(&self, caches: &mut [Cache], text: &str, from: usize) -> usize {
        let starts = |longest: usize| {
            let least = text.len().saturating_sub(longest).max(from);
            (least..text.len()).filter(|at| text.is_char_boundary(*at))
        };
        let held = self
            .rules
            .iter()
            .zip(caches)
            .filter_map(|(rule, cache)| starts(rule.longest).find(|start| rule.begins(cache, text, *start)));
        held.min().unwrap_or(text.len())
    }

    /// Returns the replacement of a match.
    ///
    /// # Errors
    /// When it is refused.
    fn replacement(&self, found: Found, text: &str) -> Result<String> {
        let rule = &self.rules[found.rule];
        match rule.action {
            Action::Mask => Ok(format!("[{}]", rule.name)),
            Action::Hash => Ok(format!("[{}:{}]", rule.name, self.hash(&text[found.start..found.end]))),
            Action::Refuse => {
                let message = format!("a text has something of the kind `{}`, which is refused here", rule.name);
                Err(Error::new("E_REDACT_REFUSED", message).suggest("leave it out"))
            }
        }
    }

    /// Returns a short hash in letters, so that it looks like no number.
    fn hash(&self, text: &str) -> String {
        let salt = self.salt.as_ref().map_or("", |salt| salt.expose());
        let digest = Sha256::new().chain_update(salt).chain_update([0]).chain_update(text).finalize();
        digest.iter().take(4).flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(b'a' + digit)).collect()
    }

    /// Returns a part of a text with its matches replaced.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn replaced(&self, text: &str, part: Range<usize>, found: &[Found]) -> Result<String> {
        let (mut replaced, mut at) = (String::with_capacity(part.len()), part.start);
        for one in found {
            replaced.push_str(&text[at..one.start]);
            replaced.push_str(&self.replacement(*one, text)?);
            at = one.end;
        }
        replaced.push_str(&text[at..part.end]);
        Ok(replaced)
    }

    /// Returns the text with its matches replaced, and their names; `None` if there is nothing.
    ///
    /// # Errors
    /// When it is refused.
    pub(crate) fn redacted(&self, text: &str) -> Result<Option<(String, Vec<Found>)>> {
        let found = self.find(text, 0);
        if found.is_empty() {
            return Ok(None);
        }
        let redacted = self.replaced(text, 0..text.len(), &found)?;
        Ok(Some((redacted, found)))
    }
}
