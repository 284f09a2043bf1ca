//! The objects that the host calls.

use std::ffi::c_void;

use goondan_core::linkage::WireShownCall;
use goondan_core::{ExtensionName, Presentation, Result, ShownCall};

use super::call::CallRef;
use super::missing;
use super::runtime::{ExtensionScope, RuntimeRef, RuntimeScope};
use crate::bytes::answer;
use crate::future::{PollScope, export};
use crate::panic::{catch_or_log, drop_guarded};
use crate::table::{self, Buffer, Object, ObjectTable, Text};

/// A part of an extension that the host can call.
pub(super) trait Callable: Send + Sync + 'static {
    /// The input of a call.
    type Input: Send;
    /// Parses the input, whose bytes are borrowed only until the future is created.
    fn read(input: &[u8]) -> Result<Self::Input>;
    /// Runs one call.
    fn call(&self, call: CallRef, input: Self::Input) -> impl Future<Output = Result<Buffer>> + Send;
    /// Whether [`Callable::present`] returns something.
    const PRESENTS: bool = false;
    /// Returns the presentation of a call.
    fn present(&self, _: &ShownCall<'_>) -> Result<Option<Presentation>> {
        Ok(None)
    }
}

/// Passes the ownership of `callable`, a part of `extension`, to the host.
pub(super) fn object<C: Callable>(extension: &ExtensionName, callable: C) -> Object {
    /// The callable, its extension, and a reference that keeps the runtime running for it.
    struct ObjectData<C>(C, ExtensionName, RuntimeRef);

    impl<C: Callable> ObjectData<C> {
        const TABLE: &'static ObjectTable = &ObjectTable {
            size: size_of::<ObjectTable>(),
            call: Self::call,
            drop: Self::drop,
            present: if C::PRESENTS { Some(Self::present) } else { None },
        };

        unsafe extern "C" fn call(data: *mut c_void, call: *const c_void, input: Text) -> table::Future {
            // SAFETY: The contract makes the host pass the data of this object, which it drops after all its futures.
            let Self(callable, extension, _) = unsafe { &*data.cast::<Self>() };
            // SAFETY: The contract makes `call` valid until the future is dropped.
            let call = unsafe { CallRef::new(call) };
            // SAFETY: The contract makes the text valid for this call.
            let input = catch_or_log("reading the input of a call", || C::read(unsafe { input.bytes() }));
            match input {
                // SAFETY: The future borrows the object, which the host drops after it.
                Some(Ok(input)) => unsafe { export(ExtensionScope(extension), callable.call(call, input)) },
                // SAFETY: The future borrows nothing.
                Some(Err(error)) => unsafe { export(ExtensionScope(extension), async move { Err(error) }) },
                // SAFETY: The future borrows nothing.
                None => unsafe { export(ExtensionScope(extension), async { Err(missing("input")) }) },
            }
        }

        unsafe extern "C" fn present(data: *mut c_void, call: Text, output: *mut Buffer) -> i32 {
            let present = || {
                // SAFETY: The contract makes the host pass the data of this object, which it has not dropped.
                let Self(callable, ..) = unsafe { &*data.cast::<Self>() };
                // SAFETY: The contract makes the text valid for this call.
                let call: WireShownCall = serde_json::from_slice(unsafe { call.bytes() })?;
                callable.present(&call.call())?.as_ref().map(Buffer::json).transpose()
            };
            // SAFETY: The contract makes the host pass a writable `output`.
            unsafe { answer(output, present) }
        }

        unsafe extern "C" fn drop(data: *mut c_void) {
            catch_or_log("dropping a part of an extension", || {
                // SAFETY: The contract makes the host pass, once, the data of this object, which is the box below.
                let Self(callable, extension, _runtime) = *unsafe { Box::from_raw(data.cast::<Self>()) };
                drop_guarded(extension, || {
                    let _guard = RuntimeScope.enter();
                    std::mem::drop(callable);
                });
            });
        }
    }

    let data = Box::into_raw(Box::new(ObjectData(callable, extension.clone(), RuntimeRef::new())));
    Object { data: data.cast(), table: ObjectData::<C>::TABLE }
}
