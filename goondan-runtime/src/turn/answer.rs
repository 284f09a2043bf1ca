//! Classifies a model's answer: usable, nothing to add, or malformed (F-TURN, CUT-01).

use std::borrow::Cow;

use goondan_core::host::PartExt;
use goondan_core::host::depth::{self, MAX_DEPTH};
use goondan_core::{Error, ErrorCode, ModelFinish, Part, size};
use serde_json::{Map, Value};

/// The class of an answer.
#[derive(Debug)]
pub(super) enum Answer {
    /// Text, tool calls, or blocks of the provider.
    Usable,
    /// A part of an answer, which the model continues when it is asked again.
    Paused,
    /// Nothing, after tool results: the model has nothing to add, and the turn ends.
    NothingToAdd,
    /// Unusable; with the reason, which the model is sent.
    Malformed(Cow<'static, str>),
    /// The model did not answer, and asking it again would not help.
    Refused(Error),
}

/// Returns whether the limit of tokens cut a call in two. Such a call is no part of the answer.
pub(super) fn is_half_call(part: &Part, finish: Option<ModelFinish>) -> bool {
    finish == Some(ModelFinish::Length) && matches!(part, Part::ToolCall(call) if !call.input.is_object())
}

/// Classifies an answer. `after_tool_results` is whether the newest message that the model was sent is a tool's.
pub(super) fn classify(content: &[Part], finish: Option<ModelFinish>, after_tool_results: bool) -> Answer {
    if finish == Some(ModelFinish::ContextFull) {
        let message = "the conversation does not fit into the context window of the model";
        return Answer::Refused(Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, message).suggest(
            "shorten the conversation, for example with the extension `message-window`, or use a model with a larger window",
        ));
    }
    let (mut has_calls, mut has_text_or_blocks) = (false, false);
    for part in content {
        match part {
            part if is_half_call(part, finish) => continue,
            Part::ToolCall(call) if !call.input.is_object() => {
                return Answer::Malformed(Cow::Borrowed("the arguments of every tool call must be a JSON object"));
            }
            Part::ToolCall(_) => has_calls = true,
            part => has_text_or_blocks |= part.is_answer(),
        }
        if let Some(problem) = too_deep(part) {
            return Answer::Malformed(problem.into());
        }
        if let Part::ToolCall(call) = part
            && let Some(Err(problem)) = call.input.as_object().map(check_arguments)
        {
            return Answer::Malformed(problem);
        }
    }
    if !has_calls && finish == Some(ModelFinish::ToolCalls) {
        return Answer::Malformed(Cow::Borrowed("the answer announced a tool call, but holds none"));
    }
    match (has_calls || has_text_or_blocks, finish) {
        (_, Some(ModelFinish::Pause)) if !content.is_empty() => Answer::Paused,
        (true, _) if !has_calls && let Some(asked) = unanswerable(content) => Answer::Refused(asked),
        (true, _) => Answer::Usable,
        (false, Some(ModelFinish::Refusal | ModelFinish::ContentFilter)) => {
            let message = "the model refused to answer, or its provider withheld the answer";
            Answer::Refused(
                Error::new(ErrorCode::MODEL_REFUSED, message).suggest("change the request, or use another model"),
            )
        }
        (false, Some(ModelFinish::Length)) => Answer::Refused(cut_off(content)),
        (false, _) if after_tool_results => Answer::NothingToAdd,
        (false, _) => Answer::Malformed(Cow::Borrowed("the answer is empty")),
    }
}

/// Returns the error for an answer that is no more than the question of a provider whether it may run a call, such as
/// OpenAI's for a tool of an MCP server that it asks. Without the error, the turn would end with an empty text.
#[cold]
fn unanswerable(content: &[Part]) -> Option<Error> {
    let mut asked = None;
    for part in content {
        match part {
            Part::Reasoning(_) => {}
            Part::Provider(block) => {
                let rest = block.provider().rest();
                let text = |member: &str| rest.get(member).and_then(Value::as_str);
                if text("type").is_some_and(|kind| kind.ends_with("_approval_request")) {
                    let of = text("server_label").map(|server| format!(" of the server `{server}`"));
                    asked = Some(format!("`{}`{}", text("name").unwrap_or_default(), of.unwrap_or_default()));
                }
            }
            part if part.is_answer() => return None,
            _ => {}
        }
    }
    let message = format!("the model's provider asks whether it may call {}, which cannot be answered", asked?);
    Some(Error::new(ErrorCode::MODEL_UNUSABLE, message).suggest(
        "let the provider call it without asking, by `require_approval` of its tool in `options.provider` of the model",
    ))
}

/// The most bytes of a tool call's arguments.
const ARGUMENTS: usize = 4 << 20;

/// Checks the size of the arguments of a tool call.
///
/// # Errors
/// Their fault.
// SIZE-01
pub(super) fn check_arguments(arguments: &Map<String, Value>) -> Result<(), Cow<'static, str>> {
    if size::of_members(arguments) <= ARGUMENTS {
        return Ok(());
    }
    Err(format!("the arguments of a tool call have {} MB at most", ARGUMENTS >> 20).into())
}

/// Returns the fault of a part in which a value is nested too deeply.
fn too_deep(part: &Part) -> Option<String> {
    let error = part.check_depth(MAX_DEPTH).err()?;
    let error = match part {
        Part::ToolCall(call) if let Err(error) = depth::check(&call.input) => {
            error.refuse(format_args!("the argument of the tool call `{}`", call.tool_call_id))
        }
        _ => error.refuse("a part of the answer"),
    };
    Some(error.message().into_owned())
}

