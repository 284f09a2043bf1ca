//! Owns what is asked of the types that extensions take and give: each trait holds for whatever has the derive that it
//! speaks of, and has the words that the compiler says where the derive is missing.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::Error;

/// What can be read from JSON: everything that derives `serde::Deserialize` and owns what it holds.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be read from JSON",
    label = "derive `Deserialize` for this type, and let it own what it holds",
    note = "a tool reads its one input from JSON, and `#[init]` its one config: `#[derive(Deserialize, JsonSchema)]`",
    note = "a tool can also take `ctx: &ToolContext<'_>` and `api: &ExtensionApi`, and `#[init]` can take `api: ExtensionApi`"
)]
pub trait FromJson: DeserializeOwned {}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned> FromJson for T {}

/// What has a JSON Schema: everything that derives `schemars::JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` has no JSON Schema",
    label = "derive `JsonSchema` for this type",
    note = "models read the schema of a tool's input, and bundles are checked by the schema of a config: `#[derive(Deserialize, JsonSchema)]`"
)]
pub trait HasSchema: JsonSchema {}

#[diagnostic::do_not_recommend]
impl<T: JsonSchema> HasSchema for T {}

/// What can be written as JSON: everything that derives `serde::Serialize`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be written as JSON",
    label = "derive `Serialize` for `{Self}`",
    note = "models read the output of a tool as JSON: `#[derive(Serialize)]`"
)]
pub trait ToJson: Serialize {}

#[diagnostic::do_not_recommend]
impl<T: Serialize> ToJson for T {}

/// What `?` turns into a goondan error: [`Error`] itself, and every `std::error::Error` that is `Send`, `Sync` and
/// `'static`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not an error that a function of an extension can return",
    label = "return `goondan::Result`, or a type that implements `std::error::Error`",
    note = "`Error::msg(text)` makes an error from a text"
)]
pub trait IntoError: Into<Error> {}

#[diagnostic::do_not_recommend]
impl<E: Into<Error>> IntoError for E {}

/// Holds for nothing: what is read from JSON comes once.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is one parameter too many: what comes as JSON was taken before",
    label = "write one type that holds both, and derives `Deserialize` and `JsonSchema`",
    note = "a tool has one input, and `#[init]` one config"
)]
pub trait SecondFromJson {}
