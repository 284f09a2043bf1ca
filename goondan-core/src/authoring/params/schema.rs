//! The JSON Schema of a parameter, if it has one. Expansions look for it by the type of each parameter: the one that is
//! read from JSON has a schema, and references have none.

use std::marker::PhantomData;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// Looks up the schema of the type `P`. A type with a schema has inherent methods, which method resolution prefers; for
/// all others those of [`NoSchema`] are called, which must be in scope. The lookup is therefore never a compile error:
/// which types a function may take is checked once, elsewhere.
#[doc(hidden)]
#[derive(Debug)]
pub struct SchemaOf<P>(PhantomData<fn() -> P>);

impl<P> SchemaOf<P> {
    /// A lookup for `P`.
    #[expect(clippy::new_without_default, reason = "expansions call it")]
    pub fn new() -> Self {
        Self(PhantomData)
    }
}

impl<P: JsonSchema> SchemaOf<P> {
    /// Returns the schema for a config, which editors and checks read.
    pub fn config(&self) -> Option<Value> {
        Some(schemars::schema_for!(P).to_value())
    }

    /// Returns the schema for the input of a tool. It has no `$schema`, which models cannot use.
    pub fn input(&self) -> Option<Value> {
        let settings = SchemaSettings::default().with(|settings| settings.meta_schema = None);
        Some(settings.into_generator().into_root_schema_for::<P>().to_value())
    }
}

/// Implemented for no type: no value of `{Self}` is a JSON object, so no arguments and no config would fit its schema.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no JSON object",
    label = "take a struct with a field of this type, which derives `Deserialize` and `JsonSchema`",
    note = "the arguments of a tool and the config of an extension are JSON objects, as in `struct Input {{ text: String }}`"
)]
pub trait IsAnObject {}

/// The attributes refuse these types by their names. This refuses them under other names too.
macro_rules! are_no_objects {
    ($([$($generic:tt)*] $type:ty;)+) => {
        $(impl<$($generic)*> SchemaOf<$type> {
            /// Fails to compile.
            pub fn assert_object(&self)
            where
                for<'never> $type: IsAnObject,
            {
            }
        })+
    };
    ($($scalar:ty),+) => {
        are_no_objects! { $([] $scalar; [] Option<$scalar>;)+ }
    };
}

are_no_objects!(bool, char, String, f32, f64);
are_no_objects!(i8, i16, i32, i64, i128, isize, u8, u16, u32, u64, u128, usize);
are_no_objects! {
    [T] Vec<T>;
    [T, const N: usize] [T; N];
    [] ();
    [A] (A,);
    [A, B] (A, B);
    [A, B, C] (A, B, C);
}

/// The fallback of [`SchemaOf`] for types without a schema, and for those that may be objects.
#[doc(hidden)]
pub trait NoSchema {
    /// Compiles.
    fn assert_object(&self) {}

    /// Returns `None`.
    fn config(&self) -> Option<Value> {
        None
    }

    /// Returns `None`.
    fn input(&self) -> Option<Value> {
        None
    }
}

impl<P> NoSchema for SchemaOf<P> {}

/// The schema of a config or an input that no parameter takes: an object without members.
#[doc(hidden)]
pub fn empty_object_schema() -> Value {
    serde_json::json!({ "type": "object", "additionalProperties": false })
}
