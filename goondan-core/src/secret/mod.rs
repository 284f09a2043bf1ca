//! Secret values and their redaction in logs, errors, events and recorded requests.
//!
//! The text of a [`Secret`] is masked in the whole process as long as a clone of the secret exists. All output of
//! goondan passes through [`mask`], so an error or a panic of code that was given the text does not reveal it either.
//! While there is no secret, masking costs one atomic load.
//!
//! - `known`: the texts that are masked
//! - `host`: in a library, the program that masks them too

mod host;
mod known;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use host::InHost;
pub use host::{SecretHost, set_secret_host};
pub use known::{Masked, any};

/// The text that replaces a secret.
const MASK: &str = "***";

/// The least number of characters of a secret that is masked: shorter ones occur in ordinary words and numbers.
const SHORTEST: usize = 8;

/// A text that must not be revealed: it prints as `***`, cannot be serialized, and if it has at least 8 characters,
/// it is masked in all output of goondan. [`expose`](Self::expose) returns it.
///
/// It is masked until the last clone is dropped, so keep a clone for as long as the text is used: a token that was
/// replaced is forgotten. Longer than that it is masked in the causes of errors that have it, and after a panic that
/// dropped it. A secret that an extension in a library makes is masked in the program too.
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
pub struct Secret(Arc<Inner>);

struct Inner {
    text: Arc<str>,
    /// Dropped with the last clone.
    _masked: Masked,
    /// As above, in the program that loaded this library.
    _in_host: Option<InHost>,
}

impl Secret {
    /// Makes a secret of `text`, which is masked as long as the secret exists.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let (masked, in_host) = (Masked::new(masked_forms(&text)), InHost::remember(&text));
        Self(Arc::new(Inner { text, _masked: masked, _in_host: in_host }))
    }

    /// Returns the text, for the code that needs it.
    pub fn expose(&self) -> &str {
        &self.0.text
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
        schemars::json_schema!({ "type": "string", "format": "password", "writeOnly": true })
    }
}

/// Returns the forms of `text` that are masked: none if it is too short.
fn masked_forms(text: &str) -> Vec<Box<str>> {
    // Readers of files and headers often remove the blanks around a value.
    let trimmed = Some(text.trim()).filter(|trimmed| *trimmed != text);
    let texts = [Some(text), trimmed].into_iter().flatten().filter(|text| text.chars().count() >= SHORTEST);
    let mut forms: Vec<_> = texts.flat_map(forms).collect();
    forms.sort();
    forms.dedup();
    forms
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
    forms
}

/// Returns `text` with `***` instead of every secret of at least 8 characters. Programs that write their own logs pass
/// each line through it.
pub fn mask(text: &str) -> Cow<'_, str> {
    if !any() {
        return Cow::Borrowed(text);
    }
    let mut masked = Cow::Borrowed(text);
    known::for_each(|secret| {
        if masked.contains(secret) {
            masked = Cow::Owned(masked.replace(secret, MASK));
        }
    });
    masked
}

/// Masks `text` in place; see [`mask`].
pub fn mask_text(text: &mut String) {
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
pub fn mask_members(members: &mut Map<String, Value>) {
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
        let _part = Secret::new("tail-of-the-long-one");
        let _whole = Secret::new("the whole tail-of-the-long-one!");
        assert_eq!(mask("<the whole tail-of-the-long-one!> <tail-of-the-long-one>"), "<***> <***>");
    }

    #[test]
    fn short_secrets_are_left_alone() {
        let _short = Secret::new("qzx");
        assert_eq!(mask("qzx"), "qzx");
        assert_eq!(format!("{}", Secret::new("qzx")), "***");
    }

    #[test]
    fn json_keeps_its_form() {
        let _secret = Secret::new("plum-jam-4711");
        let mut value = json!({ "a": ["plum-jam-4711", 4711], "plum-jam-4711": { "b": "my plum-jam-4711" } });
        mask_json(&mut value);
        assert_eq!(value, json!({ "a": ["***", 4711], "***": { "b": "my ***" } }));
    }
}
