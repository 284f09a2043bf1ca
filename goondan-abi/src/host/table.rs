//! The table that libraries receive, and its functions `run_…`, each one guarded call.

use std::borrow::Cow;
use std::ffi::c_void;

use goondan_core::host::{self, Reviewer, Snapshot};
use goondan_core::linkage::depth::from_json;
use goondan_core::linkage::{WireAgentRequest, WireAgentResponse};
use goondan_core::{AgentRequest, MessageEvent, Question, Role};

use super::call::Call;
use super::extension;
use super::log;
use super::object::LibraryReviewer;
use super::result;
use super::runtime::HostScope;
use super::secret;
use super::transform::LibraryTransformer;
use crate::bytes::answer;
use crate::future::export;
use crate::panic::catch_or_log;
use crate::table::{
    ABI_MAJOR, ABI_MINOR, BASE, Buffer, Future, HostTable, HostTable1_2, HostTable1_3, Message, NONE, OK, Object, Text,
    Transformer,
};

/// The host table of this program.
pub(super) static HOST: HostTable1_3 = HostTable1_3 {
    base: HostTable1_2 { base: BASE_TABLE, extension_show: extension::show },
    run_ask,
    run_review,
    run_transform,
    extension_mask_inputs: extension::mask_inputs,
};

const BASE_TABLE: HostTable = HostTable {
    size: size_of::<HostTable1_3>(),
    abi_major: ABI_MAJOR,
    abi_minor: ABI_MINOR,
    log_place: log::place,
    log_enabled: log::enabled,
    log_line: log::line,
    secret_remember: secret::remember,
    secret_forget: secret::forget,
    extension_info: extension::info,
    extension_log: extension::log,
    extension_register: extension::register,
    extension_state: extension::state,
    extension_update_state: extension::update_state,
    extension_state_dir: extension::state_dir,
    extension_shared_state: extension::shared_state,
    extension_update_shared_state: extension::update_shared_state,
    extension_subscribe: extension::subscribe,
    extension_unsubscribe: extension::unsubscribe,
    extension_emit: extension::emit,
    extension_delegate: extension::delegate,
    extension_reload: extension::reload,
    extension_release: extension::release,
    run_read,
    run_write,
    run_tool_catalog_revision,
    run_message_count,
    run_message_from,
    run_message_before,
    run_message_read,
    run_message_metadata,
    run_emit,
    run_message_remove,
    run_next,
    run_request,
    run_request_later,
    run_send,
    run_agents,
    run_log,
    run_progress,
    result_read: result::read,
    result_write: result::write,
    result_release: result::release,
};

/// Returns the call that a library names.
///
/// # Safety
/// `call` must be one that the library received, and whose future it has not dropped.
unsafe fn from_handle<'a>(call: *const c_void) -> &'a Call<'a> {
    // SAFETY: The caller guarantees the pointer of a `Call` that `LibraryObject` keeps until the future is dropped.
    unsafe { &*call.cast::<Call<'a>>() }
}

fn snapshot(number: u32) -> Snapshot {
    if number == BASE { Snapshot::Base } else { Snapshot::Current }
}

unsafe extern "C" fn run_read(call: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let field = unsafe { field.str() };
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, || call.read(field).map(|json| Some(Buffer::bytes(json)))) }
}

unsafe extern "C" fn run_write(call: *const c_void, field: Text, json: Text, error: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let field = unsafe { field.str() };
    // SAFETY: As above.
    let json = unsafe { json.bytes() };
    // SAFETY: The contract forbids the library to use the call for anything else at the same time.
    let write = || unsafe { call.write(field, json) }.map(|()| Some(Buffer::EMPTY));
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, write) }
}

unsafe extern "C" fn run_message_count(call: *const c_void, number: u32) -> usize {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    let count = || call.conversation().map(|conversation| conversation.message_count(snapshot(number)));
    catch_or_log("counting messages", count).and_then(Result::ok).unwrap_or_default()
}

/// Writes the message that `find` returns, together with its cursor and the next one.
///
/// # Safety
/// `output` must be writable.
unsafe fn write_message<'a>(
    output: *mut Message,
    find: impl FnOnce() -> Option<(goondan_core::MessageRef<'a>, usize, usize)>,
) -> i32 {
    let Some(Some((message, cursor, next))) = catch_or_log("finding a message", find) else { return NONE };
    let role = match message.role() {
        Role::System => 0,
        Role::User => 1,
        Role::Assistant => 2,
        Role::Tool => 3,
        _ => u32::MAX,
    };
    // Only text that the conversation owns is valid for as long as the contract promises.
    let text = match message.content() {
        Cow::Borrowed(content) => content.as_plain(),
        Cow::Owned(_) => None,
    };
    let (plain, text) = text.map_or((0, Text::EMPTY), |text| (1, Text::new(text.as_bytes())));
    let message = Message { cursor, next, id: Text::new(message.id().as_bytes()), role, plain, text };
    // SAFETY: The caller guarantees that `output` is writable.
    unsafe { output.write(message) };
    OK
}

unsafe extern "C" fn run_message_from(call: *const c_void, number: u32, cursor: usize, output: *mut Message) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    let find = || {
        let (message, next) = call.conversation().ok()?.message_from(snapshot(number), cursor)?;
        Some((message, next - 1, next))
    };
    // SAFETY: The contract requires a writable `output`.
    unsafe { write_message(output, find) }
}

unsafe extern "C" fn run_message_before(call: *const c_void, number: u32, cursor: usize, output: *mut Message) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    let find = || {
        let (message, at) = call.conversation().ok()?.message_before(snapshot(number), cursor)?;
        Some((message, at, at + 1))
    };
    // SAFETY: The contract requires a writable `output`.
    unsafe { write_message(output, find) }
}

