//! Registrations of tools, and calls of their handlers.

use std::time::Duration;

use goondan::ErrorCode;
use goondan::extension::Extension;
use goondan::prelude::*;
use goondan::tool::Effect;
use serde_json::{Value, json};

use crate::support::register;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NoteInput {
    /// What to write down.
    text: String,
    #[serde(default)]
    at_line: u8,
}

#[derive(Serialize)]
struct Note {
    text: String,
    by: String,
}

#[derive(Deserialize, JsonSchema)]
struct Notes {
    author: String,
}

#[goondan::extension(name = "notes")]
impl Notes {
    #[init]
    fn new(config: Self) -> Self {
        config
    }

    /// Writes a note down.
    ///
    /// Lines count from "0".
    #[tool(name = "notes__add", effect = once, timeout = "1m 30s")]
    async fn add(&self, ctx: &ToolContext<'_>, input: NoteInput, api: &ExtensionApi) -> Result<Note> {
        api.state().update(|lines: &mut u64| *lines += 1)?;
        let by = format!("{} {} {}", self.author, ctx.tool_name(), ctx.call_id());
        Ok(Note { text: format!("{}: {}", input.at_line, input.text), by })
    }

    #[tool(effect = read, timeout = "500ms")]
    async fn r#match(
        &self,
        api: &ExtensionApi,
        NoteInput { text, .. }: NoteInput,
        _: &ToolContext<'_>,
    ) -> Result<String> {
        Ok(format!("{text} {api:?}"))
    }

    #[tool(effect = idempotent)]
    async fn clear(&self) -> Result<(), std::num::ParseIntError> {
        self.author.parse::<u8>().map(|_| ())
    }

    #[tool]
    async fn raw(&self, input: Value) -> Result<Option<Value>> {
        Ok(Some(input))
    }

    /// A plain function, which runs on another thread.
    #[tool(blocking, timeout = "2h")]
    fn scan(&self, api: &ExtensionApi, input: NoteInput) -> Result<Vec<String>> {
        api.events().emit("notes.scanned", ());
        assert_ne!(input.text, "panic", "as requested");
        let thread = std::thread::current().name().unwrap_or_default().to_owned();
        Ok(vec![self.author.clone(), input.text, thread])
    }

    #[tool(blocking)]
    fn rest(&self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn tools_are_registered_as_they_were_declared() {
    let items: Vec<_> =
        register::<Notes>(json!({ "author": "ann" })).unwrap().tools().into_iter().map(|(item, _)| item).collect();
    let seen: Vec<_> = items.iter().map(|item| (item.name.as_str(), item.effect, item.timeout)).collect();
    assert_eq!(
        seen,
        [
            ("notes__add", Effect::Once, Some(Duration::from_secs(90))),
            ("notes__match", Effect::Read, Some(Duration::from_millis(500))),
            ("notes__clear", Effect::Idempotent, None),
            ("notes__raw", Effect::Once, None),
            ("notes__scan", Effect::Once, Some(Duration::from_secs(7200))),
            ("notes__rest", Effect::Once, None),
        ]
    );
    assert_eq!(items[0].description.as_deref(), Some("Writes a note down.\n\nLines count from \"0\"."));
    assert_eq!(items[1].description, None);
    // The runtime sets the source.
    assert!(items.iter().all(|item| item.source.is_none()));
}

#[test]
fn schema_is_that_of_the_input() {
    let tools = register::<Notes>(json!({ "author": "ann" })).unwrap().tools();
    let schema = |at: usize| tools[at].0.parameters.clone().unwrap();
    assert_eq!(schema(0)["properties"]["text"]["description"], "What to write down.");
    assert_eq!(schema(0)["required"], json!(["text"]));
    assert_eq!(schema(0)["$schema"], json!(null));
    assert_eq!(schema(1), schema(0));
    assert_eq!(schema(2), json!({ "type": "object", "additionalProperties": false }));
    assert_eq!(schema(4), schema(0));
}

#[test]
fn descriptor_lists_the_same_tools() {
    let tools = register::<Notes>(json!({ "author": "ann" })).unwrap().tools();
    let declared = Notes::DESCRIPTOR.tools;
    assert_eq!(declared.len(), tools.len());
    for (declared, (item, _)) in declared.iter().zip(tools) {
        assert_eq!(declared.name, item.name.as_str());
        assert_eq!(declared.description, item.description.unwrap_or_default());
        assert_eq!((declared.effect, declared.timeout), (item.effect, item.timeout));
        assert_eq!(Some((declared.parameters)()), item.parameters);
    }
}

#[test]
fn handlers_take_parameters_in_any_order() {
    let notes = register::<Notes>(json!({ "author": "ann" })).unwrap();
    let note = notes.call("notes__add", json!({ "text": "milk", "atLine": 2 })).unwrap();
    assert_eq!(note, json!({ "text": "2: milk", "by": "ann notes__add call-1" }));
    assert_eq!(goondan::extension::ExtensionHost::state(&*notes), Some(json!(1)));
    let answer = notes.call("notes__match", json!({ "text": "milk" })).unwrap();
    assert_eq!(answer, "milk ExtensionApi(notes)");
    assert_eq!(notes.call("notes__raw", json!([1, null])).unwrap(), json!([1, null]));
}

#[test]
fn input_that_does_not_fit_is_refused_with_the_reason() {
    let notes = register::<Notes>(json!({ "author": "ann" })).unwrap();
    for tool in ["notes__add", "notes__match", "notes__scan"] {
        let error = notes.call(tool, json!({ "text": 3 })).unwrap_err();
        assert_eq!(error.code(), &ErrorCode::TOOL_INVALID_ARGS, "{tool}");
        assert!(error.message().contains("invalid type: integer `3`, expected a string"), "{error:?}");
    }
    let error = notes.call("notes__add", json!({ "text": "a", "more": 1 })).unwrap_err();
    assert!(error.message().contains("unknown field `more`"), "{error:?}");
}

#[test]
fn errors_of_any_type_are_returned() {
    let error = register::<Notes>(json!({ "author": "ann" })).unwrap().call("notes__clear", json!({})).unwrap_err();
    assert_eq!(error.message(), "invalid digit found in string");
    assert_eq!(
        register::<Notes>(json!({ "author": "3" })).unwrap().call("notes__clear", json!({})).unwrap(),
        json!(null)
    );
}

#[test]
fn blocking_tool_runs_on_its_own_thread() {
    let notes = register::<Notes>(json!({ "author": "ann" })).unwrap();
    assert_eq!(notes.call("notes__scan", json!({ "text": "milk" })).unwrap(), json!(["ann", "milk", "notes__scan"]));
    assert_eq!(notes.emitted(), ["notes.scanned"]);
    assert_eq!(notes.call("notes__rest", json!({})).unwrap(), json!(null));
}

#[test]
fn panic_of_a_blocking_tool_is_an_error() {
    let error = register::<Notes>(json!({ "author": "ann" }))
        .unwrap()
        .call("notes__scan", json!({ "text": "panic" }))
        .unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_PANIC);
    assert!(error.message().contains("as requested"), "{error:?}");
}

struct Unwritable;

#[goondan::extension(name = "unwritable")]
impl Unwritable {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn keys(&self) -> Result<std::collections::HashMap<Vec<u8>, u8>> {
        Ok([(vec![1], 2)].into())
    }
}

#[test]
fn output_that_json_cannot_hold_is_an_error() {
    let error = register::<Unwritable>(json!({})).unwrap().call("unwritable__keys", json!({})).unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_RUNTIME);
    assert!(error.message().starts_with("the output of the tool cannot be written as JSON: "), "{error:?}");
}
