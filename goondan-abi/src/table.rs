//! The binary contract, version 1: every type that host and library share, in C layout.
//!
//! This file has no dependencies, so a library can be built against a copy of it; `tests/frozen/1.0/table.rs` is the
//! copy that a library of version 1.0 is built against. `docs/abi.md` describes the contract in prose.
//!
//! # Rules
//! - Every table starts with `size`, its size in bytes in the version that its maker was built with. A reader
//!   accesses an entry that was added after version 1.0 only if `size` covers it. Entries are appended and never
//!   changed.
//! - Memory is freed by the side that allocated it, through the function that is passed along with it. Nothing is
//!   freed twice.
//! - Text is UTF-8 without a terminating zero. A [`Text`] is borrowed for the call that it is an argument of, unless
//!   the item that holds it says otherwise.
//! - Nothing unwinds out of a function of a table. A panic is caught and reported as [`PANICKED`]; a function that
//!   cannot report it returns its most harmless value.
//! - A handle is opaque to the side that did not create it.
//! - Contexts and results do not cross as a whole: JSON is used for the single fields that are read or written.
//! - A later minor version may add members, types of parts, statuses and other names to that JSON. A reader ignores
//!   members that it does not know, and passes them on unchanged when it writes back.

use core::ffi::c_void;

/// The first bytes of a [`Declaration`].
pub const MAGIC: [u8; 16] = *b"GOONDAN-EXT-ABI\0";

/// Must be equal in the host and the library.
pub const ABI_MAJOR: u32 = 1;

/// Grows with the entries, fields and forms that are added. A library declares the lowest one that its host must have.
pub const ABI_MINOR: u32 = 3;

/// The lowest [`ABI_MINOR`] of a host that can load a library of this version.
pub const NEEDED_MINOR: u32 = 0;

/// The name of the one symbol that a library exports: a [`Declaration`]. It is static data, so the host reads it from
/// the file before any code of the library runs.
pub const DECLARATION_SYMBOL: &str = "goondan_extension_decl_v1";

/// Describes a library to the host. The layout of the first 64 bytes is the same in all versions.
#[repr(C)]
pub struct Declaration {
    /// [`MAGIC`].
    pub magic: [u8; 16],
    /// The size of this structure in bytes.
    pub size: u32,
    /// [`ABI_MAJOR`] of the library.
    pub abi_major: u32,
    /// The lowest [`ABI_MINOR`] of a host that can load the library.
    pub abi_minor: u32,
    /// The size of a pointer in bits.
    pub pointer_width: u32,
    /// 1 if panics of the library unwind; 0 if they abort, in which case the host refuses the library.
    pub panic_unwind: u32,
    /// The size in bytes of the [`HostTable`] that the library was built with.
    pub host_table_size: u32,
    /// The size in bytes of the library's [`PluginTable`].
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
    /// Called once, after the host has read and accepted the fields above. Writes the table of the library, or
    /// returns [`FAILED`] and writes an error as JSON.
    pub entry: unsafe extern "C" fn(host: *const HostTable, plugin: *mut *const PluginTable, error: *mut Buffer) -> i32,
}

// ---- Values ------------------------------------------------------------------------------------------------------

/// Borrowed bytes.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Text {
    /// The first byte; may be any value if `len` is 0.
    pub data: *const u8,
    /// The number of bytes.
    pub len: usize,
}

/// Owned bytes, or an owned handle. Its owner calls `free`, if there is one, exactly once.
#[repr(C)]
pub struct Buffer {
    /// The first byte, or the handle.
    pub data: *mut c_void,
    /// The number of bytes; of a handle, the kind of the result: [`TURN`], [`STEP`] or [`TOOL_CALL`].
    pub len: usize,
    /// Only for `free`, except that [`HANDLE`] marks a handle, and [`REPLY`] the reply of a tool.
    pub extra: usize,
    /// Frees the buffer; called with the three fields above.
    pub free: Option<unsafe extern "C" fn(data: *mut c_void, len: usize, extra: usize)>,
}

