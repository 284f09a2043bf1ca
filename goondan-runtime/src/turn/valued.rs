//! Answers that are values: the check of the final answer of a turn.
// VALUE-01

use std::sync::Arc;

use goondan_core::{AnswerFormat, Error, ErrorCode, Message, MessageEvent, Part, Result, Role, Source, TextPart};
use serde_json::Value;

use crate::schema::{Schema, summary};

/// The value that a turn is to answer with.
pub(crate) struct AwaitedValue {
    format: AnswerFormat,
    schema: Schema,
}

impl AwaitedValue {
    /// # Errors
    /// `E_SCHEMA_INVALID` when the schema is none.
    pub(crate) fn new(format: &AnswerFormat) -> Result<Self> {
        let schema = Schema::compile(&format.schema)?;
        Ok(Self { format: format.clone(), schema })
    }

    pub(super) fn at_most(&self) -> u32 {
        self.format.at_most
    }

    /// Returns the message that tells the model what is expected.
    pub(super) fn instruction(&self) -> MessageEvent {
        let text = format!(
            "When you have all that you need, answer with one JSON value that fits this JSON Schema, and with nothing \
             else: {}",
            self.format.schema
        );
        MessageEvent::Append { message: Arc::new(Message::new(Role::System, text, Source::System)) }
    }

    /// Makes the text of an answer the value that it is.
    ///
    /// # Errors
    /// What is wrong with it, for the model.
    pub(super) fn check(&self, content: &mut Vec<Part>) -> std::result::Result<(), String> {
        let texts = content.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.text.as_str()),
            _ => None,
        });
        let text = texts.collect::<String>();
        let value = read(&text)?;
        let violations = self.schema.violations(&value);
        if !violations.is_empty() {
            return Err(format!("the JSON value does not fit the schema: {}", summary(&violations)));
        }
        content.retain(|part| !matches!(part, Part::Text(_)));
        content.push(TextPart::new(value.to_string()).into());
        Ok(())
    }
}

/// Reads the JSON value that a text is, or that is the one block of code in it.
fn read(text: &str) -> std::result::Result<Value, String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("there is no text".to_owned());
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let mut blocks = text.split("```").skip(1).step_by(2);
    if let (Some(block), None) = (blocks.next(), blocks.next()) {
        let block = block.strip_prefix("json").unwrap_or(block);
        return serde_json::from_str(block.trim())
            .map_err(|error| format!("the block of code is no JSON value: {error}"));
    }
    Err(format!("the text is no JSON value and nothing else: {error}"))
}

/// Returns the words by which the model is asked again.
pub(super) fn value_words(problem: &str) -> String {
    format!(
        "Your last answer could not be used: {problem}. Answer with one JSON value that fits the schema, and with nothing else."
    )
}

/// Returns the error for a turn whose answer is no value, although the model was asked again.
#[cold]
pub(super) fn no_value(problem: &str, attempt: &str) -> Error {
    Error::new(
        ErrorCode::ANSWER_SCHEMA,
        format!("the model gave no value that fits the schema of the answer: {problem}"),
    )
    .with_detail("attempt", attempt)
    .suggest("say in the prompt what the members mean, simplify the schema, or use another model")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(text: &str) -> std::result::Result<String, String> {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        let mut content = vec![TextPart::new(text).into()];
        AwaitedValue::new(&AnswerFormat::new(schema)).unwrap().check(&mut content)?;
        let [Part::Text(text)] = &content[..] else { panic!("{content:?}") };
        Ok(text.text.clone())
    }

    #[test]
    fn a_value_is_the_whole_text_or_the_one_block_of_code() {
        for text in ["{\"n\": 1}", " \n{\"n\":1}\n", "```json\n{\"n\":1}\n```", "Here:\n```\n{\"n\":1}\n```\nDone."] {
            assert_eq!(checked(text).as_deref(), Ok("{\"n\":1}"), "{text}");
        }
    }

    #[test]
    fn what_is_no_value_is_named_with_its_place() {
        for (text, problem) in [
            ("", "there is no text"),
            ("{\"n\":1} {\"n\":2}", "trailing characters at line 1 column 9"),
            ("it is {\"n\":1}", "expected value at line 1 column 1"),
            ("{\"n\":", "EOF while parsing a value at line 1 column 5"),
            ("{\"n\":\"x\"}", "/n: "),
            ("{}", "/: "),
            ("```\n{\n```", "the block of code is no JSON value"),
            ("```\n{\"n\":1}\n```\n```\n{\"n\":2}\n```", "expected value at line 1 column 1"),
        ] {
            let found = checked(text).unwrap_err();
            assert!(found.contains(problem), "{text}: {found}");
        }
    }
}