/// Returns the message that the model is sent after a malformed answer.
pub(super) fn correction(problem: &str) -> String {
    format!("Your last answer could not be used: {problem}. Answer again, with text or with a correct tool call.")
}

/// Returns the error for an answer that reached the limit of tokens before it had text or a whole call. Under the same
/// limit, another one would too.
#[cold]
fn cut_off(content: &[Part]) -> Error {
    let place = if content.iter().any(|part| matches!(part, Part::ToolCall(_))) {
        "in the middle of a tool call"
    } else if content.iter().any(|part| matches!(part, Part::Reasoning(_))) {
        "while it reasoned, before it answered"
    } else {
        "before it answered"
    };
    cut_off_in(place)
}

/// Returns the error for an answer that reached the limit of tokens at this place.
#[cold]
pub(super) fn cut_off_in(place: &str) -> Error {
    Error::new(ErrorCode::MODEL_LENGTH, format!("the model reached its limit of tokens {place}"))
        .suggest("raise `maxOutputTokens` in the options of the model, or let it reason less: `reasoning.effort`")
}

/// Returns the error for a turn in which the model gave no usable answer, although it was asked again.
#[cold]
pub(super) fn no_usable_answer(problem: &str) -> Error {
    let message = format!("the model gave no usable answer, although it was asked again: {problem}");
    Error::new(ErrorCode::MODEL_UNUSABLE, message).suggest("use another model, or change the request")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::ports::model::ModelResponse;

    fn class(response: serde_json::Value, after_tool_results: bool) -> String {
        let response: ModelResponse = serde_json::from_value(response).unwrap();
        match classify(&response.content, response.finish_reason, after_tool_results) {
            Answer::Refused(error) => error.code().to_string(),
            answer => format!("{answer:?}"),
        }
    }

    #[test]
    fn text_calls_and_blocks_are_usable() {
        assert_eq!(class(json!({ "text": "hi" }), false), "Usable");
        let call = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": {} }], "finishReason": "tool-calls" });
        assert_eq!(class(call, false), "Usable");
        let block =
            json!({ "type": "provider", "provider": { "api": "a", "model": "m", "rest": { "type": "search" } } });
        assert_eq!(class(json!({ "content": [block] }), false), "Usable");
        assert_eq!(class(json!({ "text": "I can't", "finishReason": "refusal" }), false), "Usable");
    }

    #[test]
    fn a_question_for_an_approval_is_an_error_unless_more_was_said() {
        let block = |rest| json!({ "type": "provider", "provider": { "api": "a", "model": "m", "rest": rest } });
        let asks = block(json!({ "type": "mcp_approval_request", "server_label": "dice", "name": "roll" }));
        let listed = block(json!({ "type": "mcp_list_tools" }));
        let thought = json!({ "type": "reasoning", "text": "hm" });
        let content = json!([thought, listed, asks]);
        assert_eq!(class(json!({ "content": content }), false), "E_MODEL_UNUSABLE");
        let text = json!({ "type": "text", "text": "May I?" });
        assert_eq!(class(json!({ "content": [asks, text] }), false), "Usable");
        assert_eq!(class(json!({ "content": [listed] }), false), "Usable");
    }

    #[test]
    fn nothing_is_fine_only_after_tool_results() {
        let thought = json!({ "content": [{ "type": "reasoning", "text": "hm" }] });
        for empty in [json!({}), json!({ "text": "" }), json!({ "text": " \n\u{2003}" }), thought] {
            assert_eq!(class(empty.clone(), true), "NothingToAdd");
            assert_eq!(class(empty, false), r#"Malformed("the answer is empty")"#);
        }
    }

    #[test]
    fn broken_calls_are_malformed() {
        let announced = json!({ "text": "wait", "finishReason": "tool-calls" });
        assert!(class(announced, true).contains("holds none"));
        let unreadable = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": "{" }], "finishReason": "stop" });
        assert!(class(unreadable, false).contains("must be a JSON object"));
    }

    #[test]
    fn an_answer_that_was_cut_off_has_text_or_a_whole_call_or_is_an_error() {
        let half = json!({ "id": "1", "name": "a__b", "args": "{" });
        let whole = json!({ "id": "2", "name": "a__b", "args": {} });
        for (response, expected) in [
            (json!({ "text": "so far" }), "Usable"),
            (json!({ "text": "so far", "toolCalls": [half] }), "Usable"),
            (json!({ "toolCalls": [whole, half] }), "Usable"),
            (json!({ "toolCalls": [half] }), "E_MODEL_LENGTH"),
            (json!({ "content": [{ "type": "reasoning", "text": "hm" }] }), "E_MODEL_LENGTH"),
            (json!({}), "E_MODEL_LENGTH"),
        ] {
            let mut response = response;
            response["finishReason"] = "length".into();
            for after_tool_results in [false, true] {
                assert_eq!(class(response.clone(), after_tool_results), expected, "{response}");
            }
        }
    }

    #[test]
    fn a_refusal_is_an_error_and_a_pause_goes_on() {
        for reason in ["refusal", "content-filter"] {
            assert_eq!(class(json!({ "finishReason": reason }), false), "E_MODEL_REFUSED");
        }
        assert_eq!(class(json!({ "text": "x", "finishReason": "context-full" }), false), "E_MODEL_CONTEXT_OVERFLOW");
        assert_eq!(class(json!({ "text": "half", "finishReason": "pause" }), false), "Paused");
        assert!(class(json!({ "finishReason": "pause" }), false).contains("empty"));
    }
}
