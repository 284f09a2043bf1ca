//! Options of Anthropic.

use goondan_core::{CacheUse, ModelOptions, ReasoningEffort, ReasoningSummary, Result, ToolChoice};
use serde_json::{Value, json};

use super::Anthropic;
use crate::wire::{Encoding, Settings, Wire, refuse_option};

/// The tokens of an answer, besides those of its reasoning, unless the options say it. Anthropic requires a limit.
pub(in crate::wire) const MAX_TOKENS: u32 = 8192;

/// The least that Anthropic takes as a budget for reasoning.
const LEAST_BUDGET: u32 = 1024;

/// The reasoning of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::wire) enum Thinking {
    /// As the provider sees fit if nothing is said.
    Unsaid,
    /// Not at all.
    Off,
    /// Up to a number of tokens. Every turn with tool calls must then begin with reasoning.
    Budget(u32),
    /// As long as the model sees fit, guided by an effort.
    Adaptive,
}

/// The models that know budgets alone. Newer ones reason as they see fit, and take an effort instead.
const BUDGET_ONLY: [&str; 12] = [
    "claude-3",
    "opus-4-0",
    "opus-4-1",
    "opus-4-2025",
    "opus-4@",
    "opus-4-5",
    "sonnet-4-0",
    "sonnet-4-2025",
    "sonnet-4@",
    "sonnet-4-5",
    "haiku-4-5",
    "claude-2",
];

/// The models that cannot hold an answer to a schema.
const WITHOUT_SCHEMAS: [&str; 8] =
    ["claude-2", "claude-3", "opus-4-0", "opus-4-2025", "opus-4@", "sonnet-4-0", "sonnet-4-2025", "sonnet-4@"];

/// Returns whether `model` can be held to a schema.
pub(super) fn holds_to_schema(model: &str) -> bool {
    !WITHOUT_SCHEMAS.iter().any(|name| model.contains(name))
}

/// Returns whether `model` may reason in answer to a request with these options. Then no tool can be required.
pub(in crate::wire) fn may_think(model: &str, options: &ModelOptions) -> bool {
    matches!(thinking(model, options), Thinking::Budget(_) | Thinking::Adaptive)
}

/// Returns the budget that is an effort's equal, for models that know budgets alone.
pub(in crate::wire) fn budget_of(effort: ReasoningEffort) -> u32 {
    match effort {
        ReasoningEffort::Minimal => LEAST_BUDGET,
        ReasoningEffort::Low => 4096,
        ReasoningEffort::High => 20_000,
        ReasoningEffort::Max => 32_000,
        _ => 10_000,
    }
}

/// Returns how `model` is to reason.
pub(in crate::wire) fn thinking(model: &str, options: &ModelOptions) -> Thinking {
    let budget = options.reasoning.budget_tokens.map(|tokens| tokens.get());
    match (options.reasoning.effort, budget) {
        (None, None) => Thinking::Unsaid,
        (Some(ReasoningEffort::None), _) => Thinking::Off,
        (_, Some(budget)) => Thinking::Budget(budget),
        (Some(effort), None) if BUDGET_ONLY.iter().any(|name| model.contains(name)) => {
            let limit = options.max_output_tokens.map_or(u32::MAX, |tokens| tokens.get() / 4 * 3);
            Thinking::Budget(budget_of(effort).min(limit).max(LEAST_BUDGET))
        }
        (Some(_), None) => Thinking::Adaptive,
    }
}

/// Checks for options that Anthropic does not have.
pub(super) fn check(model: &str, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(Anthropic::API, option, why));
    if options.seed.is_some() {
        return refuse("seed", "Anthropic has no such option");
    }
    check_thinking(Anthropic::API, model, options)
}

/// Checks for options that models of Anthropic do not have, over the interface `api`.
pub(in crate::wire) fn check_thinking(api: &str, model: &str, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(api, option, why));
    if matches!(options.reasoning.summary, Some(ReasoningSummary::Concise | ReasoningSummary::Detailed)) {
        return refuse("reasoning/summary", "Anthropic knows `auto` and `off` only");
    }
    if let Thinking::Budget(budget) = thinking(model, options) {
        if budget < LEAST_BUDGET {
            return refuse("reasoning/budgetTokens", "Anthropic wants 1024 or more");
        }
        if options.max_output_tokens.is_some_and(|max| max.get() <= budget) {
            return refuse("reasoning", "`maxOutputTokens` leaves no room for an answer beside the reasoning");
        }
        // Anthropic's page on extended thinking, which says it of budgets.
        if options.temperature.is_some_and(|temperature| (temperature - 1.0).abs() > f64::EPSILON) {
            return refuse("temperature", "a model of Anthropic with a budget for reasoning takes 1 alone");
        }
        if options.top_p.is_some_and(|top_p| top_p < 0.95) {
            return refuse("topP", "a model of Anthropic with a budget for reasoning takes 0.95 or more");
        }
    }
    Ok(())
}

