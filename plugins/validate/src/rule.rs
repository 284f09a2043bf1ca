//! One rule: the arguments to which it applies, and its effect on them. It is pure: the middleware logs.

use std::num::NonZeroUsize;

use goondan::{Error, Map, Result, Value};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer};
use wildmatch::WildMatch;

/// The reference limit for the text of a shell command (PATTERN-VALIDATE-01).
pub(crate) const SHELL_COMMAND: NonZeroUsize = NonZeroUsize::new(10_000).unwrap();

/// A rule for one argument of some tools. Its members are applied in their order.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rule {
    /// The tools: a name, or a pattern in which `*` matches any text and `?` one character, such as `bash__*`.
    #[serde(deserialize_with = "pattern")]
    #[schemars(with = "String", length(min = 1))]
    pub tool: WildMatch,
    /// The argument, as a JSON pointer: `/command`. A rule for a list or an object applies to all text in it; without a
    /// path, it applies to all text in the arguments.
    #[serde(default)]
    #[schemars(regex(pattern = r"^(/|$)"))]
    pub path: String,
    /// Refuses the call when the argument is absent or null.
    #[serde(default)]
    pub require: bool,
    /// Replaces a text by another one, wherever it occurs.
    pub replace: Option<Replace>,
    /// Refuses the call when one of these occurs in the text.
    #[serde(default)]
    #[schemars(inner(length(min = 1)))]
    pub deny: Vec<String>,
    /// Cuts the text to this number of characters.
    pub max_length: Option<NonZeroUsize>,
}

/// A text and its replacement.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Replace {
    /// The text to replace.
    #[schemars(length(min = 1))]
    pub from: String,
    /// The replacement.
    pub to: String,
}

/// A text that was cut.
#[derive(Debug, PartialEq)]
pub(crate) struct Cut {
    /// The number of characters that it had.
    pub(crate) length: usize,
    /// The number of characters that it has now.
    pub(crate) limit: NonZeroUsize,
}

impl Rule {
    /// A rule that only cuts.
    pub(crate) fn max_length(tool: &str, path: &str, limit: NonZeroUsize) -> Self {
        Self {
            tool: WildMatch::new(tool),
            path: path.to_owned(),
            require: false,
            replace: None,
            deny: Vec::new(),
            max_length: Some(limit),
        }
    }

    /// Whether the rule has no effect on any arguments, because none of its members has one.
    pub(crate) fn has_no_effect(&self) -> bool {
        !self.require && self.replace.is_none() && self.deny.is_empty() && self.max_length.is_none()
    }

    /// Whether the rule applies to the tool `name`.
    pub(crate) fn is_for(&self, name: &str) -> bool {
        self.tool.matches(name)
    }

    /// Applies the rule to `args`, and returns the texts that were cut.
    ///
    /// # Errors
    /// `E_VALIDATE_REFUSED` when the call must not run; the message is for the model.
    pub(crate) fn apply(&self, tool: &str, args: &mut Map<String, Value>) -> Result<Vec<Cut>> {
        let mut cuts = Vec::new();
        // `pointer_mut` needs a value, so the map is moved into one and back.
        let mut whole = Value::Object(std::mem::take(args));
        let outcome = match whole.pointer_mut(&self.path) {
            Some(Value::Null) | None if self.require => Err(self.refusal(tool, "is missing", "call the tool with it")),
            None => Ok(()),
            Some(found) => self.rewrite(tool, found, &mut cuts),
        };
        if let Value::Object(object) = whole {
            *args = object;
        }
        outcome.map(|()| cuts)
    }

