//! The answer that a person types at the question about a tool call that waits.
// ASK-01

use goondan::decision::{AnswerKind, AnswerOption, AskedQuestion, Question};
use goondan::{Value, json};

use crate::output::first_line;

/// An answer that was typed at a question.
#[derive(Debug, PartialEq)]
pub(crate) enum Typed {
    /// Yes, with the value that the question expects.
    Yes(Value),
    /// Why the call does not run.
    No(String),
    /// The arguments are to be edited.
    Edit,
    /// A value is to be typed.
    Value,
    /// All of the call is to be shown.
    Details,
    /// A blank line, or a key that the question does not take.
    Nothing,
    /// A command of the conversation, such as `/help`.
    Command,
    /// It is none of the answers.
    Unfit(String),
}

/// The answers that a question takes.
#[derive(Clone, Debug)]
pub(crate) struct Choices {
    kind: AnswerKind,
    /// Whether it takes `always`.
    always: bool,
    /// Whether a part of the call is not shown yet.
    details: bool,
    /// True if the arguments of the call can be edited.
    edit: bool,
}

impl Choices {
    pub(crate) fn of(asked: &AskedQuestion, details: bool) -> Self {
        let Some(schema) = &asked.question.schema else {
            return Self { kind: asked.question.kind(), always: false, details, edit: true };
        };
        let always = find(schema, &|members| members.get("properties").is_some_and(|it| it.get("always").is_some()));
        // Also one that takes yes among others.
        let yes = find(schema, &|members| match members.get("type") {
            Some(Value::Array(types)) => types.iter().any(|it| it == "boolean"),
            kind => {
                kind.is_none_or(|it| it == "boolean")
                    && !["anyOf", "oneOf", "enum"].iter().any(|it| members.contains_key(*it))
            }
        });
        let kind = match asked.question.kind() {
            AnswerKind::Form if yes => AnswerKind::Confirm,
            kind => kind,
        };
        Self { kind, always, details, edit: true }
    }

    /// Those of a live question, whose call runs already.
    // ASK-04
    pub(crate) fn of_live(asked: &AskedQuestion, details: bool) -> Self {
        Self { edit: false, ..Self::of(asked, details) }
    }

    /// Returns the texts that can be completed.
    pub(crate) fn titles(&self) -> Vec<String> {
        match &self.kind {
            AnswerKind::Choose(options) => options.iter().map(|option| option.title.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns whether typed characters are not to be seen.
    pub(crate) fn are_secret(&self) -> bool {
        self.kind == AnswerKind::Secret
    }

    /// Returns the answers in words.
    pub(crate) fn answers(&self) -> &'static str {
        match &self.kind {
            AnswerKind::Choose(_) => "a number or its text  /no, or say why not",
            AnswerKind::ChooseSeveral(_) => "numbers, such as 1 3, or 0 for none  /no, or say why not",
            AnswerKind::Text => "a text  /no and why not",
            AnswerKind::Secret => "a text, which is not shown  /no and why not",
            AnswerKind::Address(_) => "[y]es, when it is done  [n]o, or say why not",
            AnswerKind::Confirm => "[y]es  [n]o, or say why not",
            _ => "[v]alue  [n]o, or say why not",
        }
    }

    /// Returns the line about the possible input.
    pub(crate) fn line(&self) -> String {
        let answers = self.answers();
        // Of a text, each word may be the answer.
        let edit = match (self.edit, self.is_text()) {
            (false, _) => "",
            (true, true) => "  /edit",
            (true, false) => "  [e]dit",
        };
        let always = if self.always { "  [a]lways" } else { "" };
        let details = match (self.details, self.is_text()) {
            (false, _) => "",
            (true, false) => "  [d]etails",
            (true, true) => "  /details",
        };
        let later = if self.edit { "  (Ctrl-C: later)" } else { "" };
        format!("  {answers}{edit}{always}{details}{later}")
    }

    /// Returns whether the answer is JSON or has fields.
    pub(crate) fn is_form(&self) -> bool {
        self.kind == AnswerKind::Form
    }

    fn is_text(&self) -> bool {
        matches!(self.kind, AnswerKind::Text | AnswerKind::Secret)
    }

    pub(crate) fn parse(&self, typed: &str) -> Typed {
        let text = typed.trim();
        let lower = text.to_lowercase();
        match lower.split_once(char::is_whitespace).map_or(&*lower, |(word, _)| word) {
            "" => return Typed::Nothing,
            "/no" => return no(text["/no".len()..].trim()),
            "/edit" if self.edit => return Typed::Edit,
            "/details" if self.details => return Typed::Details,
            word if word.starts_with('/') && !word.starts_with("//") => return Typed::Command,
            _ => {}
        }
        // `//` begins a text with a slash.
        let text = if text.starts_with("//") { &text[1..] } else { text };
        match &self.kind {
            AnswerKind::Text => return Typed::Yes(text.into()),
            // White space may belong to it.
            AnswerKind::Secret => return Typed::Yes(typed.trim_end_matches(['\n', '\r']).into()),
            AnswerKind::Choose(options) => {
                if let Some(option) = chosen(options, text) {
                    return Typed::Yes(option.value.clone());
                }
            }
            AnswerKind::ChooseSeveral(options) => {
                if let Some(typed) = several(options, text) {
                    return typed;
                }
            }
            _ => {}
        }
        match &*lower {
            "y" | "yes" => match self.kind {
                AnswerKind::Confirm | AnswerKind::Address(_) => Typed::Yes(true.into()),
                AnswerKind::Choose(_) | AnswerKind::ChooseSeveral(_) => Typed::Nothing,
                _ => Typed::Value,
            },
            "v" | "value" if self.kind == AnswerKind::Form => Typed::Value,
            "n" | "no" => no(""),
            "e" | "edit" if self.edit => Typed::Edit,
            "a" | "always" if self.always => Typed::Yes(json!({ "always": true })),
            "d" | "details" if self.details => Typed::Details,
            // A key that this question does not take, and no reason.
            _ if text.chars().count() == 1 || text.parse::<i64>().is_ok() => match self.kind {
                AnswerKind::Choose(_) => Typed::Unfit(format!("`{text}` is none of the answers")),
                _ => Typed::Nothing,
            },
            _ => no(text),
        }
    }
}

fn no(reason: &str) -> Typed {
    Typed::No(if reason.is_empty() { "the user said no" } else { reason }.to_owned())
}

/// Returns the option with this number or this text.
fn chosen<'o>(options: &'o [AnswerOption], text: &str) -> Option<&'o AnswerOption> {
    let is_named = |option: &&AnswerOption| option.title.to_lowercase() == text.to_lowercase();
    options.iter().find(is_named).or_else(|| options.get(text.parse::<usize>().ok()?.checked_sub(1)?))
}

