//! Options of Gemini.

use goondan_core::{ModelOptions, ReasoningEffort, ReasoningSummary, Result, ToolChoice};
use serde_json::{Map, Value, json};

use super::{Gemini, is_earlier};
use crate::wire::{Encoding, Settings, Wire, refuse_option};

/// The most texts that may end an answer.
const MOST_STOPS: usize = 5;

/// Checks for options that Gemini does not have.
pub(super) fn check(model: &str, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(Gemini::API, option, why));
    if options.parallel_tool_calls == Some(false) {
        return refuse("parallelToolCalls", "Gemini cannot be kept from several calls in one answer");
    }
    if options.stop.len() > MOST_STOPS {
        return refuse("stop", "Gemini takes five texts at most");
    }
    if options.seed.is_some_and(|seed| i32::try_from(seed).is_err()) {
        return refuse("seed", "Gemini takes numbers of 32 bits");
    }
    if matches!(options.reasoning.summary, Some(ReasoningSummary::Concise | ReasoningSummary::Detailed)) {
        return refuse("reasoning/summary", "Gemini knows `auto` and `off` only");
    }
    if options.reasoning.effort == Some(ReasoningEffort::None) && !is_earlier(model) {
        return refuse("reasoning/effort", "this model always reasons; `minimal` is the least");
    }
    Ok(())
}

/// Returns the members of the request, and the tools that run at the provider.
pub(super) fn settings(request: &Encoding<'_>) -> Result<(Settings, Vec<Value>)> {
    let options = request.options();
    let mut settings = Settings::default();
    let mut config = |name: &str, value: Value| settings.set_in("generationConfig", name, value);
    if let Some(tokens) = options.max_output_tokens {
        config("maxOutputTokens", tokens.get().into());
    }
    if let Some(temperature) = options.temperature {
        config("temperature", temperature.into());
    }
    if let Some(top_p) = options.top_p {
        config("topP", top_p.into());
    }
    if !options.stop.is_empty() {
        config("stopSequences", options.stop.clone().into());
    }
    if let Some(seed) = options.seed {
        config("seed", seed.into());
    }
    if let Some(format) = &options.response_format {
        config("responseMimeType", "application/json".into());
        config("responseJsonSchema", Value::Object(format.schema.clone()));
    }
    let thinking = thinking(request.model(), options);
    if !thinking.is_empty() {
        config("thinkingConfig", Value::Object(thinking));
    }
    if let Some(choice) = tool_choice(request)? {
        settings.set_in("toolConfig", "functionCallingConfig", choice);
    }
    let tools = settings.merge(Gemini::API, options, &["contents", "systemInstruction", "system_instruction"])?;
    Ok((settings, tools))
}

/// Returns how the model is to reason.
fn thinking(model: &str, options: &ModelOptions) -> Map<String, Value> {
    let mut thinking = Map::new();
    match (options.reasoning.budget_tokens, options.reasoning.effort) {
        // A budget and a level exclude each other, and the budget is more precise.
        (Some(budget), effort) if effort != Some(ReasoningEffort::None) => {
            thinking.insert("thinkingBudget".to_owned(), budget.get().into());
        }
        (_, Some(effort)) if is_earlier(model) => {
            thinking.insert("thinkingBudget".to_owned(), budget_of(effort).into());
        }
        (_, Some(effort)) => {
            thinking.insert("thinkingLevel".to_owned(), level_of(effort).into());
        }
        (_, None) => {}
    }
    match options.reasoning.summary {
        Some(ReasoningSummary::Off) => thinking.insert("includeThoughts".to_owned(), false.into()),
        Some(_) => thinking.insert("includeThoughts".to_owned(), true.into()),
        None => None,
    };
    thinking
}

fn budget_of(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::None => 0,
        ReasoningEffort::Minimal => 512,
        ReasoningEffort::Low => 1024,
        ReasoningEffort::High | ReasoningEffort::Max => 24_576,
        _ => 8192,
    }
}

fn level_of(effort: ReasoningEffort) -> &'static str {
    match effort {
        ReasoningEffort::None | ReasoningEffort::Minimal => "minimal",
        ReasoningEffort::Low => "low",
        ReasoningEffort::High | ReasoningEffort::Max => "high",
        _ => "medium",
    }
}

/// Returns which functions the model calls. Without functions, Gemini has no use for it.
fn tool_choice(request: &Encoding<'_>) -> Result<Option<Value>> {
    let any = request.tools().next().is_some();
    Ok(match &request.options().tool_choice {
        Some(ToolChoice::Required) if any => Some(json!({ "mode": "ANY" })),
        Some(ToolChoice::Tool(name)) if request.tools().any(|tool| tool.name == *name) => {
            Some(json!({ "mode": "ANY", "allowedFunctionNames": [name] }))
        }
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {
            return Err(refuse_option(Gemini::API, "toolChoice", "the step does not offer the tool"));
        }
        Some(ToolChoice::None) if any => Some(json!({ "mode": "NONE" })),
        Some(ToolChoice::Auto) if any => Some(json!({ "mode": "AUTO" })),
        _ => None,
    })
}