    fn rewrite(&self, tool: &str, value: &mut Value, cuts: &mut Vec<Cut>) -> Result<()> {
        match value {
            Value::String(text) => self.rewrite_text(tool, text, cuts),
            Value::Array(items) => items.iter_mut().try_for_each(|item| self.rewrite(tool, item, cuts)),
            Value::Object(members) => members.values_mut().try_for_each(|member| self.rewrite(tool, member, cuts)),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn rewrite_text(&self, tool: &str, text: &mut String, cuts: &mut Vec<Cut>) -> Result<()> {
        if let Some(Replace { from, to }) = self.replace.as_ref().filter(|replace| text.contains(&replace.from)) {
            *text = text.replace(from, to);
        }
        if let Some(denied) = self.deny.iter().find(|denied| text.contains(*denied)) {
            return Err(self.refusal(tool, &format!("contains `{denied}`"), "call the tool without it"));
        }
        if let Some(limit) = self.max_length
            && let Some((end, _)) = text.char_indices().nth(limit.get())
        {
            cuts.push(Cut { length: text.chars().count(), limit });
            text.truncate(end);
        }
        Ok(())
    }

    fn refusal(&self, tool: &str, why: &str, cure: &'static str) -> Error {
        let argument = if self.path.is_empty() { "an argument" } else { &format!("the argument `{}`", self.path) };
        Error::new("E_VALIDATE_REFUSED", format!("`{tool}` was not run, because {argument} {why}")).suggest(cure)
    }
}

fn pattern<'de, D: Deserializer<'de>>(text: D) -> Result<WildMatch, D::Error> {
    String::deserialize(text).map(|text| WildMatch::new(&text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use goondan::json;

    fn rule(members: Value) -> Rule {
        let mut rule = json!({ "tool": "*" });
        rule.as_object_mut().unwrap().append(&mut members.as_object().unwrap().clone());
        Rule::deserialize(rule).unwrap()
    }

    fn apply(members: Value, args: Value) -> Result<Value, String> {
        let mut args = args.as_object().unwrap().clone();
        let outcome = rule(members).apply("bash__run", &mut args);
        outcome.map(|_| Value::Object(args)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_star_matches_any_text() {
        for (pattern, name, expected) in [
            ("bash__*", "bash__run", true),
            ("bash__*", "bash__", true),
            ("bash__*", "my-bash__run", false),
            ("*", "anything", true),
            ("*__write", "file__write", true),
            ("*__write", "file__write_all", false),
            ("file__read", "file__read", true),
            ("file__read", "file__read2", false),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "acb", false),
            ("ab*b", "ab", false),
            ("file__r?ad", "file__read", true),
            ("file__r?ad", "file__rad", false),
            ("*é*", "café__x", true),
        ] {
            assert_eq!(rule(json!({ "tool": pattern })).is_for(name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn text_is_cut_between_characters_and_nothing_else_is_touched() {
        let members = json!({ "path": "/command", "maxLength": 3 });
        for (text, expected) in [("", ""), ("abc", "abc"), ("abcd", "abc"), ("äöü", "äöü"), ("äö😀ü", "äö😀")]
        {
            let args = json!({ "command": text, "other": "untouched", "n": 1 });
            let expected = json!({ "command": expected, "other": "untouched", "n": 1 });
            assert_eq!(apply(members.clone(), args), Ok(expected));
        }
        let cuts = rule(members).apply("bash__run", json!({ "command": "äöüß" }).as_object_mut().unwrap()).unwrap();
        assert_eq!(cuts, [Cut { length: 4, limit: NonZeroUsize::new(3).unwrap() }]);
    }

    #[test]
    fn a_rule_for_a_list_or_an_object_applies_to_all_text_in_it() {
        let members = json!({ "path": "/argv", "deny": ["--force"] });
        let args = json!({ "argv": ["git", { "flags": ["push", "--force"] }] });
        assert!(apply(members.clone(), args).unwrap_err().contains("`/argv` contains `--force`"));
        assert_eq!(apply(members, json!({ "argv": [1, null, true] })), Ok(json!({ "argv": [1, null, true] })));
        assert_eq!(
            apply(json!({ "replace": { "from": "a", "to": "b" } }), json!({ "x": "aa", "y": { "z": "a" } })),
            Ok(json!({ "x": "bb", "y": { "z": "b" } })),
            "without a path a rule applies to all arguments"
        );
    }

    #[test]
    fn what_was_replaced_is_denied_before_it_is_cut() {
        let members = json!({ "deny": ["rm -rf"], "replace": { "from": "remove", "to": "rm -rf" }, "maxLength": 2 });
        assert!(apply(members.clone(), json!({ "command": "remove /" })).is_err());
        assert_eq!(apply(members, json!({ "command": "list /" })), Ok(json!({ "command": "li" })));
    }

    #[test]
    fn a_refused_call_keeps_its_arguments() {
        let mut args = json!({ "command": "x", "path": null });
        let args = args.as_object_mut().unwrap();
        let error = rule(json!({ "path": "/path", "require": true })).apply("file__read", args).unwrap_err();
        assert_eq!(error.code(), "E_VALIDATE_REFUSED");
        assert_eq!(error.message(), "`file__read` was not run, because the argument `/path` is missing");
        assert_eq!(Value::Object(args.clone()), json!({ "command": "x", "path": null }));
        assert!(rule(json!({ "path": "/path" })).apply("file__read", args).is_ok(), "absent is legal unless required");
    }
}