/// Returns the options with these numbers, `None` if the text is no list of numbers.
fn several(options: &[AnswerOption], text: &str) -> Option<Typed> {
    let words = text.split([',', ' ']).filter(|word| !word.is_empty());
    let numbers: Vec<usize> = words.map(|word| word.parse().ok()).collect::<Option<_>>()?;
    let mut values = Vec::new();
    for number in numbers.iter().filter(|_| numbers != [0]) {
        match number.checked_sub(1).and_then(|index| options.get(index)) {
            Some(option) if values.contains(&option.value) => {}
            Some(option) => values.push(option.value.clone()),
            None => return Some(Typed::Unfit(format!("`{number}` is none of the answers"))),
        }
    }
    Some(Typed::Yes(Value::Array(values)))
}

/// A field of a form, which a person fills in on a line.
pub(crate) struct Field {
    pub(crate) name: String,
    title: String,
    kind: FieldKind,
    is_required: bool,
    default: Option<Value>,
}

enum FieldKind {
    Text,
    Secret,
    Number,
    YesOrNo,
    Choose(Vec<AnswerOption>),
    ChooseSeveral(Vec<AnswerOption>),
}

/// Returns the fields of a form, or `None` for a schema that has others than lines can fill in.
pub(crate) fn fields(schema: &Value) -> Option<Vec<Field>> {
    let properties = schema.get("properties")?.as_object().filter(|properties| !properties.is_empty())?;
    let required = schema.get("required").and_then(Value::as_array);
    let field = |(name, property): (&String, &Value)| {
        let kind = match Question::new("").expecting_schema(property.clone()).kind() {
            AnswerKind::Text => FieldKind::Text,
            AnswerKind::Secret => FieldKind::Secret,
            AnswerKind::Confirm => FieldKind::YesOrNo,
            AnswerKind::Choose(options) => FieldKind::Choose(options),
            AnswerKind::ChooseSeveral(options) => FieldKind::ChooseSeveral(options),
            _ if is_number(property) => FieldKind::Number,
            _ => return None,
        };
        let text = |member: &str| property.get(member).and_then(Value::as_str);
        let title = text("title").unwrap_or(name);
        Some(Field {
            name: name.clone(),
            title: text("description").map_or_else(|| title.to_owned(), |more| format!("{title}: {more}")),
            kind,
            is_required: required.is_some_and(|names| names.iter().any(|known| known == name)),
            default: property.get("default").cloned(),
        })
    };
    properties.iter().map(field).collect()
}

