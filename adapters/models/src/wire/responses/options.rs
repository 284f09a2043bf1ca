//! Options of OpenAI.

use goondan_core::{CacheUse, ModelOptions, ReasoningEffort, ReasoningSummary, Result, ToolChoice};
use serde_json::{Map, Value, json};

use super::Responses;
use crate::wire::{Encoding, Settings, Wire, closed, refuse_option};

/// The words for reasoning that a model knows. OpenAI refuses words that a model does not know, so they are chosen by
/// its name. Names of other makers count as new ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Generation {
    /// It does not reason.
    Unreasoning,
    /// `low`, `medium` and `high`.
    First,
    /// `minimal` too.
    Five,
    /// `none`, but no `minimal`.
    FiveOne,
    /// `xhigh` too.
    Newest,
}

impl Generation {
    fn of(model: &str) -> Self {
        // Gateways put the maker before the name.
        let name = model.rsplit('/').next().unwrap_or(model);
        let is = |names: &[&str]| names.iter().any(|start| name.starts_with(start));
        match name {
            _ if is(&["gpt-3.5", "gpt-4", "chatgpt-4o", "gpt-5-chat"]) => Self::Unreasoning,
            _ if is(&["o1", "o3", "o4-mini", "codex-mini", "gpt-oss"]) => Self::First,
            _ if name == "gpt-5" || is(&["gpt-5-"]) => Self::Five,
            _ if is(&["gpt-5.1-codex-max"]) => Self::Newest,
            _ if name == "gpt-5.1" || is(&["gpt-5.1-"]) => Self::FiveOne,
            _ => Self::Newest,
        }
    }

    /// Returns the word for an effort, or the nearest one that the model knows.
    fn word(self, effort: ReasoningEffort) -> &'static str {
        match effort {
            ReasoningEffort::None => "none",
            ReasoningEffort::Minimal if self == Self::Five => "minimal",
            ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
            ReasoningEffort::High => "high",
            ReasoningEffort::Max if self == Self::Newest => "xhigh",
            ReasoningEffort::Max => "high",
            _ => "medium",
        }
    }
}

/// Checks for options that OpenAI does not have.
pub(super) fn check(model: &str, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(Responses::API, option, why));
    if !options.stop.is_empty() {
        return refuse("stop", "OpenAI has no such option for responses");
    }
    if options.seed.is_some() {
        return refuse("seed", "OpenAI has no such option for responses");
    }
    if options.reasoning.budget_tokens.is_some() {
        return refuse("reasoning/budgetTokens", "OpenAI takes an effort instead");
    }
    match (Generation::of(model), options.reasoning.effort) {
        (_, None) | (Generation::Unreasoning, Some(ReasoningEffort::None)) => Ok(()),
        (Generation::Unreasoning, Some(_)) => refuse("reasoning/effort", "this model does not reason"),
        (Generation::First | Generation::Five, Some(ReasoningEffort::None)) => {
            refuse("reasoning/effort", "this model always reasons")
        }
        _ => Ok(()),
    }
}

