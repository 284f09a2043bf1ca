//! Answers that are values: how a model is asked for one, and the faults of an answer.
// VALUE-01

use goondan_core::{
    AnswerFormat, Effect, ModelFinish, ModelOptions, Part, Result, TextPart, ToolCatalog, ToolChoice, ToolItem,
};
use serde_json::{Map, Value, json};

use crate::ports::model::{Model, ModelRequest, ValueBy};
use crate::schema::{Schema, summary};

/// The tool by which a model gives the value, if it is not held to a schema.
const TOOL: &str = "goondan__answer";

/// The member of the object in which a value is that is no object. Providers and tools take objects alone.
const MEMBER: &str = "value";

/// The value that is expected as an answer.
pub(crate) struct AwaitedValue {
    format: AnswerFormat,
    schema: Schema,
    /// The schema of the object that the model gives: the value, or one with the value as its member.
    object: Map<String, Value>,
    is_member: bool,
}

impl AwaitedValue {
    /// # Errors
    /// `E_SCHEMA_INVALID` when the schema is none.
    pub(crate) fn new(format: &AnswerFormat) -> Result<Self> {
        let schema = Schema::compile(&format.schema)?;
        let object = format.schema.as_object().filter(|schema| schema.get("type").is_some_and(|kind| kind == "object"));
        let (object, is_member) = match object {
            Some(object) => (object.clone(), false),
            None => (as_member(format.schema.clone()), true),
        };
        Ok(Self { format: format.clone(), schema, object, is_member })
    }

    /// Returns the schema of the object that the model gives.
    pub(crate) fn object(&self) -> &Map<String, Value> {
        &self.object
    }

    /// Returns how often the model is asked again.
    pub(crate) fn at_most(&self) -> u32 {
        self.format.at_most
    }

    /// Chooses how `model` is asked for the value by `request`. A choice of layers stays.
    pub(crate) fn choose(&self, model: &dyn Model, request: &ModelRequest<'_>) -> ValueBy {
        let is_chosen = |options: &ModelOptions| options.response_format.is_some() || options.tool_choice.is_some();
        match request.options().is_some_and(is_chosen) {
            true => ValueBy::Tool,
            false => model.value_by(request, &self.object),
        }
    }

    /// Changes the tools and the options of the request accordingly.
    ///
    /// # Errors
    /// None, since the name of the tool is legal.
    pub(crate) fn offer(
        &self,
        by: ValueBy,
        tools: &mut ToolCatalog,
        options: &mut Option<Box<ModelOptions>>,
    ) -> Result<()> {
        if by != ValueBy::Schema {
            tools.insert(self.tool()?);
        }
        if by == ValueBy::RequiredTool {
            options.get_or_insert_default().tool_choice = Some(ToolChoice::Required);
        }
        Ok(())
    }

    fn tool(&self) -> Result<ToolItem> {
        let tool =
            ToolItem::new(TOOL)?.describe("Gives the final answer. Call it alone, and when nothing else is left.");
        Ok(tool.parameters(Value::Object(self.object.clone())).effect(Effect::Read))
    }

    /// Returns the words by which a model is told of the tool, if it is not held to the value otherwise.
    pub(crate) fn instruction(by: ValueBy) -> Option<String> {
        (by == ValueBy::Tool)
            .then(|| format!("When you have all that you need, give your answer by calling the tool `{TOOL}`."))
    }

    /// Puts the value that a call gives in place of the call, as text, and returns where that is. A call beside those
    /// of other tools is left out: their results may change the answer.
    pub(crate) fn take_call(content: &mut Vec<Part>, finish: &mut Option<ModelFinish>) -> Option<usize> {
        let is_value = |part: &Part| matches!(part, Part::ToolCall(call) if call.tool_name == TOOL);
        let is_other = |part: &Part| matches!(part, Part::ToolCall(_)) && !is_value(part);
        if content.iter().any(is_other) {
            content.retain(|part| !is_value(part));
            return None;
        }
        let at = content.iter().position(is_value)?;
        if let Part::ToolCall(call) = &content[at] {
            // Arguments that are no JSON are a text.
            let text = call.input.as_str().map_or_else(|| call.input.to_string(), str::to_owned);
            content[at] = TextPart::new(text).into();
        }
        // The first one counts.
        content.retain(|part| !is_value(part));
        if *finish == Some(ModelFinish::ToolCalls) {
            *finish = Some(ModelFinish::Stop);
        }
        Some(at)
    }

    /// Removes all texts but the part `at`, which is the value.
    pub(crate) fn keep(content: &mut Vec<Part>, at: usize) {
        let mut index = 0;
        content.retain(|part| {
            index += 1;
            index == at + 1 || !matches!(part, Part::Text(_))
        });
    }