/// Returns the members of the request, and the tools that run at the provider. `container` is the id of the one in
/// which the provider ran code for an earlier answer.
pub(super) fn settings(
    request: &Encoding<'_>,
    thinking: Thinking,
    container: Option<&Value>,
) -> Result<(Settings, Vec<Value>)> {
    let (model, options) = (request.model(), request.options());
    let mut settings = Settings::default();
    let reasoning = match thinking {
        Thinking::Budget(budget) => budget,
        Thinking::Adaptive => options.reasoning.effort.map_or(0, budget_of),
        Thinking::Unsaid | Thinking::Off => 0,
    };
    let max_tokens = options.max_output_tokens.map_or(MAX_TOKENS.saturating_add(reasoning), |tokens| tokens.get());
    settings.set("model", model);
    settings.set("max_tokens", max_tokens);
    settings.set("stream", true);
    set_thinking(options, thinking, |object, name, value| settings.set_in(object, name, value));
    if let Some(temperature) = options.temperature {
        settings.set("temperature", temperature);
    }
    if let Some(top_p) = options.top_p {
        settings.set("top_p", top_p);
    }
    if !options.stop.is_empty() {
        settings.set("stop_sequences", options.stop.clone());
    }
    if let Some(format) = &options.response_format {
        let schema = Value::Object(format.schema.clone());
        settings.set_in("output_config", "format", json!({ "type": "json_schema", "schema": schema }));
    }
    let provider_tools = options.provider.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    set_tool_choice(&mut settings, request, provider_tools)?;
    match (container, options.provider.get("container")) {
        // The rest of the container, such as skills.
        (Some(id), Some(Value::Object(_))) => settings.set_in("container", "id", id.clone()),
        (Some(id), None) => settings.set("container", id.clone()),
        _ => {}
    }
    let own = ["messages", "model", "stream", "system"];
    let provider_tools = settings.merge(Anthropic::API, options, &own)?;
    Ok((settings, provider_tools))
}

/// Sets the members of the objects `thinking` and `output_config`.
pub(in crate::wire) fn set_thinking(
    options: &ModelOptions,
    thinking: Thinking,
    mut set_in: impl FnMut(&'static str, &'static str, Value),
) {
    match thinking {
        Thinking::Unsaid => {}
        Thinking::Off => set_in("thinking", "type", "disabled".into()),
        Thinking::Budget(budget) => {
            set_in("thinking", "type", "enabled".into());
            set_in("thinking", "budget_tokens", budget.into());
        }
        Thinking::Adaptive => {
            set_in("thinking", "type", "adaptive".into());
            let effort = match options.reasoning.effort {
                Some(ReasoningEffort::Minimal | ReasoningEffort::Low) => "low",
                Some(ReasoningEffort::High) => "high",
                Some(ReasoningEffort::Max) => "max",
                _ => "medium",
            };
            set_in("output_config", "effort", effort.into());
        }
    }
    if matches!(thinking, Thinking::Budget(_) | Thinking::Adaptive) {
        match options.reasoning.summary {
            Some(ReasoningSummary::Auto) => set_in("thinking", "display", "summarized".into()),
            Some(ReasoningSummary::Off) => set_in("thinking", "display", "omitted".into()),
            _ => {}
        }
    }
}

fn set_tool_choice(settings: &mut Settings, request: &Encoding<'_>, provider_tools: bool) -> Result<()> {
    let options = request.options();
    let mut tools = request.tools().map(|tool| tool.name.as_str()).peekable();
    let any = provider_tools || tools.peek().is_some();
    let mut choice = match &options.tool_choice {
        None if options.parallel_tool_calls.is_none() => return Ok(()),
        None | Some(ToolChoice::Auto | ToolChoice::None) if !any => return Ok(()),
        Some(ToolChoice::None) => json!({ "type": "none" }),
        Some(ToolChoice::Required) if any => json!({ "type": "any" }),
        Some(ToolChoice::Tool(name)) if tools.any(|tool| tool == name.as_str()) => {
            let name = request.provider_tool(name.as_str()).map_or(name.as_str(), |tool| &*tool.name);
            json!({ "type": "tool", "name": name })
        }
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {
            return Err(refuse_option(Anthropic::API, "toolChoice", "the step does not offer the tool"));
        }
        _ => json!({ "type": "auto" }),
    };
    if options.parallel_tool_calls == Some(false) && choice["type"] != "none" {
        choice["disable_parallel_tool_use"] = true.into();
    }
    settings.set("tool_choice", choice);
    Ok(())
}

/// Returns the mark of a place up to which the provider keeps the request in its cache.
pub(super) fn cache_mark(options: &ModelOptions) -> Option<Value> {
    match options.cache {
        Some(CacheUse::Off) => None,
        Some(CacheUse::Long) => Some(json!({ "type": "ephemeral", "ttl": "1h" })),
        _ => Some(json!({ "type": "ephemeral" })),
    }
}