/// `extra` of a [`Buffer`] that is a handle to a result. Such a buffer has no `free`: its owner returns it as the
/// outcome of the call or passes it to `result_release`.
pub const HANDLE: usize = usize::MAX;

/// `extra` of a [`Buffer`] that is the reply of a tool: not the answer itself as JSON, but `{"output": {"type",
/// "value"}, "isError"}`, with the output as in a message, of the type `text`, `json` or `content`. `isError` is
/// optional. Only for the outcome of a tool.
pub const REPLY: usize = usize::MAX - 1;

/// Status of a function: success. The output, if there is one, was written.
pub const OK: i32 = 0;
/// Status of a function: it failed. The output is an error as JSON: `code` and, if present, `message`, `suggestion`,
/// `extension`, `part`, `retryAfter` (`secs`, `nanos`), `retryable`, `causes` (texts, outermost first), `turn`.
pub const FAILED: i32 = 1;
/// Status of a function: it panicked. The output is the message of the panic, as text.
pub const PANICKED: i32 = 2;
/// Status of a function: there is no such item. Nothing was written.
pub const NONE: i32 = 3;
/// Status of `poll` only: not ready yet. Nothing was written; the waker will be called.
pub const PENDING: i32 = 4;

// ---- Futures -----------------------------------------------------------------------------------------------------

/// A future that one side creates and the other polls. Its owner calls `drop` exactly once; calling it before
/// the future is ready cancels the work.
#[repr(C)]
pub struct Future {
    /// Passed to the functions.
    pub data: *mut c_void,
    /// The functions. They are valid as long as the library or program is loaded.
    pub table: *const FutureTable,
}

/// The functions of a [`Future`]. They are never called concurrently, but may be called from different threads.
#[repr(C)]
pub struct FutureTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Polls the future. It is not called again after it has returned a status other than [`PENDING`].
    pub poll: unsafe extern "C" fn(data: *mut c_void, waker: *const Waker, output: *mut Buffer) -> i32,
    /// Drops the future.
    pub drop: unsafe extern "C" fn(data: *mut c_void),
}

/// Called by a pending future when it should be polled again. It is borrowed for one call of `poll`; `clone` returns
/// an owned one. A side that receives a waker that it created itself unwraps it.
#[repr(C)]
pub struct Waker {
    /// The functions.
    pub table: *const WakerTable,
}

/// The functions of a [`Waker`], which may be called from any thread.
#[repr(C)]
pub struct WakerTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Returns an owned waker for the same task.
    pub clone: unsafe extern "C" fn(waker: *const Waker) -> *const Waker,
    /// Wakes the task and drops the waker, which must be an owned one.
    pub wake: unsafe extern "C" fn(waker: *const Waker),
    /// Wakes the task.
    pub wake_by_ref: unsafe extern "C" fn(waker: *const Waker),
    /// Drops an owned waker.
    pub drop: unsafe extern "C" fn(waker: *const Waker),
}

// ---- The library's side ------------------------------------------------------------------------------------------

/// The functions of a library. The table is valid as long as the process runs.
#[repr(C)]
pub struct PluginTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Returns the number of extensions in the library, including those of crates that it depends on.
    pub extension_count: unsafe extern "C" fn() -> usize,
    /// Writes the description of an extension as JSON: `package`, `name`, `configSchema`, and `tools` with `name` and
    /// `parameters`. The only code of the extension that runs is the one that computes schemas.
    pub describe: unsafe extern "C" fn(extension: usize, output: *mut Buffer) -> i32,
    /// Initializes an extension for one conversation: runs `#[init]` and registers its parts. `handle` is the
    /// argument of the host's functions `extension_…`; the library releases it. `name` is the name of the extension
    /// in the agent.
    pub register: unsafe extern "C" fn(extension: usize, handle: *const c_void, name: Text, config: Text) -> Future,
}