fn is_number(schema: &Value) -> bool {
    let is_number = |name: &Value| name == "number" || name == "integer";
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().all(|name| is_number(name) || name == "null"),
        name => name.is_some_and(is_number),
    }
}

impl Field {
    /// Returns the lines about the expected input.
    pub(crate) fn page(&self) -> String {
        let (answers, options) = match &self.kind {
            FieldKind::Text => ("a text", None),
            FieldKind::Secret => ("a text, which is not shown", None),
            FieldKind::Number => ("a number", None),
            FieldKind::YesOrNo => ("yes or no", None),
            FieldKind::Choose(options) => ("a number or its text", Some(options)),
            FieldKind::ChooseSeveral(options) => ("numbers, such as 1 3, or 0 for none", Some(options)),
        };
        let rest = if self.is_required { "" } else { "; it may be left out" };
        let mut page = format!("  {} ({answers}{rest})\n", first_line(&self.title, 400));
        for (index, option) in options.into_iter().flatten().enumerate() {
            page.push_str(&format!("  {:>3}  {}\n", index + 1, first_line(&option.title, 200)));
        }
        page
    }

    pub(crate) fn is_secret(&self) -> bool {
        matches!(self.kind, FieldKind::Secret)
    }

    /// Returns the texts that can be completed.
    pub(crate) fn titles(&self) -> Vec<String> {
        match &self.kind {
            FieldKind::Choose(options) => options.iter().map(|option| option.title.clone()).collect(),
            _ => Vec::new(),
        }
    }

    /// Returns the text with which its line begins.
    pub(crate) fn default_text(&self) -> String {
        match &self.default {
            None => String::new(),
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
        }
    }

