//! Results that libraries hold handles to. A handle is the pointer to the boxed data of the result, with the number
//! of its kind.

use std::ffi::c_void;

use goondan_core::linkage::Crossing;
use goondan_core::linkage::depth::checked_output;
use goondan_core::secret::mask_json;
use goondan_core::{Error, ErrorCode, Result, Step, ToolCall, ToolError, ToolReply, Turn};
use serde_json::{Map, Value, json};

use super::kind::HostKind;
use crate::bytes::{OwnedBuffer, answer};
use crate::panic::catch_or_log;
use crate::table::{Buffer, HANDLE, STEP, TOOL_CALL, TURN, Text};

type Data<K> = <<K as goondan_core::Kind>::Output as Crossing>::Data;

/// Passes the ownership of a result to a library.
pub(super) fn into_handle<K: HostKind>(result: K::Output) -> Buffer {
    Buffer { data: Box::into_raw(result.into_data()).cast(), len: K::NUMBER as usize, extra: HANDLE, free: None }
}

/// Takes the ownership of a result back.
///
/// # Safety
/// `data` must be the data of a handle of the kind `K`, whose ownership the library gives up.
unsafe fn from_handle<K: HostKind>(data: *mut c_void) -> K::Output {
    // SAFETY: The caller guarantees the pointer of a box that `into_handle::<K>` leaked, and its ownership.
    K::Output::from_data(unsafe { Box::from_raw(data.cast::<Data<K>>()) })
}

/// Returns the result that the output of a library's middleware represents: a handle, or the fields of a recovered
/// result.
pub(super) fn from_library<K: HostKind>(output: OwnedBuffer) -> Result<K::Output> {
    if !output.is_handle() {
        let mut fields: Map<String, Value> = output.parse()?;
        fields.get_mut("outcome").into_iter().try_for_each(admit_outcome)?;
        if let Some(reply) = fields.get("reply").filter(|reply| !reply.is_null()) {
            ToolReply::from_json(&serde_json::to_vec(reply)?)?;
        }
        return K::Output::from_fields(fields);
    }
    let Buffer { data, len: kind, .. } = output.into_raw();
    if kind == K::NUMBER as usize {
        // SAFETY: The contract requires the library to return a handle of `run_next`, with its kind and ownership.
        return Ok(unsafe { from_handle::<K>(data) });
    }
    // SAFETY: As above.
    unsafe { release(u32::try_from(kind).unwrap_or_default(), data) };
    Err(Error::new(ErrorCode::EXT_NEXT, "the middleware gave the result of another kind of run")
        .suggest("return what `next.run(ctx).await` gave in this run"))
}

pub(super) unsafe extern "C" fn release(kind: u32, result: *mut c_void) {
    catch_or_log("dropping a result", || match kind {
        // SAFETY: The contract requires a handle of that kind, whose ownership the library gives up.
        TURN => drop(unsafe { from_handle::<Turn>(result) }),
        // SAFETY: As above.
        STEP => drop(unsafe { from_handle::<Step>(result) }),
        // SAFETY: As above.
        TOOL_CALL => drop(unsafe { from_handle::<ToolCall>(result) }),
        // No handle of this host has another kind, so there is nothing that could be dropped.
        _ => {}
    });
}

fn unknown(kind: u32) -> Error {
    Error::msg(format!("there are no results of the kind {kind}"))
}

/// # Safety
/// `result` must be the data of a handle of the kind `K` that the library owns.
unsafe fn read_from<K: HostKind>(result: *const c_void, field: &str) -> Result<Vec<u8>> {
    // SAFETY: The caller guarantees the pointer of a box that `into_handle::<K>` leaked.
    K::Output::read(unsafe { &*result.cast::<Data<K>>() }, field)
}

/// Masks the secrets in the error of a tool call's outcome: a library that creates the error does not know them. The
/// output of a tool is data and stays unchanged, unless it is nested too deeply, which a library in another language
/// does not check.
///
/// # Errors
/// When it is neither.
fn admit_outcome(outcome: &mut Value) -> Result<()> {
    if let Some(output) = outcome.get_mut("output") {
        match checked_output(output.take()) {
            Ok(checked) => *output = checked,
            Err(error) => *outcome = json!({ "error": ToolError::from(error) }),
        }
        return Ok(());
    }
    let error =
        outcome.get_mut("error").ok_or_else(|| Error::msg("the result of a call has no output and no error"))?;
    mask_json(error);
    Ok(())
}

/// # Safety
/// As for [`read_from`], and nothing else may use the result at the same time.
unsafe fn write_to<K: HostKind>(result: *mut c_void, field: &str, json: &[u8]) -> Result<()> {
    // SAFETY: The caller guarantees the pointer of a box that `into_handle::<K>` leaked, and exclusive access.
    K::Output::write(unsafe { &mut *result.cast::<Data<K>>() }, field, json)
}

pub(super) unsafe extern "C" fn read(kind: u32, result: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The contract makes the text valid for this call.
    let field = unsafe { field.str() };
    let read = || match kind {
        // SAFETY: The contract requires a handle of that kind.
        TURN => unsafe { read_from::<Turn>(result, field) },
        // SAFETY: As above.
        STEP => unsafe { read_from::<Step>(result, field) },
        // SAFETY: As above.
        TOOL_CALL => unsafe { read_from::<ToolCall>(result, field) },
        other => Err(unknown(other)),
    };
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, || read().map(|json| Some(Buffer::bytes(json)))) }
}

pub(super) unsafe extern "C" fn write(
    kind: u32,
    result: *mut c_void,
    field: Text,
    json: Text,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract makes the text valid for this call.
    let field = unsafe { field.str() };
    // SAFETY: As above.
    let json = unsafe { json.bytes() };
    let write = || match kind {
        // SAFETY: The contract requires a handle of that kind, which the library does not use at the same time.
        TURN => unsafe { write_to::<Turn>(result, field, json) },
        // SAFETY: As above.
        STEP => unsafe { write_to::<Step>(result, field, json) },
        // SAFETY: As above.
        TOOL_CALL => unsafe { &mut *result.cast::<Data<ToolCall>>() }.write_checked(field, json),
        other => Err(unknown(other)),
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, || write().map(|()| Some(Buffer::EMPTY))) }
}
