//! The table of a host of a later version: the functions of this program, with values that version 1.0 does not know in
//! what they write. The functions that read from the library note what it wrote back, and pass on what this program
//! knows of it.

use std::ffi::c_void;
use std::sync::{LazyLock, Mutex};

use goondan_abi::host_table;
use goondan_abi::table::{Buffer, HostTable, HostTable1_2, HostTable1_3, Message, OK, STEP, TOOL_CALL, TURN, Text};
use serde_json::{Value, json};

/// What a library has written: the field, or `event`, and its JSON.
pub(crate) static WRITTEN: Mutex<Vec<(String, Value)>> = Mutex::new(Vec::new());

pub(crate) fn host() -> &'static HostTable1_3 {
    static HOST: LazyLock<&'static HostTable1_3> = LazyLock::new(|| {
        // SAFETY: A table consists of numbers and function pointers, which can be copied.
        let known = unsafe { std::ptr::read(host_table()) };
        let base = HostTable {
            abi_minor: known.base.base.abi_minor + 1,
            run_read,
            run_write,
            run_message_from,
            run_message_before,
            run_message_read,
            run_emit,
            result_read,
            result_write,
            ..known.base.base
        };
        let base = HostTable1_2 { base, ..known.base };
        Box::leak(Box::new(HostTable1_3 { base, ..known }))
    });
    &HOST
}

fn hologram() -> Value {
    json!({ "type": "hologram", "of": 1 })
}

fn text(text: Text) -> String {
    // SAFETY: The library passes a text that is valid for the call.
    let bytes = unsafe { std::slice::from_raw_parts(if text.len == 0 { [].as_ptr() } else { text.data }, text.len) };
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn borrowed(text: &str) -> Text {
    Text { data: text.as_ptr(), len: text.len() }
}

/// Changes the JSON that this program has written to `output`.
fn change(status: i32, output: *mut Buffer, change: impl FnOnce(&mut Value)) -> i32 {
    unsafe extern "C" fn free(data: *mut c_void, len: usize, _: usize) {
        // SAFETY: `data` and `len` are those of the box below.
        drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), len)) });
    }
    if status != OK {
        return status;
    }
    // SAFETY: The output is writable, and was just written.
    let written = unsafe { std::ptr::read(output) };
    let json = text(Text { data: written.data.cast(), len: written.len });
    if let Some(free) = written.free {
        // SAFETY: The buffer is freed once.
        unsafe { free(written.data, written.len, written.extra) };
    }
    let Ok(mut value) = serde_json::from_str(&json) else { panic!("{json}") };
    change(&mut value);
    let bytes = value.to_string().into_bytes().into_boxed_slice();
    let len = bytes.len();
    // SAFETY: As above.
    unsafe { output.write(Buffer { data: Box::into_raw(bytes).cast(), len, extra: 0, free: Some(free) }) };
    status
}

fn tool(item: &mut Value) {
    if item["effect"] == "idempotent" {
        item["effect"] = "twice".into();
        item["parallel"] = true.into();
    }
    if item["name"] == "members__slow" {
        item["source"] = json!({ "type": "planet", "name": "mars" });
    }
}

fn known_tool(item: &mut Value) {
    if item["effect"] == "twice" {
        item["effect"] = "idempotent".into();
    }
}

fn content(content: &mut Value) {
    let text = content.as_str().map(|text| json!({ "type": "text", "text": text }));
    let parts = text.map_or_else(|| content.as_array().cloned().unwrap_or_default(), |text| vec![text]);
    *content = parts.into_iter().chain([hologram()]).collect();
}

fn without_holograms(parts: &mut Value) {
    parts.as_array_mut().into_iter().for_each(|parts| parts.retain(|part| *part != hologram()));
}

fn message(message: &mut Value) {
    content(&mut message["data"]["content"]);
    if message["data"]["role"] == "user" {
        message["data"]["role"] = "developer".into();
        message["source"] = json!({ "type": "oracle", "at": "delphi" });
    }
}

fn known_message(message: &mut Value) {
    without_holograms(&mut message["data"]["content"]);
    if message["data"]["role"] == "developer" {
        message["data"]["role"] = "user".into();
        message["source"] = json!({ "type": "user" });
    }
}

unsafe extern "C" fn run_read(call: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The arguments are those of the library.
    let status = unsafe { (host_table().base.base.run_read)(call, field, output) };
    change(status, output, |value| match &*text(field) {
        "toolCatalog" => value.as_array_mut().unwrap().iter_mut().for_each(tool),
        "tool" if value.is_object() => tool(value),
        "modelOptions" => {
            value["mood"] = "good".into();
            value["reasoning"] = json!({ "effort": "ultra" });
        }
        "modelInfo" => value["prices"] = json!({ "input": 1, "output": 2, "water": 3 }),
        "events" => value.as_array_mut().unwrap().push(json!({ "type": "move", "to": 0 })),
        "message" => {
            message(value);
            value["data"]["role"] = "sibyl".into();
        }
        _ => {}
    })
}