unsafe extern "C" fn run_message_read(
    call: *const c_void,
    number: u32,
    cursor: usize,
    field: Text,
    output: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let field = unsafe { field.str() };
    let read = || Ok(call.read_message(snapshot(number), cursor, field)?.map(Buffer::bytes));
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, read) }
}

unsafe extern "C" fn run_message_metadata(
    call: *const c_void,
    number: u32,
    cursor: usize,
    key: Text,
    output: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let key = unsafe { key.str() };
    let read = || Ok(call.message_metadata(snapshot(number), cursor, key)?.map(Buffer::bytes));
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, read) }
}

unsafe extern "C" fn run_message_remove(call: *const c_void, id: Text, error: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let event = MessageEvent::remove(unsafe { id.str() });
    // SAFETY: The contract forbids the library to use the call for anything else at the same time.
    let emit = || unsafe { call.emit(event) }.map(|()| Some(Buffer::EMPTY));
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, emit) }
}

unsafe extern "C" fn run_tool_catalog_revision(call: *const c_void) -> u64 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    catch_or_log("the revision of a catalog", || call.tool_catalog_revision()).unwrap_or_default()
}

unsafe extern "C" fn run_emit(call: *const c_void, event: Text, error: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let event = unsafe { event.bytes() };
    let emit = || {
        let event = from_json(event)?;
        // SAFETY: The contract forbids the library to use the call for anything else at the same time.
        unsafe { call.emit(event) }.map(|()| Some(Buffer::EMPTY))
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, emit) }
}

unsafe extern "C" fn run_next(call: *const c_void) -> Future {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract requires the library not to use the call for anything else until it drops the future, and
    // to drop the future before the end of the call.
    unsafe { call.next() }
}

/// Parses a request to another agent, or to a model.
fn request(json: &[u8]) -> goondan_core::Result<AgentRequest> {
    from_json::<WireAgentRequest>(json)?.try_into()
}

unsafe extern "C" fn run_request(call: *const c_void, json: Text) -> Future {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let request = request(unsafe { json.bytes() });
    let ask = async move {
        let response = call.agents()?.request(request?).await?;
        Buffer::json(&WireAgentResponse::from(response))
    };
    // SAFETY: The contract requires the library to drop the future before the end of the call.
    unsafe { export(HostScope(call.runtime), ask) }
}

unsafe extern "C" fn run_ask(call: *const c_void, json: Text) -> Future {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let question = from_json::<Question>(unsafe { json.bytes() });
    let ask = async move { Buffer::json(&call.ask(question?).await?) };
    // SAFETY: The contract requires the library to drop the future before the end of the call.
    unsafe { export(HostScope(call.runtime), ask) }
}

unsafe extern "C" fn run_review(
    call: *const c_void,
    reviewer: *const Object,
    after_streaming: u32,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the object valid for this call. It now belongs to the host.
    let reviewer = LibraryReviewer::new(unsafe { &*reviewer }, call.runtime);
    let review = || {
        // SAFETY: The contract forbids the library to use the call for anything else at the same time.
        unsafe { call.review(Reviewer::new(reviewer, after_streaming == 1)) }.map(|()| Some(Buffer::EMPTY))
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, review) }
}

unsafe extern "C" fn run_transform(call: *const c_void, transformer: *const Transformer, error: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the transformer valid for this call.
    let transformer = unsafe { &*transformer };
    // SAFETY: It now belongs to the host.
    let transformer = unsafe { LibraryTransformer::new(transformer) };
    let transform = || {
        let transformer = host::Transformer::new(transformer);
        // SAFETY: The contract forbids the library to use the call for anything else at the same time.
        unsafe { call.transform(transformer) }.map(|()| Some(Buffer::EMPTY))
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, transform) }
}

unsafe extern "C" fn run_send(call: *const c_void, json: Text) -> Future {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let request = request(unsafe { json.bytes() });
    let send = async move { Buffer::json(&call.agents()?.send(request?).await?) };
    // SAFETY: The contract requires the library to drop the future before the end of the call.
    unsafe { export(HostScope(call.runtime), send) }
}

unsafe extern "C" fn run_request_later(call: *const c_void, json: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let json = unsafe { json.bytes() };
    let ask = || {
        let _guard = call.runtime.map(tokio::runtime::Handle::enter);
        let ticket = call.agents()?.request_later(request(json)?)?;
        Ok(Some(Buffer::bytes(ticket.correlation_id.into_bytes())))
    };
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, ask) }
}

unsafe extern "C" fn run_agents(call: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, || Buffer::json(&call.agents()?.list()).map(Some)) }
}

unsafe extern "C" fn run_log(call: *const c_void, level: u32, text: Text, fields: Text) {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes the text valid for this call.
    let text = unsafe { text.str() };
    // SAFETY: As above.
    let fields = unsafe { fields.bytes() };
    catch_or_log("a log line", || {
        if let Some(logger) = call.logger() {
            extension::write(logger, level, text, fields);
        }
    });
}

unsafe extern "C" fn run_progress(call: *const c_void, done: f64, total: *const f64, text: Text) {
    // SAFETY: The contract requires a call of this host that is not over.
    let call = unsafe { from_handle(call) };
    // SAFETY: The contract makes `total` null, or valid for this call.
    let total = unsafe { total.as_ref() }.copied();
    // SAFETY: The contract makes the text valid for this call.
    let text = unsafe { text.str() };
    catch_or_log("progress of a tool call", || call.progress(done, total, text));
}