    /// Returns the value of the typed text, `None` if the field is left out.
    ///
    /// # Errors
    /// The problem, for the person.
    pub(crate) fn parse(&self, typed: &str) -> Result<Option<Value>, String> {
        let text = typed.trim();
        if text.is_empty() {
            return if self.is_required { Err("it is needed".to_owned()) } else { Ok(None) };
        }
        match &self.kind {
            FieldKind::Text => Ok(text.into()),
            FieldKind::Secret => Ok(typed.trim_end_matches(['\n', '\r']).into()),
            FieldKind::Number => match serde_json::from_str(text) {
                Ok(Value::Number(number)) => Ok(number.into()),
                _ => Err(format!("`{text}` is no number")),
            },
            FieldKind::YesOrNo => match &*text.to_lowercase() {
                "y" | "yes" | "true" => Ok(true.into()),
                "n" | "no" | "false" => Ok(false.into()),
                _ => Err("it is yes or no".to_owned()),
            },
            FieldKind::Choose(options) => match chosen(options, text) {
                Some(option) => Ok(option.value.clone()),
                None => Err(format!("`{text}` is none of the answers")),
            },
            FieldKind::ChooseSeveral(options) => match several(options, text) {
                Some(Typed::Yes(values)) => Ok(values),
                Some(Typed::Unfit(problem)) => Err(problem),
                _ => Err("it is a list of numbers".to_owned()),
            },
        }
        .map(Some)
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
    use goondan::decision::QuestionId;

    use super::*;

    fn of(question: Question) -> Choices {
        Choices::of(&AskedQuestion::new(QuestionId::new("e".parse().unwrap(), "ask", None), question), false)
    }

    fn choices(schema: Value) -> Choices {
        of(Question::new("?").expecting_schema(schema))
    }

    fn no(reason: &str) -> Typed {
        Typed::No(reason.to_owned())
    }

    fn yes(value: impl Into<Value>) -> Typed {
        Typed::Yes(value.into())
    }

    #[test]
    fn a_sentence_is_no_with_a_reason() {
        let plain = of(Question::new("?"));
        assert_eq!(plain.parse(" Y "), yes(true));
        assert_eq!(plain.parse("a"), Typed::Nothing, "always is not offered");
        assert_eq!(plain.parse("no"), no("the user said no"));
        assert_eq!(plain.parse("not to her"), no("not to her"));
        assert_eq!(plain.parse("/no not to her"), no("not to her"));
        assert_eq!(
            (plain.parse("/help"), plain.parse("//x"), plain.parse("")),
            (Typed::Command, no("/x"), Typed::Nothing)
        );
    }

    #[test]
    fn the_choices_are_those_of_the_schema() {
        let always = json!({ "type": "object", "properties": { "always": { "type": "boolean" } } });
        let both = choices(
            json!({ "anyOf": [{ "type": "boolean" }, { "$ref": "#/$defs/Always" }], "$defs": { "Always": always } }),
        );
        assert_eq!((both.parse("a"), both.parse("y")), (yes(json!({ "always": true })), yes(true)));
        assert!(both.line().contains("[y]es") && both.line().contains("[a]lways"));
        let form = choices(json!({ "type": "object", "properties": { "account": { "type": "string" } } }));
        assert_eq!((form.parse("y"), form.parse("v")), (Typed::Value, Typed::Value));
        assert_eq!(choices(json!({ "type": "boolean" })).parse("yes"), yes(true));
    }

    #[test]
    fn one_of_several_answers_is_chosen_by_its_number_or_its_text() {
        let one = of(Question::choose("?", ["Post", "Express", "7"]));
        assert_eq!((one.parse("2"), one.parse("post"), one.parse("7")), (yes("Express"), yes("Post"), yes("7")));
        assert_eq!(one.parse("9"), Typed::Unfit("`9` is none of the answers".to_owned()));
        assert_eq!((one.parse("neither of them"), one.parse("n")), (no("neither of them"), no("the user said no")));
        let titled = choices(json!({ "oneOf": [{ "const": 7, "title": "seven" }, { "const": null }] }));
        assert_eq!((titled.parse("Seven"), titled.parse("2")), (yes(7), yes(Value::Null)));
        let several = of(Question::choose_several("?", ["a", "b", "c"]));
        assert_eq!((several.parse("3, 1 3"), several.parse("0")), (yes(json!(["c", "a"])), yes(json!([]))));
        assert_eq!(several.parse("1 4"), Typed::Unfit("`4` is none of the answers".to_owned()));
        assert_eq!(several.parse("none"), no("none"));
    }

    #[test]
    fn each_word_may_be_a_text() {
        for (question, secret) in [(Question::for_text("?"), false), (Question::for_secret("?"), true)] {
            let text = of(question);
            assert_eq!(text.are_secret(), secret);
            assert_eq!((text.parse("no"), text.parse("e")), (yes("no"), yes("e")));
            assert_eq!((text.parse("/no"), text.parse("/edit")), (no("the user said no"), Typed::Edit));
        }
        assert_eq!(of(Question::for_text("?")).parse(" //etc "), yes("/etc"));
        assert_eq!(of(Question::for_secret("?")).parse(" a b "), yes(" a b "));
        let address = of(Question::for_address("?", "https://example.org/"));
        assert_eq!((address.parse("y"), address.parse("it is down")), (yes(true), no("it is down")));
    }

    #[test]
    fn a_form_is_filled_in_by_lines() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "title": "Your name", "description": "as on the card" },
                "code": { "type": "string", "format": "password" },
                "age": { "type": ["integer", "null"], "default": 7 },
                "member": { "type": "boolean" },
                "size": { "type": "string", "enum": ["S", "M"], "enumNames": ["small", "medium"] },
                "days": { "type": "array", "items": { "type": "string", "enum": ["Mo", "Tu"] } },
            },
            "required": ["name"],
        });
        let fields = fields(&schema).unwrap();
        let pages: String = fields.iter().map(Field::page).collect();
        assert_eq!(
            pages,
            "  Your name: as on the card (a text)\n  code (a text, which is not shown; it may be left out)\n  \
             age (a number; it may be left out)\n  member (yes or no; it may be left out)\n  \
             size (a number or its text; it may be left out)\n    1  small\n    2  medium\n  \
             days (numbers, such as 1 3, or 0 for none; it may be left out)\n    1  Mo\n    2  Tu\n"
        );
        assert_eq!((fields[1].is_secret(), fields[2].default_text().as_str()), (true, "7"));
        let typed = ["Ada", " pass word", "36", "no", "medium", "2 1"];
        let form: Value = fields.iter().zip(typed).map(|(field, typed)| field.parse(typed).unwrap().unwrap()).collect();
        assert_eq!(form, json!(["Ada", " pass word", 36, false, "M", ["Tu", "Mo"]]));
        assert_eq!((fields[0].parse(" "), fields[1].parse("")), (Err("it is needed".to_owned()), Ok(None)));
        for (field, typed) in [(2, "many"), (3, "perhaps"), (4, "L"), (5, "3"), (5, "Mo")] {
            assert!(fields[field].parse(typed).is_err(), "{typed}");
        }
        let nested = json!({ "type": "object", "properties": { "a": { "type": "object" } } });
        assert!(super::fields(&nested).is_none() && super::fields(&json!({ "type": "number" })).is_none());
    }
}