/// A part of an extension that the host calls: a middleware, the handler of a tool, an event handler, a cleanup.
#[repr(C)]
pub struct Object {
    /// Passed to the functions.
    pub data: *mut c_void,
    /// The functions.
    pub table: *const ObjectTable,
}

/// The functions of an [`Object`], which may be called from any thread and concurrently.
#[repr(C)]
pub struct ObjectTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Starts one call. `call` is the argument of the functions `run_…` and is valid until the future is dropped.
    ///
    /// | registered as | `call` | `input` | output |
    /// |---|---|---|---|
    /// | middleware | the run | empty | the handle that `run_next` returned, or a recovered result as JSON |
    /// | tool | the call | the arguments as JSON | the answer as JSON, or a reply, marked by [`REPLY`] |
    /// | event handler | null | `{"name", "args"}` | empty |
    /// | cleanup | null | empty | empty |
    pub call: unsafe extern "C" fn(data: *mut c_void, call: *const c_void, input: Text) -> Future,
    /// Drops the object. Called once, after all futures of the object were dropped.
    pub drop: unsafe extern "C" fn(data: *mut c_void),
    /// Since 1.1, and only of a tool; may be null. Writes the presentation of a call for people as JSON: `line`, and if
    /// present `outcome` (`failed`, `words`) and `output`. `call` is JSON: the arguments in `args`, and once the call
    /// has ended with a reply, that in `reply`, as [`REPLY`] describes it. Not called after `drop`.
    pub present: Option<unsafe extern "C" fn(data: *mut c_void, call: Text, output: *mut Buffer) -> i32>,
}

/// One part that an extension registers.
#[repr(C)]
pub struct Registration {
    /// The size of this structure in bytes.
    pub size: usize,
    /// One of [`TURN`], [`STEP`], [`TOOL_CALL`], [`TOOL`], [`SUBSCRIPTION`], [`CLEANUP`].
    pub kind: u32,
    /// The priority of a middleware: lower priorities are further out.
    pub priority: i32,
    /// For a middleware JSON with its `name` in errors and the lists `before` and `after` of extensions; for a tool
    /// the tool as JSON (`name`, `description`, `parameters`, `effect`, `timeout`, `source`, `lenient`); for a
    /// subscription its pattern.
    pub text: Text,
    /// The object that the host calls.
    pub object: Object,
}

/// Kind of a registration or result: a turn middleware, the result of a turn.
pub const TURN: u32 = 1;
/// Kind of a registration or result: a step middleware, the result of a step.
pub const STEP: u32 = 2;
/// Kind of a registration or result: a tool-call middleware, the result of a tool call.
pub const TOOL_CALL: u32 = 3;
/// Kind of a registration: a tool.
pub const TOOL: u32 = 4;
/// Kind of a registration: an event handler that is subscribed until the extension is dropped.
pub const SUBSCRIPTION: u32 = 5;
/// Kind of a registration: code that runs before the extension is dropped.
pub const CLEANUP: u32 = 6;

// ---- The host's side ---------------------------------------------------------------------------------------------

