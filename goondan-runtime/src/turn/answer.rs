//! Classifies a model's answer: usable, nothing to add, or malformed (F-TURN).

use std::borrow::Cow;

use goondan_core::host::PartExt;
use goondan_core::host::depth::{self, MAX_DEPTH};
use goondan_core::{Error, ErrorCode, ModelFinish, Part};

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
            Part::ToolCall(call) if !call.input.is_object() => {
                return Answer::Malformed(Cow::Borrowed(match finish {
                    Some(ModelFinish::Length) => {
                        "the answer was cut off at the limit of tokens, in the middle of a tool call"
                    }
                    _ => "the arguments of every tool call must be a JSON object",
                }));
            }
            Part::ToolCall(_) => has_calls = true,
            part => has_text_or_blocks |= part.is_answer(),
        }
        if let Some(problem) = too_deep(part) {
            return Answer::Malformed(problem.into());
        }
    }
    if !has_calls && finish == Some(ModelFinish::ToolCalls) {
        return Answer::Malformed(Cow::Borrowed("the answer announced a tool call, but holds none"));
    }
    match (has_calls || has_text_or_blocks, finish) {
        (_, Some(ModelFinish::Pause)) if !content.is_empty() => Answer::Paused,
        (true, _) => Answer::Usable,
        (false, Some(ModelFinish::Refusal | ModelFinish::ContentFilter)) => {
            let message = "the model refused to answer, or its provider withheld the answer";
            Answer::Refused(
                Error::new(ErrorCode::MODEL_REFUSED, message).suggest("change the request, or use another model"),
            )
        }
        (false, _) if after_tool_results => Answer::NothingToAdd,
        (false, _) => Answer::Malformed(Cow::Borrowed("the answer is empty")),
    }
}

/// Returns what is wrong with a part in which a value is nested too deeply.
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

/// The answer of a turn in which the model gave no usable one.
pub(super) const NO_USABLE_ANSWER: &str = "The model gave no usable answer, although it was asked again.";

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
    fn nothing_is_fine_only_after_tool_results() {
        let thought = json!({ "content": [{ "type": "reasoning", "text": "hm" }] });
        for empty in [json!({}), json!({ "text": "" }), thought] {
            assert_eq!(class(empty.clone(), true), "NothingToAdd");
            assert_eq!(class(empty, false), r#"Malformed("the answer is empty")"#);
        }
    }

    #[test]
    fn broken_calls_are_malformed() {
        let announced = json!({ "text": "wait", "finishReason": "tool-calls" });
        assert!(class(announced, true).contains("holds none"));
        let unreadable =
            |finish| json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": "{" }], "finishReason": finish });
        assert!(class(unreadable("stop"), false).contains("must be a JSON object"));
        assert!(class(unreadable("length"), false).contains("cut off"));
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
