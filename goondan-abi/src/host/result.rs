//! Owns the results that libraries hold handles to. A handle is the result itself, beside the number of its kind: what a
//! result is made of lies in a box already.

use std::borrow::Cow;
use std::ffi::c_void;

use goondan_core::linkage::Crossing;
use goondan_core::secret::mask_json;
use goondan_core::{Error, ErrorCode, Result, Step, ToolCall, Turn};

use serde_json::{Map, Value};

use super::call::HostKind;
use crate::bytes::{Owned, answer};
use crate::panic::logged;
use crate::table::{Buffer, HANDLE, STEP, TOOL_CALL, TURN, Text};

type Data<K> = <<K as goondan_core::Kind>::Output as Crossing>::Data;

/// Hands a result to a library.
pub(super) fn into_handle<K: HostKind>(result: K::Output) -> Buffer {
    Buffer { data: Box::into_raw(result.into_data()).cast(), len: K::NUMBER as usize, extra: HANDLE, free: None }
}

/// Takes a result back.
///
/// # Safety
/// `data` must be that of a handle of the kind `K` that the library gives up.
unsafe fn take<K: HostKind>(data: *mut c_void) -> K::Output {
    // SAFETY: The caller guarantees the box of `into_handle`.
    K::Output::from_data(unsafe { Box::from_raw(data.cast::<Data<K>>()) })
}

/// What a library gave in the end, as the result that it is.
pub(super) fn given<K: HostKind>(output: Owned) -> Result<K::Output> {
    if !output.is_handle() {
        let mut fields: Map<String, Value> = output.parse()?;
        fields.get_mut("outcome").into_iter().for_each(mask_outcome);
        return K::Output::from_fields(fields);
    }
    let Buffer { data, len: kind, .. } = output.into_raw();
    if kind == K::NUMBER as usize {
        // SAFETY: The contract lets a library give only handles of `run_next`, each once, with their kind.
        return Ok(unsafe { take::<K>(data) });
    }
    // SAFETY: As above.
    unsafe { release(u32::try_from(kind).unwrap_or_default(), data) };
    Err(Error::new(ErrorCode::EXT_NEXT, "the middleware gave the result of another kind of run")
        .suggest("return what `next.run(ctx).await` gave in this run"))
}

pub(super) unsafe extern "C" fn release(kind: u32, result: *mut c_void) {
    logged("dropping a result", || match kind {
        // SAFETY: By the contract a handle of that kind, which the library gives up.
        TURN => drop(unsafe { take::<Turn>(result) }),
        // SAFETY: As above.
        STEP => drop(unsafe { take::<Step>(result) }),
        // SAFETY: As above.
        TOOL_CALL => drop(unsafe { take::<ToolCall>(result) }),
        // Of which nothing is known but that it is no result.
        _ => {}
    });
}

fn unknown(kind: u32) -> Error {
    Error::msg(format!("there are no results of the kind {kind}"))
}

/// # Safety
/// `result` must be that of a handle of the kind `K` that the library has.
unsafe fn read_from<K: HostKind>(result: *const c_void, field: &str) -> Result<Vec<u8>> {
    // SAFETY: The caller guarantees the box of `into_handle`.
    K::Output::read(unsafe { &*result.cast::<Data<K>>() }, field)
}

/// Takes secrets out of how a tool call ended: a library that makes an error of one does not know them. What a tool answers is
/// data, and stays as it is.
fn mask_outcome(outcome: &mut Value) {
    outcome.get_mut("error").into_iter().for_each(mask_json);
}

/// What a library writes to a field, without secrets where results have none.
fn masked<'a>(kind: u32, field: &str, json: &'a [u8]) -> Result<Cow<'a, [u8]>> {
    if (kind, field) != (TOOL_CALL, "outcome") {
        return Ok(Cow::Borrowed(json));
    }
    let mut outcome = serde_json::from_slice(json)?;
    mask_outcome(&mut outcome);
    Ok(Cow::Owned(serde_json::to_vec(&outcome)?))
}

/// # Safety
/// As for reading, and nobody else may use the result meanwhile.
unsafe fn write_to<K: HostKind>(result: *mut c_void, field: &str, json: &[u8]) -> Result<()> {
    // SAFETY: The caller guarantees the box of `into_handle`, and keeps others away.
    K::Output::write(unsafe { &mut *result.cast::<Data<K>>() }, field, json)
}

pub(super) unsafe extern "C" fn read(kind: u32, result: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The text is borrowed for this function.
    let field = unsafe { field.str() };
    let read = || match kind {
        // SAFETY: By the contract a handle of that kind.
        TURN => unsafe { read_from::<Turn>(result, field) },
        // SAFETY: As above.
        STEP => unsafe { read_from::<Step>(result, field) },
        // SAFETY: As above.
        TOOL_CALL => unsafe { read_from::<ToolCall>(result, field) },
        other => Err(unknown(other)),
    };
    // SAFETY: By the contract a place for the output.
    unsafe { answer(output, || read().map(|json| Some(Buffer::bytes(json)))) }
}

pub(super) unsafe extern "C" fn write(
    kind: u32,
    result: *mut c_void,
    field: Text,
    json: Text,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The text is borrowed for this function.
    let field = unsafe { field.str() };
    // SAFETY: As above.
    let json = unsafe { json.bytes() };
    let write = || {
        let json = masked(kind, field, json)?;
        match kind {
            // SAFETY: By the contract a handle of that kind, which nobody else uses meanwhile.
            TURN => unsafe { write_to::<Turn>(result, field, &json) },
            // SAFETY: As above.
            STEP => unsafe { write_to::<Step>(result, field, &json) },
            // SAFETY: As above.
            TOOL_CALL => unsafe { write_to::<ToolCall>(result, field, &json) },
            other => Err(unknown(other)),
        }
    };
    // SAFETY: By the contract a place for the error.
    unsafe { answer(error, || write().map(|()| Some(Buffer::EMPTY))) }
}
