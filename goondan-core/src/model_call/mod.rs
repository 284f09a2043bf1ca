//! The model of a step: facts about it, and options of the call.

mod info;
mod options;

pub use info::{ModelInfo, Prices};
pub use options::{
    CacheUse, ModelOptions, ModelOptionsExt, ReasoningEffort, ReasoningOptions, ReasoningSummary, ResponseFormat,
    ToolChoice,
};
