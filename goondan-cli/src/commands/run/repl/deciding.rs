//! The question about a tool call that waits, and what a person types at it.
// ASK-01

use goondan::Value;
use goondan::decision::AskedQuestion;

/// An answer that was typed at a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    Yes,
    /// Why the call does not run.
    No(String),
    /// The arguments are to be edited.
    Edit,
    /// Calls like this one are to be approved from now on.
    Always,
    /// A value is to be typed.
    Value,
    /// All of the call is to be shown.
    Details,
    /// A blank line.
    Nothing,
    /// A command of the conversation, such as `/help`.
    Command,
}

/// The answers that a question takes beside yes, no and a reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choices {
    /// Whether the question takes `always`.
    always: bool,
    /// Whether it expects a value that is neither yes nor always.
    value: bool,
    /// Whether a part of the call is not shown yet.
    details: bool,
}

impl Choices {
    pub(crate) fn of(asked: &AskedQuestion, details: bool) -> Self {
        let Some(schema) = &asked.question.schema else { return Self { always: false, value: false, details } };
        let always = find(schema, &|members| members.get("properties").is_some_and(|it| it.get("always").is_some()));
        let yes = find(schema, &|members| match members.get("type") {
            Some(Value::Array(types)) => types.iter().any(|it| it == "boolean"),
            kind => kind.is_none_or(|it| it == "boolean") && !members.contains_key("anyOf"),
        });
        Self { always, value: !yes, details }
    }

    /// Returns the line that says what can be typed.
    pub(crate) fn line(self) -> String {
        let yes = if self.value { "[v]alue" } else { "[y]es" };
        let always = if self.always { "  [a]lways" } else { "" };
        let details = if self.details { "  [d]etails" } else { "" };
        format!("  {yes}  [n]o, or say why not  [e]dit{always}{details}  (Ctrl-C: later)")
    }

    pub(crate) fn parse(self, text: &str) -> Typed {
        let text = text.trim();
        match text.to_lowercase().as_str() {
            "" => Typed::Nothing,
            "y" | "yes" if self.value => Typed::Value,
            "y" | "yes" => Typed::Yes,
            "v" | "value" if self.value => Typed::Value,
            "n" | "no" => Typed::No("the user said no".to_owned()),
            "e" | "edit" => Typed::Edit,
            "a" | "always" if self.always => Typed::Always,
            "d" | "details" if self.details => Typed::Details,
            // A key that this question does not take, and no reason.
            _ if text.chars().count() == 1 => Typed::Nothing,
            _ if text.starts_with("//") => Typed::No(text[1..].to_owned()),
            _ if text.starts_with('/') => Typed::Command,
            _ => Typed::No(text.to_owned()),
        }
    }
}

/// Whether a schema, or one within it, is of this kind.
fn find(schema: &Value, is: &impl Fn(&serde_json::Map<String, Value>) -> bool) -> bool {
    let Value::Object(members) = schema else { return false };
    let within = ["anyOf", "oneOf", "$defs"].into_iter().filter_map(|name| members.get(name)).any(|all| match all {
        Value::Array(items) => items.iter().any(|item| find(item, is)),
        Value::Object(items) => items.values().any(|item| find(item, is)),
        _ => false,
    });
    within || is(members)
}

#[cfg(test)]
mod tests {
    use goondan::decision::{Question, QuestionId};
    use goondan::json;

    use super::*;

    fn choices(schema: Option<Value>) -> Choices {
        let question = Question::new("?");
        let question = schema.into_iter().fold(question, Question::expecting_schema);
        Choices::of(&AskedQuestion::new(QuestionId::new("e".parse().unwrap(), "ask", None), question), false)
    }

    #[test]
    fn a_sentence_is_no_with_a_reason() {
        let plain = choices(None);
        assert_eq!(plain.parse(" Y "), Typed::Yes);
        assert_eq!(plain.parse("a"), Typed::Nothing, "always is not offered");
        assert_eq!(plain.parse("no"), Typed::No("the user said no".to_owned()));
        assert_eq!(plain.parse("not to her"), Typed::No("not to her".to_owned()));
        assert_eq!(
            (plain.parse("/help"), plain.parse("//x"), plain.parse("")),
            (Typed::Command, Typed::No("/x".to_owned()), Typed::Nothing)
        );
    }

    #[test]
    fn the_choices_are_those_of_the_schema() {
        let always = json!({ "type": "object", "properties": { "always": { "type": "boolean" } } });
        let both = choices(Some(
            json!({ "anyOf": [{ "type": "boolean" }, { "$ref": "#/$defs/Always" }], "$defs": { "Always": always } }),
        ));
        assert_eq!((both.parse("a"), both.parse("y")), (Typed::Always, Typed::Yes));
        assert!(both.line().contains("[y]es") && both.line().contains("[a]lways"));
        let form = choices(Some(json!({ "type": "object", "properties": { "account": { "type": "string" } } })));
        assert_eq!((form.parse("y"), form.parse("v")), (Typed::Value, Typed::Value));
        assert_eq!(choices(Some(json!({ "type": "boolean" }))).parse("yes"), Typed::Yes);
    }
}
