//! Owns the binary contract, version 1: every type that both sides of a library see, in C layout.
//!
//! This file has no dependency, so that anyone can build a library against a copy of it; `tests/frozen/v1.rs` is the
//! copy that old libraries were built against. `docs/abi.md` describes the same in prose.
//!
//! # Rules
//! - Every table starts with `size`, its bytes as its maker knows it. A reader looks at an entry that was added after
//!   version 1.0 only if `size` reaches behind it. Entries are added at the end and never changed.
//! - Memory is freed by the side that made it, through the function that travels with it. Nothing is freed twice.
//! - Text is UTF-8 without a terminating zero. A [`Text`] is borrowed for the call that it is an argument of, unless its
//!   place says otherwise.
//! - Nothing unwinds out of a function of a table. What would is caught and told as [`PANICKED`], or where a function has
//!   no way to say so, as the mildest answer.
//! - Handles are opaque to the side that did not make them.
//! - JSON appears only for single fields that were asked for.

use core::ffi::c_void;

/// The first bytes of a [`Declaration`].
pub const MAGIC: [u8; 16] = *b"GOONDAN-EXT-ABI\0";

/// Both sides must have the same.
pub const ABI_MAJOR: u32 = 1;

/// Grows with every entry that is added. A library states the lowest that its host must have.
pub const ABI_MINOR: u32 = 0;

/// The name of the one symbol that a library exports: a [`Declaration`], as static data, so that it can be read from the
/// file before anything of it runs.
pub const DECLARATION_SYMBOL: &str = "goondan_extension_decl_v1";

/// What a library says of itself. The first 64 bytes have this form in all versions.
#[repr(C)]
pub struct Declaration {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// Bytes of this structure.
    pub size: u32,
    /// [`ABI_MAJOR`] of the library.
    pub abi_major: u32,
    /// The lowest [`ABI_MINOR`] of a host that the library can live with.
    pub abi_minor: u32,
    /// Bits of a pointer.
    pub pointer_width: u32,
    /// 1 when panics of the library unwind, 0 when they abort: then it is refused.
    pub panic_unwind: u32,
    /// Bytes of the [`HostTable`] that the library knows.
    pub host_table_size: u32,
    /// Bytes of the library's [`PluginTable`].
    pub plugin_table_size: u32,
    /// Zero.
    pub reserved: [u32; 5],
    /// The version of the extension contract, such as `goondan.ai/v1`, padded with zeros like the texts below.
    pub api_version: [u8; 32],
    /// The compiler.
    pub rustc: [u8; 64],
    /// The target triple.
    pub target: [u8; 64],
    /// The version of the crate that implements this contract for the library.
    pub sdk_version: [u8; 32],
    /// Called once, after the host has read and accepted what stands above. Gives the table of the library, or [`FAILED`]
    /// and an error as JSON.
    pub entry: unsafe extern "C" fn(host: *const HostTable, plugin: *mut *const PluginTable, error: *mut Buffer) -> i32,
}

// ---- Values ------------------------------------------------------------------------------------------------------

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    /// The first byte; anything when `len` is 0.
    pub data: *const u8,
    /// How many bytes.
    pub len: usize,
}

/// Owned bytes, or an owned handle. Whoever holds it calls `free`, if there is one, exactly once.
#[repr(C)]
pub struct Buffer {
    /// The first byte, or the handle.
    pub data: *mut c_void,
    /// How many bytes; for a handle the kind of the result: [`TURN`], [`STEP`] or [`TOOL_CALL`].
    pub len: usize,
    /// For `free` alone, but see [`HANDLE`].
    pub extra: usize,
    /// Frees the three above.
    pub free: Option<unsafe extern "C" fn(data: *mut c_void, len: usize, extra: usize)>,
}

/// `extra` of a [`Buffer`] that is a handle to a result. It has no `free`: whoever holds it gives it back as the outcome of
/// the call, or calls `result_release`.
pub const HANDLE: usize = usize::MAX;

/// Answers of functions: it worked. The output, if there is one, was written.
pub const OK: i32 = 0;
/// It failed. The output is an error as JSON: `code`, and if they apply `message`, `suggestion`, `extension`, `hook`,
/// `retryAfter` (`secs`, `nanos`), `retryable`, `causes` (texts, outermost first), `turn`.
pub const FAILED: i32 = 1;
/// Code panicked. The output is what it said, as text.
pub const PANICKED: i32 = 2;
/// There is no such thing. Nothing was written.
pub const NONE: i32 = 3;
/// Only from `poll`: not yet. Nothing was written; the waker will be called.
pub const PENDING: i32 = 4;

