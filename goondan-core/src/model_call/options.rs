//! The options of a model call, the same for bundles and middlewares.

use std::num::NonZeroU32;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::depth;
use crate::error::Result;
use crate::name::ToolName;

/// The options of a model call. A member that is `None` or empty is left to the model's own options, and then to its
/// provider.
///
/// A step middleware sets options of its step through [`StepContext::model_options_mut`](crate::StepContext). A model
/// fails with `E_MODEL_OPTION` if its provider cannot follow an option.
///
/// ```
/// use goondan::middleware::ModelOptions;
///
/// let mut options = ModelOptions::default();
/// options.temperature = Some(0.2);
/// options.stop.push("END".to_owned());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ModelOptions {
    /// The limit of tokens in the answer, reasoning included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<NonZeroU32>,
    /// The variance of the choice of tokens: 0 for the likeliest ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0))]
    pub temperature: Option<f64>,
    /// Only the likeliest tokens whose probabilities add up to this share are chosen from.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub top_p: Option<f64>,
    /// Texts that end the answer. They are not part of it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stop: Vec<String>,
    /// Makes answers repeatable as far as the provider can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<i64>,
    /// The reasoning before an answer.
    #[serde(skip_serializing_if = "ReasoningOptions::is_default")]
    pub reasoning: ReasoningOptions,
    /// Whether the model may, must or must not call tools: `auto`, `none`, `required` or `{ tool: NAME }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Whether an answer may have several tool calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The JSON that the answer must be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub response_format: Option<ResponseFormat>,
    /// The use of the provider's cache of prompts: `off`, `auto` or `long`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheUse>,
    /// Members that are merged into the provider's request as they are, last.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub provider: Map<String, Value>,
    /// In a library, the options of a newer host that this version does not know.
    #[serde(skip)]
    pub(crate) unknown: Option<Box<Map<String, Value>>>,
}

/// The reasoning of a model before its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ReasoningOptions {
    /// The length of the reasoning: `none`, `minimal`, `low`, `medium`, `high` or `max`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<ReasoningEffort>,
    /// The limit of tokens for reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget_tokens: Option<NonZeroU32>,
    /// The part of the reasoning that the provider returns as text: `auto`, `concise`, `detailed` or `off`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<ReasoningSummary>,
}

/// The length of a model's reasoning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReasoningEffort {
    /// Not at all.
    None,
    /// As little as possible.
    Minimal,
    /// A little.
    Low,
    /// As long as is usual.
    Medium,
    /// Long.
    High,
    /// As long as the provider allows.
    Max,
}

/// The part of a model's reasoning that is returned as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ReasoningSummary {
    /// As much as the provider returns for this model.
    Auto,
    /// A short text.
    Concise,
    /// A long text.
    Detailed,
    /// Nothing.
    Off,
}

/// Whether a model may, must or must not call tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ToolChoice {
    /// It may.
    Auto,
    /// It must not.
    None,
    /// It must call one or more.
    Required,
    /// It must call this one.
    Tool(#[schemars(with = "String")] ToolName),
}

/// The JSON that an answer must be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[non_exhaustive]
pub struct ResponseFormat {
    /// A name for the schema: letters, digits, `_` and `-`.
    pub name: String,
    /// The JSON Schema of the answer.
    pub schema: Map<String, Value>,
    /// Whether the provider enforces the schema. Defaults to true.
    #[serde(default = "enforced")]
    pub strict: bool,
}

fn enforced() -> bool {
    true
}

/// The use of the provider's cache of prompts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum CacheUse {
    /// Not at all, as far as the provider lets choose.
    Off,
    /// As the provider recommends.
    Auto,
    /// For longer than usual, where the provider offers that.
    Long,
}

impl ResponseFormat {
    /// The format of answers that fit `schema`, which the provider enforces.
    pub fn new(name: impl Into<String>, schema: Map<String, Value>) -> Self {
        Self { name: name.into(), schema, strict: true }
    }
}

impl ReasoningOptions {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

impl ModelOptions {
    /// Returns these options, completed by `defaults`: option by option, also within `reasoning` and `provider`.
    #[must_use]
    pub fn or(self, defaults: &Self) -> Self {
        let reasoning = ReasoningOptions {
            effort: self.reasoning.effort.or(defaults.reasoning.effort),
            budget_tokens: self.reasoning.budget_tokens.or(defaults.reasoning.budget_tokens),
            summary: self.reasoning.summary.or(defaults.reasoning.summary),
        };
        let mut provider = defaults.provider.clone();
        provider.extend(self.provider);
        Self {
            max_output_tokens: self.max_output_tokens.or(defaults.max_output_tokens),
            temperature: self.temperature.or(defaults.temperature),
            top_p: self.top_p.or(defaults.top_p),
            stop: if self.stop.is_empty() { defaults.stop.clone() } else { self.stop },
            seed: self.seed.or(defaults.seed),
            reasoning,
            tool_choice: self.tool_choice.or_else(|| defaults.tool_choice.clone()),
            parallel_tool_calls: self.parallel_tool_calls.or(defaults.parallel_tool_calls),
            response_format: self.response_format.or_else(|| defaults.response_format.clone()),
            cache: self.cache.or(defaults.cache),
            provider,
            unknown: self.unknown,
        }
    }
}

/// The members of [`ModelOptions`] for the runtime.
pub trait ModelOptionsExt: Sized {
    /// Checks the depth of the values in the options, and drops the options without recursion if one is too deep.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH`.
    fn checked(self) -> Result<Self>;
}

impl ModelOptionsExt for ModelOptions {
    fn checked(self) -> Result<Self> {
        let schema = self.response_format.as_ref().map(|format| &format.schema);
        let checked = [Some(&self.provider), schema].into_iter().flatten().try_for_each(depth::check_map);
        match checked {
            Ok(()) => Ok(self),
            Err(error) => {
                let schema = self.response_format.map(|format| format.schema).unwrap_or_default();
                depth::discard(self.provider.into_values().chain(schema.into_values()));
                Err(error.refuse("an option of a model call"))
            }
        }
    }
}
