//! Secret values and their redaction in logs, errors, events and recorded requests.
//!
//! Creating a [`Secret`] registers its text for the whole process. All output of goondan passes through [`mask`], so an
//! error or a panic of code that was given the text does not reveal it either. While no secret is registered, masking
//! costs one atomic load.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// The text that replaces a secret.
const MASK: &str = "***";

/// The least number of characters of a secret that is masked: shorter ones occur in ordinary words and numbers.
const SHORTEST: usize = 8;

/// The texts to mask, longest first: one secret may be a part of another.
static KNOWN: RwLock<Vec<Box<str>>> = RwLock::new(Vec::new());

/// Whether [`KNOWN`] has any entry, readable without the lock.
static ANY: AtomicBool = AtomicBool::new(false);

/// A text that must not be revealed: it prints as `***`, cannot be serialized, and if it has at least 8 characters,
/// it is masked in all output of goondan until the process ends. [`expose`](Self::expose) returns it.
///
/// The config of an extension can contain one:
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
    /// Makes a secret of `text` and registers it: from now on it is masked.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        register(&text);
        Self(text)
    }

    /// Returns the text, for the code that needs it.
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

/// Adds `text` to the texts that are masked, unless it is too short.
fn register(text: &str) {
    // What reads a file or a header often removes the blanks around a value.
    let texts = [text, text.trim()].into_iter().filter(|text| text.chars().count() >= SHORTEST);
    let mut known = KNOWN.write().unwrap_or_else(PoisonError::into_inner);
    for form in texts.flat_map(forms) {
        if !known.contains(&form) {
            known.push(form);
        }
    }
    known.sort_by_key(|form| std::cmp::Reverse(form.len()));
    ANY.store(!known.is_empty(), Ordering::Release);
}

/// Returns `text` as it is and with its characters escaped: by `{:?}`, by JSON, and by one inside the other.
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

/// Returns whether any secret is registered.
pub(crate) fn any() -> bool {
    ANY.load(Ordering::Acquire)
}

/// Returns `text` with `***` instead of every secret of at least 8 characters. Programs that write their own logs pass
/// each line through it.
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

/// Masks `text` in place; see [`mask`].
pub(crate) fn mask_text(text: &mut String) {
    if let Cow::Owned(masked) = mask(text) {
        *text = masked;
    }
}

/// Masks a text that may be a constant, which is not copied unless it changes; see [`mask`].
pub(crate) fn mask_cow(text: Cow<'static, str>) -> Cow<'static, str> {
    match mask(&text) {
        Cow::Owned(masked) => Cow::Owned(masked),
        Cow::Borrowed(_) => text,
    }
}

/// Masks every text in `value`, the names of members included; see [`mask`].
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

/// Masks the names and values of the members of an object; see [`mask_json`].
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
    fn secrets_are_masked_escaped_or_not() {
        let secret = Secret::new("multi\nline \"key\" ü\\1");
        for output in [
            secret.expose().to_owned(),
            format!("{:?}", secret.expose()),
            json!({ "a": secret.expose() }).to_string(),
            format!("{:?}", json!({ "a": secret.expose() }).to_string()),
        ] {
            let masked = mask(&output);
            assert!(masked.contains(MASK) && !masked.contains("key"), "{output} became {masked}");
        }
        assert_eq!(format!("{secret} {secret:?}"), "*** ***");
    }

    #[test]
    fn a_secret_is_masked_without_the_blanks_around_it_too() {
        let _padded = Secret::new(" padded-with-blanks\n");
        assert_eq!(mask("the key is padded-with-blanks"), "the key is ***");
        let _short = Secret::new("           q");
        assert_eq!(mask("q"), "q", "a part that is too short is left alone");
    }

    #[test]
    fn a_secret_within_another_secret_is_masked_too() {
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
