//! Owns the results that libraries hold handles to.

use std::ffi::c_void;

use goondan_core::linkage::Crossing;
use goondan_core::{Result, StepResult, ToolCallResult, TurnResult};

use crate::table::{Buffer, HANDLE};

/// A result of any kind.
pub(super) enum AnyResult {
    Turn(TurnResult),
    Step(StepResult),
    ToolCall(ToolCallResult),
}

impl AnyResult {
    /// Hands the result to a library.
    pub(super) fn into_buffer(self) -> Buffer {
        unsafe extern "C" fn free(data: *mut c_void, _: usize, _: usize) {
            crate::panic::logged("dropping a result", || {
                // SAFETY: The data is that of the box below, and the contract lets this run once.
                drop(unsafe { Box::from_raw(data.cast::<AnyResult>()) });
            });
        }
        Buffer { data: Box::into_raw(Box::new(self)).cast(), len: 0, extra: HANDLE, free: Some(free) }
    }

    /// Takes the result back.
    ///
    /// # Safety
    /// `handle` must be one of `into_buffer` that the library gives up.
    pub(super) unsafe fn from_handle(handle: *mut c_void) -> Self {
        // SAFETY: The caller guarantees the box of `into_buffer`.
        *unsafe { Box::from_raw(handle.cast::<Self>()) }
    }

    pub(super) fn read(&self, field: &str) -> Result<Vec<u8>> {
        match self {
            Self::Turn(result) => result.read(field),
            Self::Step(result) => result.read(field),
            Self::ToolCall(result) => result.read(field),
        }
    }

    pub(super) fn write(&mut self, field: &str, json: &[u8]) -> Result<()> {
        match self {
            Self::Turn(result) => result.write(field, json),
            Self::Step(result) => result.write(field, json),
            Self::ToolCall(result) => result.write(field, json),
        }
    }
}
