//! The port to models, and a model that plays a script.
//!
//! Implement [`Model`] to connect a model. [`ScriptedModel`] answers from a script, for tests and examples:
//!
//! ```
//! use goondan::json;
//! use goondan::model::{ScriptItem, ScriptedModel};
//!
//! let script = [ScriptItem::call("weather__today", json!({ "city": "Seoul" })), ScriptItem::say("It rains.")];
//! let model = ScriptedModel::new(script);
//! ```

pub use goondan_core::{
    Deltas, Model, ModelDelta, ModelFinish, ModelInfo, ModelOptions, ModelRequest, ModelResponse, Prices, ScriptItem,
    ScriptedModel,
};
