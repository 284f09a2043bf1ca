//! The one symbol that a library exports, and the functions that the host calls through it.

use std::ffi::c_void;

use goondan_core::{API_VERSION, Error, ErrorCode, ExtensionApi, ExtensionDescriptor, ExtensionName, Result, linked};
use serde_json::json;

use super::extension::ExtensionHandle;
use super::runtime::{OwningScope, RuntimeRef};
use super::{HOST, Host, log, secret};
use crate::bytes::answer;
use crate::future::export;
use crate::table::{
    ABI_MAJOR, Buffer, Declaration, Future, HostTable, MAGIC, NEEDED_MINOR, NONE, OK, PluginTable, Text,
};

/// Static data, which the host reads from the file before any code of the library runs.
#[unsafe(no_mangle)]
static goondan_extension_decl_v1: Declaration = Declaration {
    magic: MAGIC,
    size: size_of::<Declaration>() as u32,
    abi_major: ABI_MAJOR,
    abi_minor: NEEDED_MINOR,
    pointer_width: usize::BITS,
    panic_unwind: cfg!(panic = "unwind") as u32,
    host_table_size: size_of::<HostTable>() as u32,
    plugin_table_size: size_of::<PluginTable>() as u32,
    reserved: [0; 5],
    api_version: padded(API_VERSION),
    rustc: padded(env!("GOONDAN_RUSTC")),
    target: padded(env!("GOONDAN_TARGET")),
    sdk_version: padded(env!("CARGO_PKG_VERSION")),
    entry,
};

static PLUGIN: PluginTable = PluginTable { size: size_of::<PluginTable>(), extension_count, describe, register };

/// Returns `text` padded with at least one zero, truncated if it is too long.
const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let mut padded = [0; N];
    let mut at = 0;
    while at < text.len() && at < N - 1 {
        padded[at] = text.as_bytes()[at];
        at += 1;
    }
    padded
}

unsafe extern "C" fn entry(host: *const HostTable, plugin: *mut *const PluginTable, error: *mut Buffer) -> i32 {
    // SAFETY: The contract makes the host pass a table that is valid as long as the process runs.
    let accept = || unsafe { accept(host) };
    // SAFETY: The contract makes the host pass a writable `error`.
    let status = unsafe { answer(error, accept) };
    if status != NONE {
        return status;
    }
    // SAFETY: The contract makes the host pass a writable `plugin`.
    unsafe { plugin.write(&PLUGIN) };
    OK
}

/// Stores the table of the host and returns `None`, or returns the reason why this host cannot be used.
///
/// # Safety
/// `table` must be valid as long as the process runs.
unsafe fn accept(table: *const HostTable) -> Result<Option<Buffer>> {
    // SAFETY: See above.
    let host = unsafe { &*table };
    // The library calls every entry of version 1.0 without further checks.
    if host.abi_major != ABI_MAJOR || host.size < size_of::<HostTable>() {
        let message = format!(
            "the library was built for ABI {ABI_MAJOR}.{NEEDED_MINOR}; the host speaks {}.{}",
            host.abi_major, host.abi_minor
        );
        return Err(Error::new(ErrorCode::EXT_COMPAT, message)
            .suggest("build the library and the host with the same version of goondan"));
    }
    HOST.get_or_init(|| Host(table));
    log::install();
    secret::install();
    Ok(None)
}

unsafe extern "C" fn extension_count() -> usize {
    linked().len()
}

fn extension(number: usize) -> Result<&'static ExtensionDescriptor> {
    linked().get(number).copied().ok_or_else(|| Error::msg(format!("the library has no extension number {number}")))
}

unsafe extern "C" fn describe(number: usize, output: *mut Buffer) -> i32 {
    let describe = || {
        let descriptor = extension(number)?;
        let tools = descriptor.tools.iter();
        let tools: Vec<_> = tools.map(|tool| json!({ "name": tool.name, "parameters": (tool.parameters)() })).collect();
        let described = json!({
            "package": descriptor.package,
            "name": descriptor.name,
            "configSchema": (descriptor.config_schema)(),
            "tools": tools,
        });
        Buffer::json(&described).map(Some)
    };
    // SAFETY: The contract makes the host pass a writable `output`.
    unsafe { answer(output, describe) }
}

unsafe extern "C" fn register(number: usize, handle: *const c_void, name: Text, config: Text) -> Future {
    // SAFETY: The contract makes the host pass a handle and give it to the library.
    let handle = unsafe { ExtensionHandle::new(handle) };
    // SAFETY: The contract makes the text valid for this call, within which it is copied.
    let owner = unsafe { name.str() }.to_owned();
    let name = ExtensionName::new(&owner);
    // SAFETY: As above.
    let config = serde_json::from_slice(unsafe { config.bytes() });
    let register = async move {
        let api = ExtensionApi::new(handle.with_name(name?));
        (extension(number)?.register)(api, config?).await?;
        Ok(Buffer::EMPTY)
    };
    // SAFETY: The future borrows nothing.
    unsafe { export(OwningScope(owner, RuntimeRef::new()), register) }
}
