//! Owns the table that libraries are given: each function is its safety comment and one call.

use std::borrow::Cow;
use std::ffi::c_void;

use goondan_core::host::Snapshot;
use goondan_core::linkage::{WireAgentRequest, WireAgentResponse};
use goondan_core::{AgentRequest, Content, Role};

use super::call::Call;
use super::extension;
use super::log;
use super::result;
use super::runtime::InHost;
use crate::bytes::answer;
use crate::future::export;
use crate::panic::logged;
use crate::table::{ABI_MAJOR, ABI_MINOR, BASE, Buffer, Future, HostTable, Message, NONE, OK, Text};

/// The table of this program.
pub(super) static HOST: HostTable = HostTable {
    size: size_of::<HostTable>(),
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    log_place: log::place,
    log_enabled: log::enabled,
    log_line: log::line,
    extension_log: extension::log,
    extension_register: extension::register,
    extension_state: extension::state,
    extension_update_state: extension::update_state,
    extension_subscribe: extension::subscribe,
    extension_unsubscribe: extension::unsubscribe,
    extension_emit: extension::emit,
    extension_release: extension::release,
    run_read,
    run_write,
    run_message_count,
    run_message_from,
    run_message_before,
    run_message_read,
    run_emit,
    run_next,
    run_request,
    run_request_later,
    run_send,
    run_agents,
    run_log,
    result_read: result::read,
    result_write: result::write,
    result_release: result::release,
};

/// The call that a library names.
///
/// # Safety
/// `call` must be what the library was given, and not used after its future is dropped.
unsafe fn the<'a>(call: *const c_void) -> &'a Call<'a> {
    // SAFETY: The caller guarantees the call that `object` made.
    unsafe { &*call.cast::<Call<'a>>() }
}

fn snapshot(number: u32) -> Snapshot {
    if number == BASE { Snapshot::Base } else { Snapshot::Next }
}

unsafe extern "C" fn run_read(call: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let field = unsafe { field.str() };
    // SAFETY: By the contract a place for the output.
    unsafe { answer(output, || call.read(field).map(|json| Some(Buffer::bytes(json)))) }
}

unsafe extern "C" fn run_write(call: *const c_void, field: Text, json: Text, error: *mut Buffer) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let field = unsafe { field.str() };
    // SAFETY: As above.
    let json = unsafe { json.bytes() };
    // SAFETY: By the contract the library uses the call for nothing else meanwhile.
    let write = || unsafe { call.write(field, json) }.map(|()| Some(Buffer::EMPTY));
    // SAFETY: By the contract a place for the error.
    unsafe { answer(error, write) }
}

unsafe extern "C" fn run_message_count(call: *const c_void, number: u32) -> usize {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    let count = || call.conversation().map(|conversation| conversation.message_count(snapshot(number)));
    logged("counting messages", count).and_then(Result::ok).unwrap_or_default()
}

/// Writes the message that `find` finds, and the cursors of it and of the next one.
///
/// # Safety
/// `output` must be a place for a message.
unsafe fn found<'a>(
    output: *mut Message,
    find: impl FnOnce() -> Option<(goondan_core::MessageRef<'a>, usize, usize)>,
) -> i32 {
    let Some(Some((message, cursor, next))) = logged("finding a message", find) else { return NONE };
    let role = match message.role() {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
    };
    // Only text that lies in the conversation lives as long as the library needs it.
    let text = match message.content() {
        Cow::Borrowed(Content::Text(text)) => Some(text),
        _ => None,
    };
    let (plain, text) = text.map_or((0, Text::EMPTY), |text| (1, Text::new(text.as_bytes())));
    let message = Message { cursor, next, id: Text::new(message.id().as_bytes()), role, plain, text };
    // SAFETY: The caller guarantees the place.
    unsafe { output.write(message) };
    OK
}

unsafe extern "C" fn run_message_from(call: *const c_void, number: u32, cursor: usize, output: *mut Message) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    let find = || {
        let (message, next) = call.conversation().ok()?.message_from(snapshot(number), cursor)?;
        Some((message, next - 1, next))
    };
    // SAFETY: By the contract a place for the message.
    unsafe { found(output, find) }
}

unsafe extern "C" fn run_message_before(call: *const c_void, number: u32, cursor: usize, output: *mut Message) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    let find = || {
        let (message, at) = call.conversation().ok()?.message_before(snapshot(number), cursor)?;
        Some((message, at, at + 1))
    };
    // SAFETY: By the contract a place for the message.
    unsafe { found(output, find) }
}

unsafe extern "C" fn run_message_read(
    call: *const c_void,
    number: u32,
    cursor: usize,
    field: Text,
    output: *mut Buffer,
) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let field = unsafe { field.str() };
    let read = || Ok(call.read_message(snapshot(number), cursor, field)?.map(Buffer::bytes));
    // SAFETY: By the contract a place for the output.
    unsafe { answer(output, read) }
}

unsafe extern "C" fn run_emit(call: *const c_void, event: Text, error: *mut Buffer) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let event = unsafe { event.bytes() };
    let emit = || {
        let event = serde_json::from_slice(event)?;
        // SAFETY: By the contract the library uses the call for nothing else meanwhile.
        unsafe { call.emit(event) }.map(|()| Some(Buffer::EMPTY))
    };
    // SAFETY: By the contract a place for the error.
    unsafe { answer(error, emit) }
}

unsafe extern "C" fn run_next(call: *const c_void) -> Future {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: By the contract the library uses the call for nothing else until it drops the future, and drops that before
    // the call ends.
    unsafe { call.next() }
}

/// A request to another agent.
fn request(json: &[u8]) -> goondan_core::Result<AgentRequest> {
    Ok(serde_json::from_slice::<WireAgentRequest>(json)?.into())
}

unsafe extern "C" fn run_request(call: *const c_void, json: Text) -> Future {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let request = request(unsafe { json.bytes() });
    let ask = async move {
        let response = call.agents()?.request(request?).await?;
        Buffer::json(&WireAgentResponse::from(response))
    };
    // SAFETY: By the contract the library drops the future before the call ends.
    unsafe { export(InHost(call.runtime), ask) }
}

unsafe extern "C" fn run_send(call: *const c_void, json: Text) -> Future {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let request = request(unsafe { json.bytes() });
    let send = async move { Buffer::json(&call.agents()?.send(request?).await?) };
    // SAFETY: By the contract the library drops the future before the call ends.
    unsafe { export(InHost(call.runtime), send) }
}

unsafe extern "C" fn run_request_later(call: *const c_void, json: Text, output: *mut Buffer) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let json = unsafe { json.bytes() };
    let ask = || {
        let _inside = call.runtime.map(tokio::runtime::Handle::enter);
        let ticket = call.agents()?.request_later(request(json)?)?;
        Ok(Some(Buffer::bytes(ticket.correlation_id.into_bytes())))
    };
    // SAFETY: By the contract a place for the output.
    unsafe { answer(output, ask) }
}

unsafe extern "C" fn run_agents(call: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: By the contract a place for the output.
    unsafe { answer(output, || Buffer::json(&call.agents()?.list()).map(Some)) }
}

unsafe extern "C" fn run_log(call: *const c_void, level: u32, text: Text, fields: Text) {
    // SAFETY: By the contract a call of ours.
    let call = unsafe { the(call) };
    // SAFETY: The text is borrowed for this function.
    let text = unsafe { text.str() };
    // SAFETY: As above.
    let fields = unsafe { fields.bytes() };
    logged("a log line", || {
        if let Some(logger) = call.logger() {
            extension::write(logger, level, text, fields);
        }
    });
}
