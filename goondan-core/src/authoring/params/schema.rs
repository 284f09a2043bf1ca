//! Owns the schema of a parameter, if it has one. Expansions ask each parameter for it, by its type alone: the one that
//! comes as JSON has it, and what is lent has none.

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Asks the type `P` for its schema. For types that have one, the method that answers is that of the type itself; for all
/// others it is that of [`NoSchema`], which has to be in scope. So the question is never an error: what a function may take
/// is judged elsewhere, once.
#[doc(hidden)]
#[derive(Debug)]
pub struct SchemaOf<P>(PhantomData<fn() -> P>);

impl<P> SchemaOf<P> {
    /// The question.
    #[expect(clippy::new_without_default, reason = "expansions call it")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<P: JsonSchema> SchemaOf<P> {
    /// As a config has it, for editors and checks.
    pub fn config(&self) -> Option<Value> {
        Some(schemars::schema_for!(P).to_value())
    }

    /// Without the address of the meta schema: models read this at every step, and it tells them nothing.
    pub fn input(&self) -> Option<Value> {
        let settings = SchemaSettings::default().with(|settings| settings.meta_schema = None);
        Some(settings.into_generator().into_root_schema_for::<P>().to_value())
    }
}

/// The answer of types without a schema.
#[doc(hidden)]
pub trait NoSchema {
    /// None.
    fn config(&self) -> Option<Value> {
        None
    }

    /// None.
    fn input(&self) -> Option<Value> {
        None
    }
}

impl<P> NoSchema for SchemaOf<P> {}

/// The schema of what nobody takes, a config or an input: an object without members.
#[doc(hidden)]
pub fn nothing() -> Value {
    serde_json::json!({ "type": "object", "additionalProperties": false })
}
