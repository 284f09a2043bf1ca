//! Options of Converse, and of the makers of its models.

use goondan_core::{CacheUse, ModelOptions, ReasoningEffort, ReasoningSummary, Result, ToolChoice};
use serde_json::{Map, Value, json};

use super::{Converse, Maker};
use crate::wire::anthropic::options::{MAX_TOKENS, Thinking, check_thinking, set_thinking};
use crate::wire::{Encoding, Settings, Wire, refuse_option};

/// The member for options of the maker of a model.
const OF_MAKER: &str = "additionalModelRequestFields";

/// The models of Anthropic that have no cache in Bedrock.
const WITHOUT_CACHE: [&str; 6] =
    ["claude-instant", "claude-v2", "claude-3-haiku", "claude-3-opus", "claude-3-sonnet", "claude-3-5-sonnet-20240620"];

/// Checks for options that Converse, or the model, does not have.
pub(super) fn check(model: &str, options: &ModelOptions) -> Result<()> {
    let refuse = |option, why| Err(refuse_option(Converse::API, option, why));
    if options.parallel_tool_calls == Some(false) {
        return refuse("parallelToolCalls", "Converse cannot keep a model from several calls in one answer");
    }
    if options.seed.is_some() {
        return refuse("seed", "Converse has no such option");
    }
    let reasoning = &options.reasoning;
    let maker = Maker::of(model);
    if maker == Maker::Anthropic {
        return check_thinking(Converse::API, model, options);
    }
    if reasoning.budget_tokens.is_some() {
        return refuse("reasoning/budgetTokens", "only models of Anthropic have one in Converse");
    }
    if reasoning.summary.is_some_and(|summary| summary != ReasoningSummary::Auto) {
        return refuse("reasoning/summary", "this model knows `auto` only");
    }
    match (maker, reasoning.effort) {
        (Maker::OpenAi, Some(ReasoningEffort::None)) => refuse("reasoning/effort", "this model always reasons"),
        (Maker::Other, Some(_)) => {
            let why =
                "only models of Anthropic, Amazon and OpenAI have one in Converse, and the name must tell the maker";
            refuse("reasoning/effort", why)
        }
        _ => Ok(()),
    }
}

/// Returns the members of the request, and the tools that run at the provider.
pub(super) fn settings(request: &Encoding<'_>, thinking: Thinking) -> Result<(Settings, Vec<Value>)> {
    let (model, options) = (request.model(), request.options());
    let mut settings = Settings::default();
    let maker = Maker::of(model);
    let mut limit = options.max_output_tokens.map(|tokens| tokens.get());
    if let (Thinking::Budget(budget), None) = (thinking, limit) {
        // A budget must be smaller than the limit, which is another one for each model.
        limit = Some(MAX_TOKENS.saturating_add(budget));
    }
    let mut config = |name: &str, value: Value| settings.set_in("inferenceConfig", name, value);
    if let Some(tokens) = limit {
        config("maxTokens", tokens.into());
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
    if let Some(format) = &options.response_format {
        // The schema is a text.
        let schema = json!({ "name": format.name, "schema": Value::Object(format.schema.clone()).to_string() });
        settings.set_in(
            "outputConfig",
            "textFormat",
            json!({ "type": "json_schema", "structure": { "jsonSchema": schema } }),
        );
    }
    let of_maker = members_of_maker(maker, options, thinking);
    if !of_maker.is_empty() {
        settings.set(OF_MAKER, Value::Object(of_maker));
    }
    let tools = settings.merge(Converse::API, options, &["messages", "system", "toolConfig"])?;
    Ok((settings, tools))
}

/// Returns the maker's name for the reasoning.
fn members_of_maker(maker: Maker, options: &ModelOptions, thinking: Thinking) -> Map<String, Value> {
    let mut members = Map::new();
    let effort = options.reasoning.effort.map(|effort| match effort {
        ReasoningEffort::None => "none",
        ReasoningEffort::Minimal | ReasoningEffort::Low => "low",
        ReasoningEffort::High | ReasoningEffort::Max => "high",
        _ => "medium",
    });
    match (maker, effort) {
        (Maker::Anthropic, _) => set_thinking(options, thinking, |object, name, value| {
            let slot = members.entry(object).or_insert_with(|| Value::Object(Map::new()));
            slot[name] = value;
        }),
        (Maker::Amazon, Some("none")) => {
            members.insert("reasoningConfig".to_owned(), json!({ "type": "disabled" }));
        }
        (Maker::Amazon, Some(effort)) => {
            let config = json!({ "type": "enabled", "maxReasoningEffort": effort });
            members.insert("reasoningConfig".to_owned(), config);
        }
        (Maker::OpenAi, Some(effort)) => {
            members.insert("reasoning_effort".to_owned(), effort.into());
        }
        _ => {}
    }
    members
}

/// Returns which tools the model calls. Converse calls it `auto` if nothing is said, and has no word for none.
pub(super) fn tool_choice(request: &Encoding<'_>, any: bool) -> Result<Option<Value>> {
    Ok(match &request.options().tool_choice {
        Some(ToolChoice::Required) if any => Some(json!({ "any": {} })),
        Some(ToolChoice::Tool(name)) if any && request.tools().any(|tool| tool.name == *name) => {
            Some(json!({ "tool": { "name": name } }))
        }
        Some(ToolChoice::Required | ToolChoice::Tool(_)) => {
            return Err(refuse_option(Converse::API, "toolChoice", "the step does not offer the tool"));
        }
        _ => None,
    })
}

/// Returns the mark of a place up to which the provider keeps the request in its cache. Models that have none refuse a
/// request with one, so that by default those have it that are known to have a cache.
pub(super) fn cache_mark(model: &str, options: &ModelOptions) -> Option<Value> {
    match options.cache {
        Some(CacheUse::Off) => None,
        Some(CacheUse::Long) => Some(json!({ "type": "default", "ttl": "1h" })),
        Some(_) => Some(json!({ "type": "default" })),
        None => {
            let known = match Maker::of(model) {
                Maker::Anthropic => !WITHOUT_CACHE.iter().any(|name| model.contains(name)),
                Maker::Amazon => true,
                Maker::OpenAi | Maker::Other => false,
            };
            known.then(|| json!({ "type": "default" }))
        }
    }
}