// ---- Futures -----------------------------------------------------------------------------------------------------

/// A future of the other side. Whoever holds it calls `drop` exactly once, which may be before it is ready: that is how
/// work is cancelled.
#[repr(C)]
pub struct Future {
    /// For the functions.
    pub data: *mut c_void,
    /// The functions, as long as the library or program is loaded.
    pub table: *const FutureTable,
}

/// The functions of a [`Future`]. They are never called at the same time, but perhaps from different threads.
#[repr(C)]
pub struct FutureTable {
    /// Bytes of this table.
    pub size: usize,
    /// Runs the future as far as it comes. After another answer than [`PENDING`] it is not called again.
    pub poll: unsafe extern "C" fn(data: *mut c_void, waker: *const Waker, output: *mut Buffer) -> i32,
    /// Ends the future.
    pub drop: unsafe extern "C" fn(data: *mut c_void),
}

/// What a pending future calls. It is lent for one call of `poll`; `clone` gives one to keep. A side that gets a waker of
/// its own making back unwraps it.
#[repr(C)]
pub struct Waker {
    /// The functions.
    pub table: *const WakerTable,
}

/// The functions of a [`Waker`], callable from any thread.
#[repr(C)]
pub struct WakerTable {
    /// Bytes of this table.
    pub size: usize,
    /// Gives a waker that is owned.
    pub clone: unsafe extern "C" fn(waker: *const Waker) -> *const Waker,
    /// Wakes, and ends an owned waker.
    pub wake: unsafe extern "C" fn(waker: *const Waker),
    /// Wakes.
    pub wake_by_ref: unsafe extern "C" fn(waker: *const Waker),
    /// Ends an owned waker.
    pub drop: unsafe extern "C" fn(waker: *const Waker),
}

// ---- The library's side ------------------------------------------------------------------------------------------

/// What a library offers; it lives as long as the process.
#[repr(C)]
pub struct PluginTable {
    /// Bytes of this table.
    pub size: usize,
    /// How many extensions the library holds, those of crates that it merely links included.
    pub extension_count: unsafe extern "C" fn() -> usize,
    /// What is known of an extension before it runs, as JSON: `package`, `name`, `configSchema`, and `tools` with `name`
    /// and `parameters`. Runs no code of the extension but that which computes schemas.
    pub describe: unsafe extern "C" fn(extension: usize, output: *mut Buffer) -> i32,
    /// Makes an instance of an extension: its `#[init]` and its registrations. `handle` is for the functions
    /// `extension_…` of the host, and the library releases it. `name` is what the agent calls the extension.
    pub register: unsafe extern "C" fn(extension: usize, handle: *const c_void, name: Text, config: Text) -> Future,
}

/// Something of the library that the host calls: a middleware, a tool's handler, an event handler, a clean-up.
#[repr(C)]
pub struct Object {
    /// For the functions.
    pub data: *mut c_void,
    /// The functions.
    pub table: *const ObjectTable,
}

/// The functions of an [`Object`], callable from any thread, also at the same time.
#[repr(C)]
pub struct ObjectTable {
    /// Bytes of this table.
    pub size: usize,
    /// Starts one call. `call` is for the functions `run_…`, and lives until the future is dropped.
    ///
    /// | registered as | `call` | `input` | output |
    /// |---|---|---|---|
    /// | middleware | the run | nothing | the handle that `run_next` gave, or a recovered result as JSON |
    /// | tool | the call | the arguments as JSON | the answer as JSON |
    /// | event handler | null | `{"name", "args"}` | nothing |
    /// | clean-up | null | nothing | nothing |
    pub call: unsafe extern "C" fn(data: *mut c_void, call: *const c_void, input: Text) -> Future,
    /// Ends the object, once, after all its futures.
    pub drop: unsafe extern "C" fn(data: *mut c_void),
}

/// What an extension registers.
#[repr(C)]
pub struct Registration {
    /// Bytes of this structure.
    pub size: usize,
    /// One of [`TURN`], [`STEP`], [`TOOL_CALL`], [`TOOL`], [`SUBSCRIPTION`], [`CLEANUP`].
    pub kind: u32,
    /// Of a middleware: the lower, the further out.
    pub priority: i32,
    /// Of a middleware: its `name` in errors, and the extensions it is `before` and `after` (lists), as JSON. Of a tool: the tool as JSON (`name`, `description`, `parameters`, `effect`,
    /// `timeout`, `source`). Of a subscription: its pattern.
    pub text: Text,
    /// What is called.
    pub object: Object,
}

