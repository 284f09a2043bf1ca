//! The fields of one kind of context: copies of those that a middleware read, written back when it changed them.

use std::sync::OnceLock;

use goondan_core::linkage::WireField;
use goondan_core::{Result, context_members};

use super::call::CallRef;
use crate::bytes::OwnedBuffer;

/// A copy of a field that a middleware can change.
pub(super) struct Cached<T> {
    read: OnceLock<T>,
    /// The copy that may differ from the field of the host; then `read` is empty.
    changed: Option<T>,
}

impl<T> Default for Cached<T> {
    fn default() -> Self {
        Self { read: OnceLock::new(), changed: None }
    }
}

impl<T> Cached<T> {
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_none() && self.read.get().is_none()
    }

    pub(super) fn get(&self, read: impl FnOnce() -> T) -> &T {
        self.changed.as_ref().unwrap_or_else(|| self.read.get_or_init(read))
    }

    pub(super) fn get_mut(&mut self, read: impl FnOnce() -> T) -> &mut T {
        self.changed.get_or_insert_with(|| self.read.take().unwrap_or_else(read))
    }

    pub(super) fn into_changed(self) -> Option<T> {
        self.changed
    }
}

/// Reads a field of the run.
///
/// # Panics
/// As [`read_with`].
pub(super) fn read<T: WireField>(call: CallRef, field: &str) -> T {
    read_with(call, field, |json| T::from_host(json.bytes()))
}

/// Reads a field of the run with `parse`.
///
/// # Panics
/// If the host breaks the contract. The panic is caught within the library and reported to the host.
#[expect(clippy::panic, reason = "the accessors of a context cannot return an error")]
pub(super) fn read_with<T>(call: CallRef, field: &str, parse: impl FnOnce(OwnedBuffer) -> Result<T>) -> T {
    let value = call.read(field).and_then(parse);
    value.unwrap_or_else(|error| panic!("the host gave no `{field}`: {error}"))
}

/// Declares the copies of all kinds.
macro_rules! declare {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        { $($mode:ident $name:ident: $type:ty = $json:literal $doc:tt $($name_mut:ident $doc_mut:tt)?;)* }
        directives $directives:tt
    )*) => {
        /// The copies of a run; only those of its kind are ever read.
        #[derive(Default)]
        pub(super) struct KindFields {
            $(pub(super) $copies: $copy,)*
        }

        impl KindFields {
            /// Writes the changed fields to the host.
            pub(super) fn flush(self, call: CallRef) -> Result<()> {
                $($(declare! { @flush $mode self call $copies $name $json })*)*
                Ok(())
            }
        }

        $(
            #[derive(Default)]
            pub(super) struct $copy {
                $(pub(super) $name: Cached<$type>,)*
            }
        )*
    };
    (@flush change $self:ident $call:ident $copies:ident $name:ident $json:literal) => {
        if let Some(value) = $self.$copies.$name.into_changed() {
            $call.write($json, &value.into_json()?)?;
        }
    };
    (@flush $mode:ident $($rest:tt)*) => {};
}

context_members!(declare);
