//! The value that an answer is to be.
// VALUE-01

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The value that is expected as the answer to an event.
///
/// ```
/// use goondan::event::{AgentEvent, AnswerFormat};
/// use schemars::JsonSchema;
///
/// #[derive(JsonSchema)]
/// struct Weather {
///     city: String,
///     degrees: f64,
/// }
///
/// let event = AgentEvent::input("It is 21 degrees in Lisbon.").expecting(AnswerFormat::of::<Weather>().at_most(3));
/// # let _ = event;
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AnswerFormat {
    /// The JSON Schema of the value.
    pub schema: Value,
    /// How often the model is asked again when its answer is no such value.
    #[serde(default = "twice")]
    pub at_most: u32,
}

fn twice() -> u32 {
    2
}

impl AnswerFormat {
    /// A value that fits this JSON Schema.
    pub fn new(schema: Value) -> Self {
        Self { schema, at_most: twice() }
    }

    /// A value of the type `T`.
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::default().with(|settings| settings.meta_schema = None);
        Self::new(settings.into_generator().into_root_schema_for::<T>().to_value())
    }

    /// Sets how often the model is asked again.
    #[must_use]
    pub fn at_most(self, at_most: u32) -> Self {
        Self { at_most, ..self }
    }
}
