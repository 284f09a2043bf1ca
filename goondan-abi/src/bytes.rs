//! Borrowed text and owned buffers across the ABI.

use std::ffi::c_void;
use std::mem::ManuallyDrop;

use goondan_core::linkage::depth::from_json;
use goondan_core::linkage::{WireError, WireReply};
use goondan_core::{Error, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::panic::catch;
use crate::table::{Buffer, FAILED, HANDLE, NONE, OK, PANICKED, REPLY, Text};

impl Text {
    /// No bytes.
    pub(crate) const EMPTY: Self = Self { data: std::ptr::null(), len: 0 };

    pub(crate) const fn new(text: &[u8]) -> Self {
        Self { data: text.as_ptr(), len: text.len() }
    }

    /// Returns the bytes.
    ///
    /// # Safety
    /// `data` and `len` must describe memory that is readable and unchanged for `'a`.
    pub(crate) unsafe fn bytes<'a>(self) -> &'a [u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: The caller guarantees readable, unchanged memory for `'a`; `len` is not 0, so `data` is not null.
        unsafe { std::slice::from_raw_parts(self.data, self.len) }
    }

    /// Returns the text, or the empty text if the bytes are not UTF-8.
    ///
    /// # Safety
    /// As for [`Text::bytes`].
    pub(crate) unsafe fn str<'a>(self) -> &'a str {
        // SAFETY: The caller guarantees the requirements of `bytes`.
        let bytes = unsafe { self.bytes() };
        if bytes.is_ascii() {
            // Most texts are names of fields, for which this check is faster than the one below.
            // SAFETY: ASCII is UTF-8.
            return unsafe { std::str::from_utf8_unchecked(bytes) };
        }
        std::str::from_utf8(bytes).unwrap_or_default()
    }

    /// Returns the text without checking that it is UTF-8. Only for text of the host, which keeps to the contract;
    /// text of a library is checked by [`Text::str`].
    ///
    /// # Safety
    /// As for [`Text::bytes`], and the bytes must be UTF-8.
    pub(crate) unsafe fn str_unchecked<'a>(self) -> &'a str {
        // SAFETY: The caller guarantees the requirements of `bytes`.
        let bytes = unsafe { self.bytes() };
        // SAFETY: The caller guarantees UTF-8.
        unsafe { std::str::from_utf8_unchecked(bytes) }
    }
}

impl Buffer {
    /// An empty buffer, which owns nothing.
    pub(crate) const EMPTY: Self = Self { data: std::ptr::null_mut(), len: 0, extra: 0, free: None };

    /// Passes the ownership of bytes to the other binary.
    pub(crate) fn bytes(bytes: Vec<u8>) -> Self {
        unsafe extern "C" fn free(data: *mut c_void, len: usize, capacity: usize) {
            // SAFETY: The contract requires the owner to pass the fields of the buffer, which are those of the vector
            // below, and to call this once.
            drop(unsafe { Vec::from_raw_parts(data.cast::<u8>(), len, capacity) });
        }
        let mut bytes = ManuallyDrop::new(bytes);
        Self { data: bytes.as_mut_ptr().cast(), len: bytes.len(), extra: bytes.capacity(), free: Some(free) }
    }

    /// Passes the ownership of JSON to the other binary.
    pub(crate) fn json(value: &(impl Serialize + ?Sized)) -> Result<Self> {
        Ok(Self::bytes(serde_json::to_vec(value)?))
    }

    /// Passes the ownership of a tool's reply to the host.
    pub(crate) fn reply(reply: &WireReply) -> Result<Self> {
        unsafe extern "C" fn free(data: *mut c_void, len: usize, _: usize) {
            let bytes = std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), len);
            // SAFETY: The contract requires the owner to pass the fields of the buffer, which are those of the box
            // below, and to call this once.
            drop(unsafe { Box::from_raw(bytes) });
        }
        let bytes = Box::into_raw(serde_json::to_vec(reply)?.into_boxed_slice());
        Ok(Self { data: bytes.cast(), len: bytes.len(), extra: REPLY, free: Some(free) })
    }
}

/// A buffer that the other binary allocated and this one owns. Dropping it frees it there.
#[derive(Debug)]
pub(crate) struct OwnedBuffer(Buffer);