/// The functions of a host, which may be called from any thread. The table is valid as long as the process runs.
#[repr(C)]
pub struct HostTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// [`ABI_MAJOR`] of the host.
    pub abi_major: u32,
    /// [`ABI_MINOR`] of the host.
    pub abi_minor: u32,

    /// Registers a place in the code that writes log lines, and returns its number.
    pub log_place: unsafe extern "C" fn(place: *const LogPlace) -> u64,
    /// Returns 1 if a line from the place would be recorded, else 0.
    pub log_enabled: unsafe extern "C" fn(place: u64) -> u32,
    /// Writes a line within the spans that the host has entered on this thread. `values` has one element for each
    /// field of the place, in the same order.
    pub log_line: unsafe extern "C" fn(place: u64, values: *const LogValue, count: usize),

    /// Masks a text in all output of the program, until the secret that this returns is forgotten.
    pub secret_remember: unsafe extern "C" fn(text: Text) -> *mut c_void,
    /// Forgets a secret of `secret_remember`, which must not be used afterwards. The text stays masked while there is
    /// another secret with it.
    pub secret_forget: unsafe extern "C" fn(secret: *mut c_void),

    /// Writes the facts about its conversation that an extension may ask for, as JSON: `extension`, `agent`,
    /// `instance`, `workspace` (or null), `bundleRoot` (or null), `inspect`, `conversation`, `extensions` (`name`,
    /// `declared`, `version`).
    pub extension_info: unsafe extern "C" fn(handle: *const c_void, output: *mut Buffer) -> i32,
    /// Writes a log line of an extension. `level`: 1 error, 2 warning, 3 info, 4 debug. `fields` is a JSON object.
    pub extension_log: unsafe extern "C" fn(handle: *const c_void, level: u32, text: Text, fields: Text),
    /// Registers a part of the extension. The host takes ownership of the object, whatever the status.
    pub extension_register:
        unsafe extern "C" fn(handle: *const c_void, registration: *const Registration, error: *mut Buffer) -> i32,
    /// Writes the state of the extension as JSON, or returns [`NONE`].
    pub extension_state: unsafe extern "C" fn(handle: *const c_void, output: *mut Buffer) -> i32,
    /// Updates the state atomically: calls `change` with `data` and the state as JSON (empty if there is none), and
    /// stores the JSON that it writes if it returns [`OK`].
    pub extension_update_state: unsafe extern "C" fn(
        handle: *const c_void,
        data: *mut c_void,
        change: unsafe extern "C" fn(data: *mut c_void, state: Text, output: *mut Buffer) -> i32,
        error: *mut Buffer,
    ) -> i32,
    /// Makes, unless it exists, the directory for files of the extension, which its conversations share, and writes its
    /// path as text.
    pub extension_state_dir: unsafe extern "C" fn(handle: *const c_void, output: *mut Buffer) -> i32,
    /// Writes the value that all conversations of the workspace share as JSON, or returns [`NONE`].
    pub extension_shared_state: unsafe extern "C" fn(handle: *const c_void, output: *mut Buffer) -> i32,
    /// Updates the shared value as `extension_update_state` does the state, while all other updates of it wait.
    pub extension_update_shared_state: unsafe extern "C" fn(
        handle: *const c_void,
        data: *mut c_void,
        change: unsafe extern "C" fn(data: *mut c_void, state: Text, output: *mut Buffer) -> i32,
        error: *mut Buffer,
    ) -> i32,
    /// Starts a subscription and returns its number. The subscription ends after one delivery if `once` is 1.
    pub extension_subscribe:
        unsafe extern "C" fn(handle: *const c_void, pattern: Text, once: u32, handler: Object) -> u64,
    /// Ends a subscription.
    pub extension_unsubscribe: unsafe extern "C" fn(handle: *const c_void, subscription: u64),
    /// Emits an event to all subscriptions whose pattern matches. `args` is a JSON list.
    pub extension_emit: unsafe extern "C" fn(handle: *const c_void, name: Text, args: Text),
    /// Starts a turn of an agent, and emits the event `agent.delegate`. `delegation` is its payload as JSON: `id`,
    /// `targetAgent`, `instanceKey`, `input`, `metadata`. The event `agent.delegationResult` has the result.
    pub extension_delegate: unsafe extern "C" fn(handle: *const c_void, delegation: Text),
    /// Requests a reload of the agent, and emits the event `agent.reload`. `request` is its payload as JSON: `id`. The
    /// output is the payload of the event `agent.reloadAnswer`: `id`, `effect`, and `reason` if there is one.
    pub extension_reload: unsafe extern "C" fn(handle: *const c_void, request: Text) -> Future,
    /// Releases the handle, which must not be used afterwards.
    pub extension_release: unsafe extern "C" fn(handle: *const c_void),

    /// Writes a field of a run or call as JSON. All kinds have `scope` (`agentName`, `instanceKey`, `turnId`,
    /// `traceId`, `inputEvent`); middlewares `metadata`; turns and steps `events`; steps `stepIndex`, `toolCatalog`,
    /// `model`, `modelOptions`, `modelInfo`, `tokenEstimate`; tool calls `stepIndex`, `callId`, `toolName`, `args`,
    /// `workdir` and `tool` (as in a registration, or `null`); tools `callId`, `toolName`, `message`, `workdir`,
    /// `events`.
    pub run_read: unsafe extern "C" fn(call: *const c_void, field: Text, output: *mut Buffer) -> i32,
    /// Replaces a field by JSON: `metadata`, `toolCatalog`, `model`, `modelOptions` or `args`. Three more cannot be
    /// read, and are written before `run_next`: `holdStream` of a step, which is `true`, holds the pieces of the answer
    /// until the outermost layer has returned; `answer` of a step, the content of a message, is taken instead of asking
    /// the model, and `answer` of a tool call, a reply as in a buffer with [`REPLY`], instead of running the handler;
    /// `project` of a step, a message event, edits the request of this step alone.
    pub run_write: unsafe extern "C" fn(call: *const c_void, field: Text, json: Text, error: *mut Buffer) -> i32,
    /// Returns the revision of the field `toolCatalog` of a step, or 0. As long as it is the same, so is the field, in
    /// whatever step or conversation.
    pub run_tool_catalog_revision: unsafe extern "C" fn(call: *const c_void) -> u64,
    /// Returns the number of messages in the conversation; `snapshot` is [`BASE`] or [`NOW`]. Turns and
    /// steps can read messages, and tools, which see the conversation up to the message with their call.
    pub run_message_count: unsafe extern "C" fn(call: *const c_void, snapshot: u32) -> usize,
    /// Writes the first message at or after `cursor`, or returns [`NONE`]. The first cursor is 0.
    pub run_message_from:
        unsafe extern "C" fn(call: *const c_void, snapshot: u32, cursor: usize, message: *mut Message) -> i32,
    /// Writes the last message before `cursor`, or returns [`NONE`]. `SIZE_MAX` is after all messages.
    pub run_message_before:
        unsafe extern "C" fn(call: *const c_void, snapshot: u32, cursor: usize, message: *mut Message) -> i32,
    /// Writes a field of the message at `cursor` as JSON: `content`, `metadata`, `createdAt`, `source`, `turn`, or the
    /// `whole` message; `text` selects all its text, which is not written as JSON.
    pub run_message_read: unsafe extern "C" fn(
        call: *const c_void,
        snapshot: u32,
        cursor: usize,
        field: Text,
        output: *mut Buffer,
    ) -> i32,
    /// Writes the value that an extension added to the message at `cursor` under `key`, as JSON, or returns [`NONE`].
    pub run_message_metadata:
        unsafe extern "C" fn(call: *const c_void, snapshot: u32, cursor: usize, key: Text, output: *mut Buffer) -> i32,
    /// Applies a message event, which is JSON as in `events.jsonl`.
    pub run_emit: unsafe extern "C" fn(call: *const c_void, event: Text, error: *mut Buffer) -> i32,
    /// Applies the message event that removes the message with this id.
    pub run_message_remove: unsafe extern "C" fn(call: *const c_void, id: Text, error: *mut Buffer) -> i32,
    /// Runs the rest of the chain; may be called once per call. The output is a handle to a result.
    pub run_next: unsafe extern "C" fn(call: *const c_void) -> Future,
    /// Sends a request to another agent and waits for the response. `request` is JSON with `target`, `input`,
    /// `instanceKey`, `timeout` (`secs`, `nanos`), `metadata`; the output is JSON with `target` and `response`.
    /// A request to a model has `model` instead, an object with its `name`, or without for the agent's own, and
    /// `input`, `system`, `options`, `timeout`. Its output has `model`, `response`, and `usage` if the model reports
    /// it.
    pub run_request: unsafe extern "C" fn(call: *const c_void, request: Text) -> Future,
    /// Sends a request to another agent without waiting. The output is the correlation id of the request, as text.
    pub run_request_later: unsafe extern "C" fn(call: *const c_void, request: Text, output: *mut Buffer) -> i32,
    /// Sends a message to another agent that expects no response. The output is `true` or `false`: whether it was
    /// accepted.
    pub run_send: unsafe extern "C" fn(call: *const c_void, request: Text) -> Future,
    /// Writes the agents that can be reached as a JSON list of names.
    pub run_agents: unsafe extern "C" fn(call: *const c_void, output: *mut Buffer) -> i32,
    /// Writes a log line of the extension that owns the tool, like `extension_log`. Tools only.
    pub run_log: unsafe extern "C" fn(call: *const c_void, level: u32, text: Text, fields: Text),
    /// Tells those who watch the turn how far a tool call is: how much of `total`, which may be null, is `done`. At
    /// most 20 a second are told. Tools only.
    pub run_progress: unsafe extern "C" fn(call: *const c_void, done: f64, total: *const f64, text: Text),

    /// Writes a field of a result as JSON. `kind` and `result` are `len` and `data` of its handle. Turns have `turnId`,
    /// `finishReason`, `response`, `error`, `steps`, `toolCalls`, `usage`; steps `status`, `hasToolCalls`, `toolCalls`,
    /// `toolResults`, `metadata`, `usage`, `model`, `finishReason`, `preparedBy`; tool calls `toolCallId`, `toolName`,
    /// `outcome`, `reply`, `preparedBy`. `preparedBy` is `null`, or the extension whose `answer` was taken. `reply` is
    /// `null`, or if the tool answered with files or said that it failed, its reply as in a buffer with [`REPLY`]; the
    /// outcome then has a text that stands for it.
    pub result_read: unsafe extern "C" fn(kind: u32, result: *const c_void, field: Text, output: *mut Buffer) -> i32,
    /// Replaces a field of a result by JSON. Writing the `outcome` of a tool call removes its `reply`; writing a
    /// `reply` that is not `null` replaces the outcome.
    pub result_write:
        unsafe extern "C" fn(kind: u32, result: *mut c_void, field: Text, json: Text, error: *mut Buffer) -> i32,
    /// Drops a result that is not returned as the outcome of a call.
    pub result_release: unsafe extern "C" fn(kind: u32, result: *mut c_void),
}

