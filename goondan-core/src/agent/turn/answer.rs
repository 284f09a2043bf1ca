//! Classifies a model's answer: usable, nothing to add, or malformed (F-TURN).

use crate::model::{ModelFinish, ModelResponse};

/// The class of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// Text, tool calls, or both.
    Usable,
    /// Nothing, after tool results: the model has nothing to add, and the turn ends.
    NothingToAdd,
    /// Unusable; with the reason, which the model is sent.
    Malformed(&'static str),
}

/// Classifies `response`. `after_tool_results` is whether the newest message that the model was sent is a tool's.
pub(super) fn classify(response: &ModelResponse, after_tool_results: bool) -> Answer {
    let says_something = response.text.as_ref().is_some_and(|text| !text.is_empty());
    if response.tool_calls.iter().any(|call| !call.args.is_object()) {
        return Answer::Malformed("the arguments of every tool call must be a JSON object");
    }
    if response.tool_calls.is_empty() && response.finish_reason == Some(ModelFinish::ToolCalls) {
        return Answer::Malformed("the answer announced a tool call, but holds none");
    }
    match (says_something || !response.tool_calls.is_empty(), after_tool_results) {
        (true, _) => Answer::Usable,
        (false, true) => Answer::NothingToAdd,
        (false, false) => Answer::Malformed("the answer is empty"),
    }
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

    fn response(value: serde_json::Value) -> ModelResponse {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn text_or_calls_are_usable() {
        assert_eq!(classify(&response(json!({ "text": "hi" })), false), Answer::Usable);
        let call = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": {} }], "finishReason": "tool-calls" });
        assert_eq!(classify(&response(call), false), Answer::Usable);
    }

    #[test]
    fn nothing_is_fine_only_after_tool_results() {
        for empty in [json!({}), json!({ "text": "" })] {
            assert_eq!(classify(&response(empty.clone()), true), Answer::NothingToAdd);
            assert!(matches!(classify(&response(empty), false), Answer::Malformed(_)));
        }
    }

    #[test]
    fn broken_calls_are_malformed() {
        let announced = json!({ "text": "wait", "finishReason": "tool-calls" });
        assert!(matches!(classify(&response(announced), true), Answer::Malformed(_)));
        let unreadable = json!({ "toolCalls": [{ "id": "1", "name": "a__b", "args": "not json" }] });
        assert!(matches!(classify(&response(unreadable), false), Answer::Malformed(_)));
    }
}
