//! Owns bytes on their way: borrowed text and owned buffers.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use goondan_core::linkage::WireError;
use goondan_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::panic::caught;
use crate::table::{Buffer, FAILED, HANDLE, NONE, OK, PANICKED, Text};

impl Text {
    /// No bytes.
    pub(crate) const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    pub(crate) const fn new(text: &[u8]) -> Self {
        Self { data: text.as_ptr(), len: text.len() }
    }

    /// The bytes.
    ///
    /// # Safety
    /// `data` and `len` must be those of memory that stays as it is for `'a`.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: The caller guarantees readable, unchanging memory for `'a`; `len` is not 0, so `data` is not null.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// The text; empty when it is none.
    ///
    /// # Safety
    /// As for [`Text::bytes`].
    pub(crate) unsafe fn str<'a>(self) -> &'a str {
        // SAFETY: The caller guarantees what `bytes` asks for.
        let bytes = unsafe { self.bytes() };
        if bytes.is_ascii() {
            // Names of fields, mostly: this is faster for them than the check below.
            // SAFETY: ASCII is UTF-8.
            return unsafe { std::str::from_utf8_unchecked(bytes) };
        }
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// The text, if it comes from a host of this project. What libraries give is looked at first, by [`Text::str`].
    ///
    /// # Safety
    /// As for [`Text::bytes`], and they must be UTF-8.
    pub(crate) unsafe fn lent<'a>(self) -> &'a str {
        // SAFETY: The caller guarantees what `bytes` asks for.
        let bytes = unsafe { self.bytes() };
        // SAFETY: The caller guarantees UTF-8.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

impl Buffer {
    /// Nothing, to be written to.
    pub(crate) const EMPTY: Self = Self { data: std::ptr::null_mut(), len: 0, extra: 0, free: None };

    /// Hands bytes to the other side.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        unsafe extern "C" fn free(data: *mut c_void, len: usize, capacity: usize) {
            // SAFETY: The three are those of the vector below, and the contract lets this run once.
            drop(unsafe { Vec::from_raw_parts(data.cast::<u8>(), len, capacity) });
        }
        let mut bytes = ManuallyDrop::new(bytes);
        Self { data: bytes.as_mut_ptr().cast(), len: bytes.len(), extra: bytes.capacity(), free: Some(free) }
    }

    /// Hands JSON to the other side.
    pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self::bytes(serde_json::to_vec(value)?))
    }
}

/// A buffer of the other side; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Owned(Buffer);

// SAFETY: A buffer is bytes that nobody changes, or a handle; the contract lets both be read and freed on any thread.
unsafe impl Send for Owned {}
// SAFETY: As above.
unsafe impl Sync for Owned {}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

impl Owned {
    /// # Safety
    /// `buffer` must come from the other side, and nobody else may free it.
    pub(crate) unsafe fn new(buffer: Buffer) -> Self {
        Self(buffer)
    }

    pub(crate) fn is_handle(&self) -> bool {
        self.0.extra == HANDLE
    }

    /// The bytes; none of a handle.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: The other side wrote the buffer, and the contract makes its bytes readable until it is freed, which
        // only dropping `self` does.
        unsafe { Text { data: self.0.data.cast(), len: self.0.len }.bytes() }
    }

    /// The text, if it comes from a host of this project, as [`Text::lent`] does.
    ///
    /// # Safety
    /// The bytes must be UTF-8.
    pub(crate) unsafe fn lent(&self) -> &str {
        // SAFETY: The caller guarantees UTF-8.
        unsafe { std::str::from_utf8_unchecked(self.bytes()) }
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        Ok(serde_json::from_slice(self.bytes())?)
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// The error that the bytes are.
    pub(crate) fn into_error(self) -> Error {
        match serde_json::from_slice::<WireError>(self.bytes()) {
            Ok(WireError(error)) => error,
            Err(_) => Error::msg(self.text()),
        }
    }

    /// Hands the buffer back as it is.
    pub(crate) fn into_raw(self) -> Buffer {
        let this = ManuallyDrop::new(self);
        Buffer { data: this.0.data, len: this.0.len, extra: this.0.extra, free: this.0.free }
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if let Some(free) = self.0.free {
            // SAFETY: The three are what came with `free`, and `self` is the one holder.
            unsafe { free(self.0.data, self.0.len, self.0.extra) };
        }
    }
}

/// The body of a function of a table that gives bytes or an error: does `work` behind the border of panics, and writes its
/// outcome to `output`.
///
/// # Safety
/// `output` must be null or writable.
pub(crate) unsafe fn answer(output: *mut Buffer, work: impl FnOnce() -> Result<Option<Buffer>>) -> i32 {
    let (status, buffer) = match caught(work) {
        Ok(Ok(Some(buffer))) => (OK, buffer),
        Ok(Ok(None)) => return NONE,
        Ok(Err(error)) => (FAILED, error_buffer(error)),
        Err(text) => (PANICKED, Buffer::bytes(text.into_bytes())),
    };
    if !output.is_null() {
        // SAFETY: The caller guarantees that `output` is writable when it is not null.
        unsafe { output.write(buffer) };
    }
    status
}

/// An error for the other side.
pub(crate) fn error_buffer(error: Error) -> Buffer {
    // An error is text, numbers and names, all of which can be written.
    Buffer::bytes(serde_json::to_vec(&WireError(error)).unwrap_or_default())
}

/// Calls a function of the other side's table that writes a buffer.
///
/// # Errors
/// What the other side says; its panics too.
pub(crate) fn ask(call: impl FnOnce(*mut Buffer) -> i32) -> Result<Option<Owned>> {
    let mut output = Buffer::EMPTY;
    let status = call(&raw mut output);
    // SAFETY: By the contract the other side wrote an owned buffer, or left the empty one, which frees nothing.
    let output = unsafe { Owned::new(output) };
    match status {
        OK => Ok(Some(output)),
        NONE => Ok(None),
        FAILED => Err(output.into_error()),
        _ => Err(Error::new(goondan_core::ErrorCode::EXT_PANIC, format!("panicked: {}", output.text()))),
    }
}