/// The table of a host of version 1.2 or later: a [`HostTable`], and the entries that were added behind it. A library
/// reads an entry of it only if the `size` of the table covers it.
#[repr(C)]
pub struct HostTable1_2 {
    /// The functions of version 1.0.
    pub base: HostTable,
    /// Since 1.2. Shows something to the person, and emits the event `extension.shown`. `shown` is JSON with its
    /// `type`: `note` has `text`; `status` has `id` and `text`; `list` has `id`, `title` and `items` with `state`
    /// (`open`, `active`, `done`, `failed`) and `text`; `difference` has `diff`. A missing id is empty.
    pub extension_show: unsafe extern "C" fn(handle: *const c_void, shown: Text),
}

/// The table of a host of version 1.3 or later: the table of 1.2, and additions behind it.
#[repr(C)]
pub struct HostTable1_3 {
    /// The functions of version 1.2.
    pub base: HostTable1_2,
    /// Since 1.3. Asks the person a live question, which is JSON as in the field `ask`, and waits for the answer. The
    /// output is the JSON value of the answer. Tools only.
    pub run_ask: unsafe extern "C" fn(call: *const c_void, question: Text) -> Future,
    /// Since 1.3. Sets a reviewer of the answer of the step, which the host then owns, whatever the status.
    /// Pieces of the answer are told before its verdict if `after_streaming` is 1. Before `run_next`, and steps only.
    ///
    /// Each call of the reviewer has the answer as `input`: JSON with its `content`, as in a message, and if present
    /// `usage`, `finishReason`, `model`, `preparedBy`. Its `call` is only for `run_request`, `run_send`,
    /// `run_request_later` and `run_agents`. The output is JSON with its `type`: `keep`; `replace` has `content`;
    /// `refuse` has `error`; `askAgain` has `words`, and if present `atMost`.
    pub run_review: unsafe extern "C" fn(
        call: *const c_void,
        reviewer: *const Object,
        after_streaming: u32,
        error: *mut Buffer,
    ) -> i32,
    /// Since 1.3. Sets a transformer of the text of the step's answer, which the host then owns, whatever the
    /// status. Before `run_next`, and steps only.
    pub run_transform:
        unsafe extern "C" fn(call: *const c_void, transformer: *const Transformer, error: *mut Buffer) -> i32,
    /// Since 1.3. Registers a masker of inputs, which the host then owns, whatever the status: a transformer
    /// whose
    /// `piece` gets each text of an input as a whole. `end` is not called.
    pub extension_mask_inputs:
        unsafe extern "C" fn(handle: *const c_void, masker: *const Transformer, error: *mut Buffer) -> i32,
}