unsafe extern "C" fn run_write(call: *const c_void, field: Text, json: Text, error: *mut Buffer) -> i32 {
    let mut value: Value = serde_json::from_str(&text(json)).unwrap();
    WRITTEN.lock().unwrap().push((text(field), value.clone()));
    match &*text(field) {
        "toolCatalog" => value.as_array_mut().unwrap().iter_mut().for_each(known_tool),
        "modelOptions" => value.as_object_mut().unwrap().retain(|name, _| name == "temperature"),
        _ => {}
    }
    // SAFETY: The arguments are those of the library; the JSON is borrowed for the call.
    unsafe { (host_table().base.base.run_write)(call, field, borrowed(&value.to_string()), error) }
}

/// Gives the user another role, and makes the library read the content.
fn found(status: i32, message: *mut Message) -> i32 {
    if status == OK {
        // SAFETY: The message is writable, and was just written.
        let message = unsafe { &mut *message };
        message.plain = 0;
        if message.role == 1 {
            message.role = 9;
        }
    }
    status
}

unsafe extern "C" fn run_message_from(call: *const c_void, of: u32, cursor: usize, message: *mut Message) -> i32 {
    // SAFETY: The arguments are those of the library.
    found(unsafe { (host_table().base.base.run_message_from)(call, of, cursor, message) }, message)
}

unsafe extern "C" fn run_message_before(call: *const c_void, of: u32, cursor: usize, message: *mut Message) -> i32 {
    // SAFETY: The arguments are those of the library.
    found(unsafe { (host_table().base.base.run_message_before)(call, of, cursor, message) }, message)
}

unsafe extern "C" fn run_message_read(
    call: *const c_void,
    of: u32,
    cursor: usize,
    field: Text,
    output: *mut Buffer,
) -> i32 {
    // SAFETY: The arguments are those of the library.
    let status = unsafe { (host_table().base.base.run_message_read)(call, of, cursor, field, output) };
    match &*text(field) {
        "whole" => change(status, output, message),
        "content" => change(status, output, content),
        "source" => change(status, output, |source| *source = json!({ "type": "oracle", "at": "delphi" })),
        _ => status,
    }
}

unsafe extern "C" fn run_emit(call: *const c_void, event: Text, error: *mut Buffer) -> i32 {
    let mut value: Value = serde_json::from_str(&text(event)).unwrap();
    WRITTEN.lock().unwrap().push(("event".to_owned(), value.clone()));
    known_message(&mut value["message"]);
    // SAFETY: The arguments are those of the library; the event is borrowed for the call.
    unsafe { (host_table().base.base.run_emit)(call, borrowed(&value.to_string()), error) }
}

unsafe extern "C" fn result_read(kind: u32, result: *const c_void, field: Text, output: *mut Buffer) -> i32 {
    // SAFETY: The arguments are those of the library.
    let status = unsafe { (host_table().base.base.result_read)(kind, result, field, output) };
    let waiting = || json!({ "waiting": { "for": "a person" } });
    change(status, output, |value| match (kind, &*text(field)) {
        (TURN, "finishReason") => *value = "adjourned".into(),
        (TURN, "toolCalls") => *value = json!([{ "id": "c", "name": "t", "status": "waiting", "since": 1 }]),
        (STEP, "status") => *value = "paused".into(),
        (STEP, "finishReason") => *value = "bored".into(),
        (STEP, "toolResults") => {
            value.as_array_mut().unwrap().iter_mut().for_each(|result| result["outcome"] = waiting());
        }
        (TOOL_CALL, "outcome") if value["output"] == "here" => *value = waiting(),
        (TOOL_CALL, "reply") if value["output"]["type"] == "content" => content(&mut value["output"]["value"]),
        _ => {}
    })
}

unsafe extern "C" fn result_write(kind: u32, result: *mut c_void, field: Text, json: Text, error: *mut Buffer) -> i32 {
    let mut value: Value = serde_json::from_str(&text(json)).unwrap();
    WRITTEN.lock().unwrap().push((text(field), value.clone()));
    if value["output"].is_object() {
        without_holograms(&mut value["output"]["value"]);
    }
    // SAFETY: The arguments are those of the library; the JSON is borrowed for the call.
    unsafe { (host_table().base.base.result_write)(kind, result, field, borrowed(&value.to_string()), error) }
}