/// Returns the members of the request, and the tools that run at the provider.
pub(super) fn settings(request: &Encoding<'_>) -> Result<(Settings, Vec<Value>)> {
    let (model, options) = (request.model(), request.options());
    let generation = Generation::of(model);
    let mut settings = Settings::default();
    settings.set("model", model);
    settings.set("stream", true);
    settings.set("store", false);
    if let Some(max) = options.max_output_tokens {
        settings.set("max_output_tokens", max.get());
    }
    if let Some(temperature) = options.temperature {
        settings.set("temperature", temperature);
    }
    if let Some(top_p) = options.top_p {
        settings.set("top_p", top_p);
    }
    if let Some(effort) = options.reasoning.effort.filter(|_| generation != Generation::Unreasoning) {
        settings.set_in("reasoning", "effort", generation.word(effort));
    }
    let summary = options.reasoning.summary.and_then(|summary| match summary {
        ReasoningSummary::Auto => Some("auto"),
        ReasoningSummary::Concise => Some("concise"),
        ReasoningSummary::Detailed => Some("detailed"),
        // Without this member, OpenAI returns none.
        _ => None,
    });
    if let Some(summary) = summary.filter(|_| generation != Generation::Unreasoning) {
        settings.set_in("reasoning", "summary", summary);
    }
    if let Some(format) = &options.response_format {
        let schema = Value::Object(format.schema.clone());
        let format = json!({ "type": "json_schema", "name": format.name, "schema": schema, "strict": format.strict });
        settings.set_in("text", "format", format);
    }
    // Requests with the same key are sent to the same machine, which has the beginning of the conversation.
    if let Some(digest) = request.instance_digest().filter(|_| options.cache != Some(CacheUse::Off)) {
        settings.set("prompt_cache_key", digest);
    }
    if options.cache == Some(CacheUse::Long) {
        settings.set("prompt_cache_retention", "24h");
    }
    set_tool_choice(&mut settings, request)?;
    let own = ["conversation", "input", "instructions", "model", "previous_response_id", "store", "stream"];
    let provider_tools = settings.merge(Responses::API, options, &own)?;
    let mut include = options.provider.get("include").and_then(Value::as_array).cloned().unwrap_or_default();
    let encrypted = Value::from("reasoning.encrypted_content");
    // Models that do not reason refuse it.
    if request.with_reasoning() && generation != Generation::Unreasoning && !include.contains(&encrypted) {
        include.push(encrypted);
    }
    if !include.is_empty() {
        settings.set("include", include);
    }
    Ok((settings, provider_tools))
}

fn set_tool_choice(settings: &mut Settings, request: &Encoding<'_>) -> Result<()> {
    let options = request.options();
    let mut tools = request.tools().map(|tool| tool.name.as_str()).peekable();
    let of_provider = options.provider.get("tools").and_then(Value::as_array).is_some_and(|tools| !tools.is_empty());
    let (any, closes) = (of_provider || tools.peek().is_some(), request.has_closed_tools());
    if let Some(parallel) = options.parallel_tool_calls.filter(|_| any) {
        settings.set("parallel_tool_calls", parallel);
    }
    let choice = match &options.tool_choice {
        Some(ToolChoice::None) if any || closes => json!("none"),
        Some(ToolChoice::Required) if any && closes => allowed(request, "required"),
        Some(ToolChoice::Required) if any => json!("required"),
        Some(ToolChoice::Tool(name)) if tools.any(|tool| tool == name.as_str()) => named(request, name.as_str()),
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {
            return Err(refuse_option(Responses::API, "toolChoice", "the step does not offer the tool"));
        }
        _ if closes && any => allowed(request, "auto"),
        _ if closes => json!("none"),
        Some(ToolChoice::Auto) if any => json!("auto"),
        _ => return Ok(()),
    };
    settings.set("tool_choice", choice);
    Ok(())
}

/// Returns the choice of tools that leaves out the closed ones.
fn allowed(request: &Encoding<'_>, mode: &str) -> Value {
    let mut tools = closed::of_provider(request.options(), entry).unwrap_or_default();
    tools.extend(request.tools().map(|tool| named(request, tool.name.as_str())));
    json!({ "type": "allowed_tools", "mode": mode, "tools": tools })
}

/// Returns how a list of allowed tools names a tool that runs at the provider. It cannot name those that the model has
/// to search for.
pub(super) fn entry(tool: &Map<String, Value>) -> Option<Value> {
    let kind = tool.get("type")?.as_str()?;
    if matches!(kind, "tool_search" | "namespace") || tool.contains_key("defer_loading") {
        return None;
    }
    let names = tool.iter().filter(|(member, _)| matches!(&***member, "type" | "name" | "server_label"));
    Some(names.map(|(member, value)| (member.clone(), value.clone())).collect())
}

/// Returns how a request names a tool of the step.
fn named(request: &Encoding<'_>, name: &str) -> Value {
    match request.provider_tool(name) {
        Some(tool) => json!({ "type": tool.kind }),
        None => json!({ "type": "function", "name": name }),
    }
}
