//! The port to models, their providers, and a model that plays a script.
//!
//! Implement [`Model`] to connect a model, and [`ModelProvider`] so that bundles can name it. [`ScriptedModel`] answers
//! from a script, for tests and examples:
//!
//! ```
//! use goondan::json;
//! use goondan::model::{ScriptItem, ScriptedModel};
//!
//! let script = [ScriptItem::call("weather__today", json!({ "city": "Seoul" })), ScriptItem::say("It rains.")];
//! let model = ScriptedModel::new(script);
//! ```

pub use goondan_core::{
    CacheUse, ModelFinish, ModelInfo, ModelOptions, Prices, ReasoningEffort, ReasoningOptions, ReasoningSummary,
    ResponseFormat, ToolChoice,
};
#[doc(hidden)]
pub use goondan_runtime::find_provider;
pub use goondan_runtime::{
    BundlePath, CassetteMode, DeltaSink, Finding, FindingPlace, Findings, Model, ModelDelta, ModelProvider,
    ModelRequest, ModelResponse, ProviderContext, ProviderDescriptor, RecordedModel, ScriptItem, ScriptedModel,
    ValueBy, linked_providers,
};
