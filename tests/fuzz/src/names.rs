//! Target `names`: any text where a name is expected.

use std::sync::LazyLock;

use goondan::event::EventPattern;
use goondan::name::{ExtensionName, InstanceKey, ToolName};
use regex::Regex;

/// The grammars of the requirements (TOOL-01, D-04), which goondan parses by hand.
static TOOL: LazyLock<Regex> =
    LazyLock::new(|| grammar(r"^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*__[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*\z"));
static KEBAB: LazyLock<Regex> = LazyLock::new(|| grammar(r"^[a-z][a-z0-9]*(-[a-z0-9]+)*\z"));

fn grammar(text: &str) -> Regex {
    Regex::new(text).expect("a grammar")
}

/// Reads `data` as every kind of name. A name is accepted exactly when the grammar accepts it, and is then unchanged.
pub fn names(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let legal = TOOL.is_match(text) && text.len() <= 64;
    assert_eq!(ToolName::new(text).is_ok(), legal, "the tool name {text:?}");
    if let Ok(name) = ToolName::new(text) {
        assert_eq!(format!("{}__{}", name.resource(), name.tool()), text);
    }
    let legal = KEBAB.is_match(text) && text.len() <= 63;
    assert_eq!(ExtensionName::new(text).is_ok(), legal, "the extension name {text:?}");
    if let Ok(key) = InstanceKey::new(text) {
        assert_eq!(key.as_str(), text);
    }
    if let Ok(pattern) = text.parse::<EventPattern>() {
        assert_eq!(pattern.to_string(), text);
    }
}