/// A middleware around turns.
pub const TURN: u32 = 1;
/// A middleware around steps.
pub const STEP: u32 = 2;
/// A middleware around tool calls.
pub const TOOL_CALL: u32 = 3;
/// A tool.
pub const TOOL: u32 = 4;
/// An event handler that lives as long as the extension.
pub const SUBSCRIPTION: u32 = 5;
/// What runs before the extension goes away.
pub const CLEANUP: u32 = 6;

// ---- The host's side ---------------------------------------------------------------------------------------------

/// What a host offers; it lives as long as the process. All functions may be called from any thread.
#[repr(C)]
pub struct HostTable {
    /// Bytes of this table.
    pub size: usize,
    /// [`ABI_MAJOR`] of the host.
    pub abi_major: u32,
    /// [`ABI_MINOR`] of the host.
    pub abi_minor: u32,

    /// Makes a place that log lines come from known, and gives its number.
    pub log_place: unsafe extern "C" fn(place: *const LogPlace) -> u64,
    /// Whether a line from there would be read by anyone: 1 or 0.
    pub log_enabled: unsafe extern "C" fn(place: u64) -> u32,
    /// Writes a line, inside the spans that the host has entered on this thread. `values` are as many as the place has
    /// fields, in their order.
    pub log_line: unsafe extern "C" fn(place: u64, values: *const LogValue, count: usize),

    /// Writes a line in the name of an extension. `level`: 1 error, 2 warning, 3 info, 4 debug. `fields` is a JSON object.
    pub extension_log: unsafe extern "C" fn(handle: *const c_void, level: u32, text: Text, fields: Text),
    /// Notes a registration. The host takes the object, whatever the answer.
    pub extension_register:
        unsafe extern "C" fn(handle: *const c_void, registration: *const Registration, error: *mut Buffer) -> i32,
    /// The state of the extension as JSON, or [`NONE`].
    pub extension_state: unsafe extern "C" fn(handle: *const c_void, output: *mut Buffer) -> i32,
    /// Changes the state in one step: calls `change` with `data` and the state as JSON (without bytes when there is none),
    /// and stores the JSON that it gives with [`OK`].
    pub extension_update_state: unsafe extern "C" fn(
        handle: *const c_void,
        data: *mut c_void,
        change: unsafe extern "C" fn(data: *mut c_void, state: Text, output: *mut Buffer) -> i32,
        error: *mut Buffer,
    ) -> i32,
    /// Starts a subscription and gives its number; it ends after one delivery if `once` is 1.
    pub extension_subscribe:
        unsafe extern "C" fn(handle: *const c_void, pattern: Text, once: u32, handler: Object) -> u64,
    /// Ends a subscription.
    pub extension_unsubscribe: unsafe extern "C" fn(handle: *const c_void, subscription: u64),
    /// Hands an event to all subscriptions that it fits. `args` is a JSON list.
    pub extension_emit: unsafe extern "C" fn(handle: *const c_void, name: Text, args: Text),
    /// Gives the handle back. It is not used afterwards.
    pub extension_release: unsafe extern "C" fn(handle: *const c_void),