    /// Returns the JSON text of the value in an answer.
    ///
    /// # Errors
    /// The words for the model about the fault.
    pub(crate) fn read(&self, text: &str) -> std::result::Result<String, String> {
        let (json, value) = read(text)?;
        let member = value.as_object().filter(|members| self.is_member && members.len() == 1);
        let of_member = member.and_then(|members| members.get(MEMBER)).map(|value| (value, self.problem(value)));
        if let Some((value, None)) = of_member {
            return Ok(value.to_string());
        }
        match self.problem(&value) {
            None => Ok(json.to_owned()),
            Some(problem) => {
                let problem = of_member.and_then(|(_, problem)| problem).unwrap_or(problem);
                Err(format!("the JSON value does not fit the schema: {problem}"))
            }
        }
    }

    fn problem(&self, value: &Value) -> Option<String> {
        let violations = self.schema.violations(value);
        (!violations.is_empty()).then(|| summary(&violations))
    }

    /// Returns the words by which the model is asked again.
    pub(crate) fn words(&self, problem: &str) -> String {
        let schema = &self.format.schema;
        format!(
            "Your last answer could not be used: {problem}. Give one JSON value that fits this JSON Schema: {schema}"
        )
    }
}

/// Returns the schema of an object whose member fits `schema`.
fn as_member(mut schema: Value) -> Map<String, Value> {
    refer_to_member(&mut schema);
    let mut object = Map::new();
    if let Some(members) = schema.as_object_mut() {
        for name in ["$schema", "$defs", "definitions"] {
            object.extend(members.remove_entry(name));
        }
    }
    let rest = json!({ "type": "object", "properties": { MEMBER: schema }, "required": [MEMBER] });
    if let Value::Object(rest) = rest {
        object.extend(rest);
    }
    object
}

/// Makes references to the whole schema refer to it as the schema of the member.
fn refer_to_member(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::String(of)) = members.get_mut("$ref")
                && let Some(rest) = of.strip_prefix('#')
                && !rest.starts_with("/$defs/")
                && !rest.starts_with("/definitions/")
            {
                *of = format!("#/properties/{MEMBER}{rest}");
            }
            members.values_mut().for_each(refer_to_member);
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_member),
        _ => {}
    }
}

/// Reads the JSON value that a text is, or that is the one block of code in it.
fn read(text: &str) -> std::result::Result<(&str, Value), String> {
    let text = text.trim();
    if text.is_empty() {
        return Err("there is no text".to_owned());
    }
    let error = match serde_json::from_str(text) {
        Ok(value) => return Ok((text, value)),
        Err(error) => error,
    };
    let mut blocks = text.split("```").skip(1).step_by(2);
    if let (Some(block), None) = (blocks.next(), blocks.next()) {
        let block = block.strip_prefix("json").unwrap_or(block).trim();
        return match serde_json::from_str(block) {
            Ok(value) => Ok((block, value)),
            Err(error) => Err(format!("the block of code is no JSON value: {error}")),
        };
    }
    Err(format!("the text is no JSON value and nothing else: {error}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn checked(text: &str) -> std::result::Result<String, String> {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } }, "required": ["n"] });
        AwaitedValue::new(&AnswerFormat::new(schema)).unwrap().read(text)
    }

    #[test]
    fn a_value_is_the_whole_text_or_the_one_block_of_code() {
        for text in ["{\"n\":1}", " \n{\"n\":1}\n", "```json\n{\"n\":1}\n```", "Here:\n```\n{\"n\":1}\n```\nDone."] {
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

    #[test]
    fn a_value_that_is_no_object_is_a_member_of_one() {
        let list = json!({
            "type": "array",
            "items": { "anyOf": [{ "$ref": "#" }, { "$ref": "#/$defs/leaf" }] },
            "$defs": { "leaf": { "type": "integer" } }
        });
        let awaited = AwaitedValue::new(&AnswerFormat::new(list)).unwrap();
        let whole = Schema::compile(&Value::Object(awaited.object().clone())).unwrap();
        for (value, fits) in [(json!([1, [2]]), true), (json!([["x"]]), false)] {
            let object = json!({ MEMBER: value });
            assert_eq!(whole.violations(&object).is_empty(), fits, "{object}");
            for given in [&object, &object[MEMBER]] {
                assert_eq!(awaited.read(&given.to_string()).ok(), fits.then(|| value.to_string()));
            }
        }
        let anything = AwaitedValue::new(&AnswerFormat::new(json!({}))).unwrap();
        assert_eq!(anything.read(r#"{"value":7}"#).as_deref(), Ok("7"));
        assert_eq!(anything.read(r#"{"values":7}"#).as_deref(), Ok(r#"{"values":7}"#));
    }
}