/// Since 1.3. Changes the text of an answer piece by piece.
#[repr(C)]
pub struct Transformer {
    /// Passed to the functions.
    pub data: *mut c_void,
    /// The functions.
    pub table: *const TransformerTable,
}

/// The functions of a [`Transformer`]. They are never called concurrently, but may be called from different threads.
#[repr(C)]
pub struct TransformerTable {
    /// The size of this table in bytes.
    pub size: usize,
    /// Writes the text that is told and stored of a piece, and of the text that was kept back before; or returns
    /// [`NONE`] if that is the piece as it is. `kind`: 0 text, 1 reasoning.
    pub piece: unsafe extern "C" fn(data: *mut c_void, kind: u32, piece: Text, output: *mut Buffer) -> i32,
    /// Writes the text that was kept back of a part of the answer, which has ended; or returns [`NONE`].
    pub end: unsafe extern "C" fn(data: *mut c_void, kind: u32, output: *mut Buffer) -> i32,
    /// Drops the transformer. Called once.
    pub drop: unsafe extern "C" fn(data: *mut c_void),
}

/// Kind of a piece: text of an answer.
pub const PIECE_TEXT: u32 = 0;
/// Kind of a piece: reasoning.
pub const PIECE_REASONING: u32 = 1;

/// Snapshot: the messages at the start of the turn.
pub const BASE: u32 = 0;
/// Snapshot: the current messages.
pub const NOW: u32 = 1;

