//! Owns what must not be told: secrets, and the mask that they wear in logs, errors, events and records.
//!
//! A text that becomes a [`Secret`] is known to the whole process from then on. What goondan tells passes [`mask`] on its way
//! out, so that also an error or a panic of somebody who was handed the text does not tell it. While there is no secret this
//! costs one look at an atomic.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// What stands in the place of a secret.
const MASK: &str = "***";

/// The fewest characters of a secret that is masked: shorter ones are parts of ordinary words and numbers.
const SHORTEST: usize = 8;

/// What is to be masked, the longest first: one secret may be a part of another.
static KNOWN: RwLock<Vec<Box<str>>> = RwLock::new(Vec::new());

/// Whether there is anything in [`KNOWN`], to be read without the lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// A text that is not told: it prints as `***`, cannot be serialized, and is masked wherever goondan tells something, if it
/// has at least 8 characters. Whoever needs it says [`expose`](Self::expose). It is masked until the process ends.
///
/// The config of an extension can take one:
///
/// ```
/// use goondan::Secret;
/// use goondan::secret::mask;
///
/// #[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
/// struct Config {
///     api_key: Secret,
/// }
/// let config: Config = serde_json::from_str(r#"{ "api_key": "sk-0123456789" }"#)?;
/// assert_eq!(format!("{config:?}"), "Config { api_key: *** }");
/// assert_eq!(config.api_key.expose(), "sk-0123456789");
/// assert_eq!(mask("401 for key sk-0123456789"), "401 for key ***");
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Makes a secret of `text`: from now on it is masked.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        remember(&text);
        Self(text)
    }

    /// The text, for the one place that needs it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(MASK)
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

impl JsonSchema for Secret {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string" })
    }
}

fn remember(text: &str) {
    if text.chars().count() < SHORTEST {
        return;
    }
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for form in forms(text) {
        if !known.contains(&form) {
            known.push(form);
        }
    }
    known.sort_by_key(|form| std::cmp::Reverse(form.len()));
    ANY.store(true, Ordering::Release);
}

/// `text` as it is, and as it stands within quotes: `{:?}` and JSON escape some characters, and one may stand in the other.
fn forms(text: &str) -> Vec<Box<str>> {
    let within = |quoted: String| quoted.get(1..quoted.len() - 1).map(Box::from);
    let mut forms: Vec<Box<str>> = vec![text.into()];
    for _ in 0..2 {
        let escaped = |form: &str| [within(format!("{form:?}")), within(Value::from(form).to_string())];
        let more: Vec<_> = forms.iter().flat_map(|form| escaped(form)).flatten().collect();
        forms.extend(more);
    }
    forms.sort();
    forms.dedup();
    forms
}

/// Whether anything has to be masked.
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Acquire)
}

/// `text` with `***` in the place of every secret of at least 8 characters. Programs that write logs of their own pass their
/// lines through it.
pub fn mask(text: &str) -> Cow<'_, str> {
    if !any() {
        return Cow::Borrowed(text);
    }
    let known = KNOWN.read().unwrap_or_else(PoisonError::into_inner);
    known
        .iter()
        .filter(|secret| text.contains(&***secret))
        .fold(Cow::Borrowed(text), |masked, secret| Cow::Owned(masked.replace(&**secret, MASK)))
}

/// As [`mask`], for a text that is kept.
pub(crate) fn mask_text(text: &mut String) {
    if let Cow::Owned(masked) = mask(text) {
        *text = masked;
    }
}

/// As [`mask`], for a message that may be a constant.
pub(crate) fn masked(text: Cow<'static, str>) -> Cow<'static, str> {
    match mask(&text) {
        Cow::Owned(masked) => Cow::Owned(masked),
        Cow::Borrowed(_) => text,
    }
}

/// As [`mask`], for every text in `value`, the names of members included.
pub fn mask_json(value: &mut Value) {
    if !any() {
        return;
    }
    match value {
        Value::String(text) => mask_text(text),
        Value::Array(items) => items.iter_mut().for_each(mask_json),
        Value::Object(members) => mask_members(members),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// As [`mask_json`], for the members of an object.
pub(crate) fn mask_members(members: &mut Map<String, Value>) {
    if members.keys().any(|name| matches!(mask(name), Cow::Owned(_))) {
        *members = std::mem::take(members).into_iter().map(|(name, value)| (mask(&name).into_owned(), value)).collect();
    }
    members.values_mut().for_each(mask_json);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_in_whatever_form_they_are_told() {
        let secret = Secret::new("multi\nline \"key\" ü\\1");
        for told in [
            secret.expose().to_owned(),
            format!("{:?}", secret.expose()),
            json!({ "a": secret.expose() }).to_string(),
            format!("{:?}", json!({ "a": secret.expose() }).to_string()),
        ] {
            let masked = mask(&told);
            assert!(masked.contains(MASK) && !masked.contains("key"), "{told} became {masked}");
        }
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    }

    #[test]
    fn of_two_secrets_of_which_one_holds_the_other_none_is_left() {
        Secret::new("tail-of-the-long-one");
        Secret::new("the whole tail-of-the-long-one!");
        assert_eq!(mask("<the whole tail-of-the-long-one!> <tail-of-the-long-one>"), "<***> <***>");
    }

    #[test]
    fn short_secrets_are_left_alone() {
        Secret::new("qzx");
        assert_eq!(mask("qzx"), "qzx");
        assert_eq!(format!("{}", Secret::new("qzx")), "***");
    }

    #[test]
    fn json_keeps_its_form() {
        Secret::new("plum-jam-4711");
        let mut value = json!({ "a": ["plum-jam-4711", 4711], "plum-jam-4711": { "b": "my plum-jam-4711" } });
        mask_json(&mut value);
        assert_eq!(value, json!({ "a": ["***", 4711], "***": { "b": "my ***" } }));
    }
}
