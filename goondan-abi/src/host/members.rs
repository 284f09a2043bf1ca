//! The members of one kind of context, which cross as JSON.

use goondan_core::host::directive::{self, Directive};
use goondan_core::linkage::WireField;
use goondan_core::{Error, Result, StepContext, ToolCallContext, context_members};

/// The error for a field or function that this kind of call does not have.
pub(super) fn unknown(what: &str) -> Error {
    Error::msg(format!("this call has no `{what}`"))
}

/// The members of a context that other kinds do not have.
pub(super) trait ContextMembers {
    /// Returns a field as JSON.
    fn read_field(&self, field: &str) -> Result<Vec<u8>>;
    /// Replaces a field by JSON, or applies the directive of this name with its argument as JSON.
    fn write(&mut self, member: &str, json: &[u8]) -> Result<()>;
}

/// Implements reading and writing.
macro_rules! implement {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        { $($mode:ident $name:ident: $type:ty = $json:literal $doc:tt $($name_mut:ident $doc_mut:tt)?;)* }
        directives { $($method:ident $arg:tt as $directive:ident = $directive_name:literal $about:tt;)* }
    )*) => {
        $(
            impl ContextMembers for $context<'_> {
                fn read_field(&self, field: &str) -> Result<Vec<u8>> {
                    match field {
                        $($json => implement!(@json $mode self $name),)*
                        _ => Err(unknown(field)),
                    }
                }

                fn write(&mut self, member: &str, json: &[u8]) -> Result<()> {
                    match member {
                        $($($json => *self.$name_mut() = <$type>::from_json(json)?,)?)*
                        $($directive_name => self.apply(directive::$directive::new(WireField::from_json(json)?)),)*
                        _ => return Err(unknown(member)),
                    }
                    Ok(())
                }
            }
        )*
    };
    (@json text $self:ident $name:ident) => { Ok(serde_json::to_vec($self.$name())?) };
    (@json $mode:ident $self:ident $name:ident) => { $self.$name().to_json() };
}

context_members!(implement);
