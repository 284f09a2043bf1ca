//! The value that an answer is to be.
// VALUE-01

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::depth;
use crate::error::{Error, ErrorCode, Result};

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
    /// The most times that the model is asked again when its answer is no such value.
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

    /// Returns the format if its schema is not nested too deeply, and drops it otherwise.
    ///
    /// # Errors
    /// `E_VALUE_DEPTH`.
    #[doc(hidden)]
    pub fn checked(self) -> Result<Self> {
        match depth::check(&self.schema) {
            Ok(()) => Ok(self),
            Err(error) => {
                depth::discard([self.schema]);
                Err(error.refuse("the schema of an answer"))
            }
        }
    }

    /// Sets how often the model is asked again.
    #[must_use]
    pub fn at_most(self, at_most: u32) -> Self {
        Self { at_most, ..self }
    }
}

/// Reads the value that the text of an answer is.
///
/// # Errors
/// `E_ANSWER_SCHEMA`.
pub(crate) fn value_of<T: DeserializeOwned>(text: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| {
        Error::new(ErrorCode::ANSWER_SCHEMA, format!("the answer is no value of the type: {error}"))
            .with_detail("attempt", text)
            .suggest("derive the schema from the type, and let no layer change the text of the answer")
    })
}