    /// A field of a run or call as JSON. All: `scope` (`agentName`, `instanceKey`, `turnId`, `traceId`, `inputEvent`).
    /// Middlewares: `metadata`. Turns and steps: `events`. Steps: `stepIndex`, `toolCatalog`. Tool calls: `stepIndex`,
    /// `callId`, `toolName`, `args`. Tools: `callId`, `toolName`, `message`, `workdir`.
    pub run_read: unsafe extern "C" fn(call: *const c_void, field: Text, output: *mut Buffer) -> i32,
    /// Puts JSON in the place of a field: `metadata`, `toolCatalog`, `args`.
    pub run_write: unsafe extern "C" fn(call: *const c_void, field: Text, json: Text, error: *mut Buffer) -> i32,
    /// How many messages the conversation holds; `snapshot` is [`BASE`] or [`NOW`].
    pub run_message_count: unsafe extern "C" fn(call: *const c_void, snapshot: u32) -> usize,
    /// The first message at or after `cursor`, or [`NONE`]. The first cursor is 0.
    pub run_message_from:
        unsafe extern "C" fn(call: *const c_void, snapshot: u32, cursor: usize, message: *mut Message) -> i32,
    /// The last message before `cursor`, or [`NONE`]. Behind all messages is `SIZE_MAX`.
    pub run_message_before:
        unsafe extern "C" fn(call: *const c_void, snapshot: u32, cursor: usize, message: *mut Message) -> i32,
    /// A field of the message at `cursor` as JSON: `content`, `metadata`, `createdAt`, `source`; with the empty name the
    /// whole message; and with the name `text` all its text, not as JSON.
    pub run_message_read: unsafe extern "C" fn(
        call: *const c_void,
        snapshot: u32,
        cursor: usize,
        field: Text,
        output: *mut Buffer,
    ) -> i32,
    /// Takes a message event in, as JSON in the form of `events.jsonl`.
    pub run_emit: unsafe extern "C" fn(call: *const c_void, event: Text, error: *mut Buffer) -> i32,
    /// Runs the rest of the onion, once. The output is a handle to a result.
    pub run_next: unsafe extern "C" fn(call: *const c_void) -> Future,
    /// Asks another agent and waits: JSON with `target`, `input`, `instanceKey`, `timeout` (`secs`, `nanos`), `metadata`.
    /// The output is JSON with `target` and `response`.
    pub run_request: unsafe extern "C" fn(call: *const c_void, request: Text) -> Future,
    /// Asks another agent without waiting. The output is the number of the request, as text.
    pub run_request_later: unsafe extern "C" fn(call: *const c_void, request: Text, output: *mut Buffer) -> i32,
    /// Tells another agent something. The output is `true` or `false`.
    pub run_send: unsafe extern "C" fn(call: *const c_void, request: Text) -> Future,
    /// The agents that can be reached, as a JSON list of names.
    pub run_agents: unsafe extern "C" fn(call: *const c_void, output: *mut Buffer) -> i32,
    /// Writes a line in the name of the extension that owns the tool, like `extension_log`. Tools only.
    pub run_log: unsafe extern "C" fn(call: *const c_void, level: u32, text: Text, fields: Text),

    /// A field of a result as JSON. `kind` and `result` are `len` and `data` of its handle. Turns: `turnId`, `finishReason`, `response`, `error`, `steps`, `toolCalls`. Steps:
    /// `status`, `hasToolCalls`, `toolCalls`, `toolResults`, `metadata`. Tool calls: `toolCallId`, `toolName`, `outcome`.
    pub result_read: unsafe extern "C" fn(kind: u32, result: *const c_void, field: Text, output: *mut Buffer) -> i32,
    /// Puts JSON in the place of a field of a result.
    pub result_write:
        unsafe extern "C" fn(kind: u32, result: *mut c_void, field: Text, json: Text, error: *mut Buffer) -> i32,
    /// Ends a result that is not given back.
    pub result_release: unsafe extern "C" fn(kind: u32, result: *mut c_void),
}

/// The messages at the start of the turn.
pub const BASE: u32 = 0;
/// The messages now.
pub const NOW: u32 = 1;

/// A message, borrowed until the conversation changes or the call ends.
#[repr(C)]
pub struct Message {
    /// The cursor that leads to this message.
    pub cursor: usize,
    /// The cursor behind it.
    pub next: usize,
    /// Its id.
    pub id: Text,
    /// 0 system, 1 user, 2 assistant, 3 tool.
    pub role: u32,
    /// 1 when `text` is all its text, 0 when the text must be asked for.
    pub plain: u32,
    /// Its text.
    pub text: Text,
}

/// A place that log lines come from.
#[repr(C)]
pub struct LogPlace {
    /// Bytes of this structure.
    pub size: usize,
    /// Its name.
    pub name: Text,
    /// Its target, such as the path of a module.
    pub target: Text,
    /// Its file; without bytes when unknown.
    pub file: Text,
    /// Its line; 0 when unknown.
    pub line: u32,
    /// 1 error, 2 warning, 3 info, 4 debug, 5 trace.
    pub level: u32,
    /// The names of its fields; the one called `message` is the text.
    pub fields: *const Text,
    /// How many they are.
    pub field_count: usize,
}

/// The value of a field of a log line.
#[repr(C)]
pub struct LogValue {
    /// 0 none, 1 text, 2 `i64`, 3 `u64`, 4 `f64`, 5 bool, 6 a value of another type, rendered as `text`.
    pub kind: u32,
    /// The bits of a number or bool.
    pub bits: u64,
    /// The text.
    pub text: Text,
}
