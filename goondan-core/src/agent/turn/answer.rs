//! Owns the judgement of a model's answer: what it asks for, or why it is none (F-TURN).

use crate::model::{ModelFinish, ModelResponse};

/// What an answer is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Text, tool calls, or both.
    Good,
    /// Nothing, after tool results: the model has nothing to add, and the turn ends.
    NothingToAdd,
    /// Something that cannot be worked with; this is what the model is told.
    Malformed(&'static str),
}

/// Judges `response`; `after_tool_results` says whether the newest message that the model saw is a tool's.
pub(super) fn judge(response: &ModelResponse, after_tool_results: bool) -> Answer {
    let says_something = response.text.as_ref().is_some_and(|text| !text.is_empty());
    if response.tool_calls.iter().any(|call| !call.args.is_object()) {
        return Answer::Malformed("the arguments of every tool call must be a JSON object");
    }
    if response.tool_calls.is_empty() && response.finish_reason == Some(ModelFinish::ToolCalls) {
        return Answer::Malformed("the answer announced a tool call, but holds none");
    }
    match (says_something || !response.tool_calls.is_empty(), after_tool_results) {
        (true, _) => Answer::Good,
        (false, true) => Answer::NothingToAdd,
        (false, false) => Answer::Malformed("the answer is empty"),
    }
}

/// What the model is told of a malformed answer.
pub(super) fn correction(problem: &str) -> String {
    format!("Your last answer could not be used: {problem}. Answer again, with text or with a correct tool call.")
}

/// What the turn answers when the model could not be brought to answer.
pub(super) const GIVEN_UP: &str = "The model gave no usable answer, although it was asked again.";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn response(value: serde_json::Value) -> ModelResponse {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_or_calls_are_good() {
        assert_eq!(judge(&response(json!({ "text": "hi" })), false), Answer::Good);
        let call = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": {} }], "finishReason": "tool-calls" });
        assert_eq!(judge(&response(call), false), Answer::Good);
    }

    #[test]
    fn nothing_is_only_fine_after_tool_results() {
        for empty in [json!({}), json!({ "text": "" })] {
            assert_eq!(judge(&response(empty.clone()), true), Answer::NothingToAdd);
            assert!(matches!(judge(&response(empty), false), Answer::Malformed(_)));
        }
    }

    #[test]
    fn broken_calls_are_malformed() {
        let announced = json!({ "text": "wait", "finishReason": "tool-calls" });
        assert!(matches!(judge(&response(announced), true), Answer::Malformed(_)));
        let unreadable = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": "not json" }] });
        assert!(matches!(judge(&response(unreadable), false), Answer::Malformed(_)));
    }
}