/// A message. Its texts are borrowed until the conversation changes or the call ends.
#[repr(C)]
pub struct Message {
    /// The cursor of this message.
    pub cursor: usize,
    /// The cursor after this message.
    pub next: usize,
    /// Its id.
    pub id: Text,
    /// 0 system, 1 user, 2 assistant, 3 tool; any other number is a role that the reader does not know.
    pub role: u32,
    /// 1 if `text` is the whole text of the message; 0 if the text must be read with `run_message_read`.
    pub plain: u32,
    /// Its text, or empty.
    pub text: Text,
}

/// A place in the code that writes log lines; a callsite, in the words of `tracing`.
#[repr(C)]
pub struct LogPlace {
    /// The size of this structure in bytes.
    pub size: usize,
    /// Its name.
    pub name: Text,
    /// Its target, such as the path of a module.
    pub target: Text,
    /// Its file; empty if unknown.
    pub file: Text,
    /// Its line; 0 if unknown.
    pub line: u32,
    /// 1 error, 2 warning, 3 info, 4 debug, 5 trace.
    pub level: u32,
    /// The names of its fields; the field `message` is the text of the line.
    pub fields: *const Text,
    /// The number of fields.
    pub field_count: usize,
}

/// The value of a field of a log line.
#[repr(C)]
pub struct LogValue {
    /// 0 none, 1 text, 2 `i64`, 3 `u64`, 4 `f64`, 5 bool, 6 a value of another type, formatted as `text`.
    pub kind: u32,
    /// The bits of a number or bool.
    pub bits: u64,
    /// The text.
    pub text: Text,
}
