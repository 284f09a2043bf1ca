//! Bounds on the types that extensions take and return. Each trait is implemented for all types with a certain derive,
//! and holds the compile error for types without it.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// A type that can be read from JSON: it derives `serde::Deserialize` and borrows nothing.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from JSON",
    label = "must be an owned type that derives `Deserialize`",
    note = "take it by value, as in `input: Input` instead of `input: &Input`, and borrow nothing in it",
    note = "a tool reads its one input from JSON, and `#[init]` its one config: `#[derive(Deserialize, JsonSchema)]`",
    note = "a tool can also take `ctx: &ToolContext<'_>` and `api: &ExtensionApi`, and `#[init]` can take `api: ExtensionApi` and `ctx: InitContext`"
)]
pub trait FromJson: DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> FromJson for T {}

/// A type with a JSON Schema: it derives `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "derive `JsonSchema` for this type",
    note = "models read the schema of a tool's input, and configs in bundles are checked against theirs: `#[derive(Deserialize, JsonSchema)]`",
    note = "if it derives `JsonSchema` already, that is the derive of another version of schemars: depend on version 1, or derive `goondan::schemars::JsonSchema` with `#[schemars(crate = \"goondan::schemars\")]`"
)]
pub trait HasSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> HasSchema for T {}

/// A type that can be written as JSON: it derives `serde::Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as JSON",
    label = "derive `Serialize` for `{Self}`",
    note = "models read the output of a tool as JSON: `#[derive(Serialize)]`"
)]
pub trait ToJson: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ToJson for T {}

/// A type that `?` converts into a goondan error: [`Error`] itself, and every `std::error::Error` that is `Send`,
/// `Sync` and `'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error that a function of an extension can return",
    label = "return `goondan::Result`, or a type that implements `std::error::Error`",
    note = "`Error::msg(text)` makes an error from a text",
    note = "`.map_err(|error| Error::msg(\"what failed\").caused_by(error))` converts others, such as `anyhow::Error`"
)]
pub trait IntoError: Into<Error> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> IntoError for E {}

/// Implemented for no type: only one parameter of a function is read from JSON.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is one parameter too many: an earlier one is read from the same JSON",
    label = "write one type that holds both, and derives `Deserialize` and `JsonSchema`",
    note = "a tool has one input, and `#[init]` one config"
)]
pub trait SecondJsonParam {}
