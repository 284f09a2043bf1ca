//! Options of chat completions.

use goondan_core::{
    CacheUse, Error, ModelOptions, ReasoningEffort, ReasoningOptions, ReasoningSummary, Result, ToolChoice,
};
use serde_json::{Map, Value, json};

use super::dialect::{Dialect, Reasoning, ToolChoices};
use crate::wire::{Encoding, Settings, closed, refuse_option};

/// Checks for options that the provider does not have.
pub(super) fn check(dialect: &Dialect, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(dialect.name, option, why));
    if options.seed.is_some() && dialect.seed.is_none() {
        return refuse("seed", "this provider has no such option");
    }
    if options.response_format.is_some() && !dialect.schemas {
        return refuse("responseFormat", "this provider does not hold answers to a schema");
    }
    if options.parallel_tool_calls == Some(false) && !dialect.parallel_tool_calls {
        return refuse("parallelToolCalls", "this provider cannot forbid several calls in one answer");
    }
    match (&options.tool_choice, dialect.tool_choice) {
        (None | Some(ToolChoice::Auto), _) | (_, ToolChoices::All) => {}
        (_, ToolChoices::Ignored) => return refuse("toolChoice", "this provider ignores it"),
        (Some(ToolChoice::Tool(_)), ToolChoices::Words) => {
            return refuse("toolChoice", "this provider understands `auto`, `none` and `required` only");
        }
        _ => {}
    }
    check_reasoning(dialect, options.reasoning)
}

fn check_reasoning(dialect: &Dialect, options: ReasoningOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(dialect.name, option, why));
    let off = options.effort == Some(ReasoningEffort::None) && dialect.reasoning == Reasoning::Switch;
    if options.effort.is_some_and(|effort| word(dialect, effort).is_none()) && !off {
        return refuse("reasoning/effort", "this provider has no word for this effort");
    }
    if dialect.reasoning == Reasoning::Object {
        return Ok(());
    }
    if options.budget_tokens.is_some() {
        return refuse("reasoning/budgetTokens", "this provider does not count the tokens of reasoning; set `effort`");
    }
    match options.summary {
        None | Some(ReasoningSummary::Auto) => Ok(()),
        _ => refuse("reasoning/summary", "this provider returns reasoning as it is; only `auto` says so"),
    }
}

/// Returns the provider's word for an effort, if it has one.
fn word(dialect: &Dialect, effort: ReasoningEffort) -> Option<&'static str> {
    let [none, minimal, low, medium, high, max] = dialect.efforts;
    match effort {
        ReasoningEffort::None => none,
        ReasoningEffort::Minimal => minimal,
        ReasoningEffort::Low => low,
        ReasoningEffort::Medium => medium,
        ReasoningEffort::High => high,
        ReasoningEffort::Max => max,
        _ => None,
    }
}

/// Returns the members of the request, and the tools that run at the provider.
pub(super) fn settings(dialect: &Dialect, request: &Encoding<'_>) -> Result<(Settings, Vec<Value>)> {
    let options = request.options();
    let mut settings = Settings::default();
    settings.set("model", request.model());
    settings.set("stream", true);
    if dialect.include_usage {
        settings.set("stream_options", json!({ "include_usage": true }));
    }
    if let Some(tokens) = options.max_output_tokens {
        settings.set(dialect.max_tokens, tokens.get());
    }
    if let Some(temperature) = options.temperature {
        settings.set("temperature", temperature);
    }
    if let Some(top_p) = options.top_p {
        settings.set("top_p", top_p);
    }
    if !options.stop.is_empty() {
        settings.set("stop", options.stop.clone());
    }
    if let (Some(name), Some(seed)) = (dialect.seed, options.seed) {
        settings.set(name, seed);
    }
    if let Some(format) = &options.response_format {
        let schema = json!({ "name": format.name, "schema": format.schema, "strict": format.strict });
        settings.set("response_format", json!({ "type": "json_schema", "json_schema": schema }));
    }
    set_reasoning(&mut settings, dialect, options.reasoning);
    set_tool_choice(&mut settings, dialect, request)?;
    if dialect.cache_control && request.model().starts_with("anthropic/") {
        match options.cache {
            Some(CacheUse::Auto) => settings.set("cache_control", json!({ "type": "ephemeral" })),
            Some(CacheUse::Long) => settings.set("cache_control", json!({ "type": "ephemeral", "ttl": "1h" })),
            _ => {}
        }
    }
    let tools = settings.merge(dialect.name, options, &["messages", "model", "stream"])?;
    Ok((settings, tools))
}