// SAFETY: A buffer is immutable bytes or a handle; the contract allows reading and freeing both on any thread.
unsafe impl Send for OwnedBuffer {}
// SAFETY: As above.
unsafe impl Sync for OwnedBuffer {}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Buffer({} bytes)", self.len)
    }
}

impl OwnedBuffer {
    /// # Safety
    /// `buffer` must be empty or written by the other binary, and must have no other owner.
    pub(crate) unsafe fn new(buffer: Buffer) -> Self {
        Self(buffer)
    }

    pub(crate) fn is_handle(&self) -> bool {
        self.0.extra == HANDLE
    }

    #[cfg(feature = "host")]
    pub(crate) fn is_reply(&self) -> bool {
        self.0.extra == REPLY
    }

    /// Returns the bytes; a handle has none.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.is_handle() {
            return &[];
        }
        // SAFETY: The other binary wrote the buffer. By the contract its bytes are readable until it is freed, which
        // only dropping `self` does.
        unsafe { Text { data: self.0.data.cast(), len: self.0.len }.bytes() }
    }

    /// Returns the text without checking that it is UTF-8, as [`Text::str_unchecked`] does.
    ///
    /// # Safety
    /// The bytes must be UTF-8.
    pub(crate) unsafe fn str_unchecked(&self) -> &str {
        // SAFETY: The caller guarantees UTF-8.
        unsafe { std::str::from_utf8_unchecked(self.bytes()) }
    }

    pub(crate) fn parse<T: DeserializeOwned>(&self) -> Result<T> {
        from_json(self.bytes())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes()).into_owned()
    }

    /// Returns the error that the bytes represent.
    pub(crate) fn into_error(self) -> Error {
        match serde_json::from_slice::<WireError>(self.bytes()) {
            Ok(WireError(error)) => error,
            Err(_) => Error::msg(self.text()),
        }
    }

    /// Returns the buffer together with its ownership.
    pub(crate) fn into_raw(self) -> Buffer {
        let this = ManuallyDrop::new(self);
        Buffer { data: this.0.data, len: this.0.len, extra: this.0.extra, free: this.0.free }
    }
}

impl Drop for OwnedBuffer {
    fn drop(&mut self) {
        if let Some(free) = self.0.free {
            // SAFETY: The other binary wrote all four fields, and `self` is the only owner.
            unsafe { free(self.0.data, self.0.len, self.0.extra) };
        }
    }
}

/// The body of a table function that writes bytes or an error: runs `work`, catches its panic, writes the outcome to
/// `output` and returns the status.
///
/// # Safety
/// `output` must be null or writable.
pub(crate) unsafe fn answer(output: *mut Buffer, work: impl FnOnce() -> Result<Option<Buffer>>) -> i32 {
    let (status, buffer) = match catch(work) {
        Ok(Ok(Some(buffer))) => (OK, buffer),
        Ok(Ok(None)) => return NONE,
        Ok(Err(error)) => (FAILED, error_buffer(error, "the program")),
        Err(text) => (PANICKED, Buffer::bytes(text.into_bytes())),
    };
    if !output.is_null() {
        // SAFETY: The caller guarantees that `output` is writable if it is not null.
        unsafe { output.write(buffer) };
    }
    status
}

/// Passes an error of `owner` to the other binary.
pub(crate) fn error_buffer(error: Error, owner: &str) -> Buffer {
    let error = WireError(error);
    // An error consists of text, numbers and names, which all serialize.
    let buffer = Buffer::bytes(serde_json::to_vec(&error).unwrap_or_default());
    error.drop_of(owner);
    buffer
}

/// Calls a function of the other binary's table that writes a buffer.
///
/// # Errors
/// The error or panic that the other binary reports.
pub(crate) fn ask(call: impl FnOnce(*mut Buffer) -> i32) -> Result<Option<OwnedBuffer>> {
    let mut output = Buffer::EMPTY;
    let status = call(&raw mut output);
    // SAFETY: By the contract the other binary wrote a buffer for this one to own, or left it empty.
    let output = unsafe { OwnedBuffer::new(output) };
    match status {
        OK => Ok(Some(output)),
        NONE => Ok(None),
        FAILED => Err(output.into_error()),
        _ => Err(Error::new(goondan_core::ErrorCode::EXT_PANIC, format!("panicked: {}", output.text()))),
    }
}
