//! The texts of capabilities. Different settings have different texts.

use serde_json::Value;

use super::CapabilityKind;
use super::marks::Marked;

/// Returns the capabilities of a marked setting, as texts. One that is `null` or `false` has none.
pub(super) fn texts(kind: CapabilityKind, marked: &Marked<'_>) -> Vec<String> {
    let Marked { kind: mark, text, name, value } = *marked;
    match (kind, value) {
        (_, Value::Null | Value::Bool(false)) => Vec::new(),
        (_, _) if let Some(text) = text => vec![text.to_owned()],
        (CapabilityKind::Command, Value::Array(words)) => {
            Vec::from_iter((!words.is_empty()).then(|| words.iter().map(shown).collect::<Vec<_>>().join(" ")))
        }
        (CapabilityKind::Variable, Value::Object(variables)) => {
            variables.iter().map(|(name, value)| format!("{}={}", word(name), shown(value))).collect()
        }
        (CapabilityKind::Host, Value::Object(hosts)) => hosts.keys().map(|url| host(url)).collect(),
        (CapabilityKind::Host, value) => leaves(value).map(host).collect(),
        (CapabilityKind::Shell, _) => vec![name.to_owned()],
        // A list that limits: only an empty one lifts the limit.
        (CapabilityKind::Setting, value) if mark == "limit" => {
            Vec::from_iter(value.as_array().filter(|list| list.is_empty()).map(|_| format!("{name}: []")))
        }
        (CapabilityKind::Setting, value) => vec![format!("{name}: {}", seen(&value.to_string()))],
        (_, value) => leaves(value).map(word).collect(),
    }
}

/// Returns all texts in a value.
pub(super) fn leaves(value: &Value) -> Box<dyn Iterator<Item = &str> + '_> {
    match value {
        Value::Array(items) => Box::new(items.iter().flat_map(leaves)),
        Value::Object(members) => Box::new(members.values().flat_map(leaves)),
        value => Box::new(value.as_str().into_iter()),
    }
}

fn shown(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), word)
}

/// Whether a person sees the character as it is. Others could hide or reorder their neighbours.
fn is_seen(char: char) -> bool {
    "\"'\\".contains(char) || char.escape_debug().count() == 1
}

/// Returns a text in which a person sees all characters.
fn seen(text: &str) -> String {
    let shown = |char: char| if is_seen(char) { char.to_string() } else { char.escape_debug().to_string() };
    text.chars().map(shown).collect()
}

/// Returns a text as a word of one line: in quotes unless it is plain.
pub(super) fn word(text: &str) -> String {
    let is_plain = |char: char| !char.is_whitespace() && is_seen(char) && !"\"'\\,;".contains(char);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("{text:?}") }
}

/// Returns the scheme, the host and the port of a URL; another text as it is.
pub(super) fn host(url: &str) -> String {
    let origin = url.split_once("://").and_then(|(scheme, rest)| {
        // A browser takes a backslash for a slash.
        let authority = rest.split(['/', '\\', '?', '#']).next().filter(|authority| !authority.is_empty())?;
        Some(word(&format!("{}://{}", scheme.to_lowercase(), authority.to_lowercase())))
    });
    origin.unwrap_or_else(|| word(url))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(mark: &str, value: Value) -> Vec<String> {
        texts(CapabilityKind::of(mark), &Marked { kind: mark, text: None, name: "name", value: &value })
    }

    #[test]
    fn each_kind_has_its_text() {
        let nothing = [""; 0];
        assert_eq!(of("command", json!(["npx", "foo"])), ["npx foo"]);
        assert_eq!(of("command", json!(["sh", "-c", "a b"])), [r#"sh -c "a b""#]);
        assert_eq!(of("command", json!("ls")), ["ls"]);
        assert_eq!(of("command", json!([])), nothing);
        assert_eq!(of("variable", json!({ "A": "b", "C": "d e" })), ["A=b", r#"C="d e""#]);
        assert_eq!(of("host", json!({ "https://a.b/c": {} })), ["https://a.b"]);
        assert_eq!(of("host", json!(["localhost"])), ["localhost"]);
        assert_eq!(of("root", json!(["..", "a b"])), ["..", r#""a b""#]);
        assert_eq!(of("shell", json!(true)), ["name"]);
        assert_eq!(of("shell", json!(false)), nothing);
        assert_eq!(of("limit", json!([])), ["name: []"]);
        assert_eq!(of("limit", json!(["a"])), nothing);
        assert_eq!(of("limit", Value::Null), nothing);
        assert_eq!(of("newer", json!({ "a": 1 })), [r#"name: {"a":1}"#]);
    }

    #[test]
    fn nothing_hides_or_reorders_what_a_person_reads() {
        assert_eq!(of("command", json!(["run", "\u{202e}gpj.x"])), [r#"run "\u{202e}gpj.x""#]);
        assert_eq!(of("root", json!(["a\u{200b}b", "a\u{1b}[2K"])), [r#""a\u{200b}b""#, r#""a\u{1b}[2K""#]);
        assert_eq!(of("newer", json!("é\u{2066}x")), [r#"name: "é\u{2066}x""#]);
        assert_eq!(of("root", json!(["größe/日本"])), ["größe/日本"]);
    }

    #[test]
    fn a_host_is_the_same_on_all_paths_and_no_other() {
        for url in ["https://a.b/x", "HTTPS://A.b?y", "https://a.b\\@c", "https://a.b#z"] {
            assert_eq!(host(url), "https://a.b");
        }
        let others = ["http://a.b", "https://a.b:8", "https://u@a.b", "https:///a.b", "https:a.b", "https://a.b\t.c"];
        for url in others {
            assert_ne!(host(url), "https://a.b", "{url}");
        }
        assert_ne!(host("https:///a.b"), host("https:///c"));
    }
}
