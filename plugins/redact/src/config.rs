//! The config of the extension.

use goondan::Secret;
use goondan::prelude::*;

/// The config of the extension.
///
/// ```yaml
/// kinds: [email, phone, { kind: card, action: refuse }]
/// patterns: [{ name: customer, pattern: "C-[0-9]{6}" }]
/// ```
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Config {
    /// The kinds that are looked for: all, unless they are set.
    pub(crate) kinds: Vec<KindConfig>,
    /// Further regular expressions that are looked for.
    pub(crate) patterns: Vec<Pattern>,
    /// The treatment of what is found, unless a kind or a pattern says something else.
    pub(crate) action: Action,
    /// The key of hashes, such as `{ valueFrom: { env: REDACT_SALT } }`: without it, hashes can be guessed.
    pub(crate) salt: Option<Secret>,
    /// Where is looked.
    pub(crate) r#in: Vec<Place>,
}

impl Default for Config {
    fn default() -> Self {
        let kinds = [Kind::Email, Kind::Phone, Kind::Card, Kind::Iban, Kind::Key].map(KindConfig::Plain);
        let places = vec![Place::Inputs, Place::Answers, Place::Tools];
        Self { kinds: kinds.into(), patterns: Vec::new(), action: Action::Mask, salt: None, r#in: places }
    }
}

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Kind {
    /// An address of mail.
    Email,
    /// A telephone number: with a country code, or as it is written at home.
    Phone,
    /// The number of a payment card, whose check digit is right.
    Card,
    /// The number of a bank account, whose check digits are right.
    Iban,
    /// A key of a service, such as a model's provider.
    Key,
}

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Email => "email",
            Self::Phone => "phone",
            Self::Card => "card",
            Self::Iban => "iban",
            Self::Key => "key",
        }
    }
}

/// A kind, and what happens with it.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum KindConfig {
    /// As `action` says.
    Plain(Kind),
    /// As its own `action` says.
    WithAction {
        /// The kind.
        kind: Kind,
        /// Its treatment.
        action: Action,
    },
}

/// The treatment of what is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Action {
    /// Its kind stands in its place: `[email]`.
    Mask,
    /// Its kind and a hash of it stand in its place, so that the same text can be told: `[email:bgkcdlap]`.
    Hash,
    /// The input, the answer or the output of the tool is refused.
    Refuse,
}

/// A text that a regular expression matches.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Pattern {
    /// The name that stands in its place, such as `customer` for `[customer]`.
    pub(crate) name: String,
    /// The regular expression.
    pub(crate) pattern: String,
    /// The most bytes that a match has: an answer is held back by so many while it may become one.
    #[serde(default = "longest")]
    pub(crate) longest: usize,
    /// Its treatment.
    pub(crate) action: Option<Action>,
}

fn longest() -> usize {
    64
}

/// Where texts are looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Place {
    /// The inputs of people and programs.
    Inputs,
    /// The answers of the model.
    Answers,
    /// The results of tools.
    Tools,
}
