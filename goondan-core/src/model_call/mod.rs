//! What a step knows of the model that it calls, and asks of it.

mod info;
mod options;

pub use info::{ModelInfo, Prices};
pub use options::{
    CacheUse, ModelOptions, ModelOptionsExt, ReasoningEffort, ReasoningOptions, ReasoningSummary, ResponseFormat,
    ToolChoice,
};
