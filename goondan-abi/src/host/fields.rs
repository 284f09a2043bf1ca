//! The fields of one kind of context, read and written as JSON.

use goondan_core::linkage::WireField;
use goondan_core::{Error, ModelName, ModelOptions, Result, StepContext, ToolCallContext, ToolCatalog, context_fields};
use serde_json::{Map, Value};

/// The error for a field or function that this kind of call does not have.
pub(super) fn unknown(what: &str) -> Error {
    Error::msg(format!("this call has no `{what}`"))
}

/// The fields of a context that other kinds do not have.
pub(super) trait ContextFields {
    /// Returns a field as JSON.
    fn read_field(&self, field: &str) -> Result<Vec<u8>>;
    /// Replaces a field by JSON.
    fn write_field(&mut self, field: &str, json: &[u8]) -> Result<()>;
}

/// Implements reading and writing.
macro_rules! implement {
    ($(
        $kind:ident($context:ident) {
            $($mode:ident $name:ident: $type:ty = $json:literal { $(#[doc = $doc:literal])* }
                $($name_mut:ident { $(#[doc = $doc_mut:literal])* })?;)*
        } host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $fields:ident;
    )*) => {
        $(
            impl ContextFields for $context<'_> {
                fn read_field(&self, field: &str) -> Result<Vec<u8>> {
                    match field {
                        $($json => implement!(@json $mode self $name),)*
                        _ => Err(unknown(field)),
                    }
                }

                fn write_field(&mut self, field: &str, json: &[u8]) -> Result<()> {
                    match field {
                        $($($json => *self.$name_mut() = <$type>::from_json(json)?,)?)*
                        _ => return Err(unknown(field)),
                    }
                    Ok(())
                }
            }
        )*
    };
    (@json text $self:ident $name:ident) => { Ok(serde_json::to_vec($self.$name())?) };
    (@json $mode:ident $self:ident $name:ident) => { $self.$name().to_json() };
}

context_fields!(implement);