fn set_reasoning(settings: &mut Settings, dialect: &Dialect, options: ReasoningOptions) {
    let word = options.effort.and_then(|effort| word(dialect, effort));
    match dialect.reasoning {
        Reasoning::Effort => {}
        Reasoning::Object => {
            // The two exclude each other, and the limit is more precise.
            match (options.budget_tokens, word) {
                (Some(tokens), _) => settings.set_in("reasoning", "max_tokens", tokens.get()),
                (None, Some(word)) => settings.set_in("reasoning", "effort", word),
                (None, None) => {}
            }
            match options.summary {
                Some(ReasoningSummary::Auto) => settings.set_in("reasoning", "summary", "auto"),
                Some(ReasoningSummary::Concise) => settings.set_in("reasoning", "summary", "concise"),
                Some(ReasoningSummary::Detailed) => settings.set_in("reasoning", "summary", "detailed"),
                Some(ReasoningSummary::Off) => settings.set_in("reasoning", "exclude", true),
                _ => {}
            }
            return;
        }
        Reasoning::Switch => {
            if let Some(effort) = options.effort {
                let switch = if effort == ReasoningEffort::None { "disabled" } else { "enabled" };
                settings.set_in("thinking", "type", switch);
            }
        }
    }
    if let Some(word) = word {
        settings.set("reasoning_effort", word);
    }
}

/// Sets which tools the model calls. Without tools, these members are refused.
fn set_tool_choice(settings: &mut Settings, dialect: &Dialect, request: &Encoding<'_>) -> Result<()> {
    let options = request.options();
    let provider_tools = options.provider.get("tools").and_then(Value::as_array);
    let any = provider_tools.is_some_and(|tools| !tools.is_empty()) || request.tools().next().is_some();
    let closes = request.has_closed_tools();
    let absent = || -> Error { refuse_option(dialect.name, "toolChoice", "the step does not offer the tool") };
    let choice = match &options.tool_choice {
        Some(ToolChoice::None) if any || closes => Some(json!("none")),
        Some(ToolChoice::Required) if any && closes => Some(allowed(request, "required")),
        Some(ToolChoice::Required) if any => Some(json!("required")),
        Some(ToolChoice::Tool(name)) if request.tools().any(|tool| tool.name == *name) => Some(named(name.as_str())),
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => return Err(absent()),
        _ if closes && any => Some(allowed(request, "auto")),
        _ if closes => Some(json!("none")),
        Some(ToolChoice::Auto) if any && dialect.tool_choice != ToolChoices::Ignored => Some(json!("auto")),
        _ => None,
    };
    if let Some(choice) = choice {
        settings.set("tool_choice", choice);
    }
    if let Some(parallel) = options.parallel_tool_calls.filter(|_| any && dialect.parallel_tool_calls) {
        settings.set("parallel_tool_calls", parallel);
    }
    Ok(())
}

/// Returns how a request names a tool of the step.
fn named(name: &str) -> Value {
    json!({ "type": "function", "function": { "name": name } })
}

/// Returns the choice of tools that leaves out the closed ones.
fn allowed(request: &Encoding<'_>, mode: &str) -> Value {
    let mut tools = closed::of_provider(request.options(), entry).unwrap_or_default();
    tools.extend(request.tools().map(|tool| named(tool.name.as_str())));
    json!({ "type": "allowed_tools", "allowed_tools": { "mode": mode, "tools": tools } })
}

/// Returns how a list of allowed tools names a tool of `options.provider`.
pub(super) fn entry(tool: &Map<String, Value>) -> Option<Value> {
    let kind = tool.get("type")?.as_str().filter(|kind| matches!(*kind, "function" | "custom"))?;
    let name = tool.get(kind)?.get("name")?;
    Some(json!({ "type": kind, kind: { "name": name } }))
}
