//! The functions `extension_…`: registration, state and events of a library's extension in one conversation.

use std::ffi::c_void;
use std::sync::Arc;

use goondan_core::host::AnyMiddleware;
use goondan_core::linkage::WireToolItem;
use goondan_core::linkage::depth::{check, from_json};
use goondan_core::{
    AgentDelegate, AgentReload, AnyRegistration, Deliveries, Effect, Error, Event, ExtensionApi, ExtensionHost, Logger,
    MiddlewareOptions, Result, Shown, ToolItem,
};
use serde_json::{Map, Value};
use tokio::runtime::Handle;

use super::object::{LibraryObject, LibraryTool};
use super::transform::LibraryMasker;
use crate::bytes::{answer, ask};
use crate::future::{NoScope, export};
use crate::panic::{catch, catch_or_log};
use crate::table::{self, Buffer, Future, Object, Registration, Text, Transformer};

/// A change of a value of an extension, in a library.
type ChangeFn = unsafe extern "C" fn(*mut c_void, Text, *mut Buffer) -> i32;

/// One extension of a library in one conversation. The library holds a handle to it, which is the pointer of a leaked
/// box, until it calls `extension_release`.
pub(super) struct HostExtension {
    pub(super) api: ExtensionApi,
    /// The runtime that the extension was registered in.
    pub(super) runtime: Option<Handle>,
}

impl HostExtension {
    pub(super) fn into_handle(self) -> *const c_void {
        Box::into_raw(Box::new(self)).cast()
    }

    fn library_object(&self, object: Object) -> LibraryObject {
        LibraryObject::new(object, self.runtime.clone())
    }

    fn register(&self, registration: &Registration, text: &str) -> Result<()> {
        let Registration { kind, priority, object: Object { data, table }, .. } = *registration;
        // Wrapped first, so that the object is dropped even if the registration fails.
        let object = self.library_object(Object { data, table });
        let options = || {
            let mut options: MiddlewareOptions = serde_json::from_str(text)?;
            options.priority = priority;
            Ok::<_, Error>(options)
        };
        self.api.host().register(match kind {
            table::TURN => AnyRegistration::Middleware(AnyMiddleware::Turn(Arc::new(object)), options()?),
            table::STEP => AnyRegistration::Middleware(AnyMiddleware::Step(Arc::new(object)), options()?),
            table::TOOL_CALL => AnyRegistration::Middleware(AnyMiddleware::ToolCall(Arc::new(object)), options()?),
            table::TOOL => {
                let item = ToolItem::from(serde_json::from_str::<WireToolItem<'_>>(text)?);
                if item.effect == Effect::Other {
                    return Err(Error::msg(format!(
                        "the effect of the tool `{}` is read, idempotent or once",
                        item.name
                    )));
                }
                AnyRegistration::Tool(Arc::new(item), Arc::new(LibraryTool(object)))
            }
            table::SUBSCRIPTION => AnyRegistration::Subscription(text.parse()?, Arc::new(object)),
            table::CLEANUP => AnyRegistration::Cleanup(Arc::new(object)),
            other => return Err(Error::msg(format!("this host knows no registration of the kind {other}"))),
        })
    }
}

/// # Safety
/// `handle` must be one that the library received and has not released.
unsafe fn from_handle<'a>(handle: *const c_void) -> &'a HostExtension {
    // SAFETY: The caller guarantees the pointer of a box that `into_handle` leaked.
    unsafe { &*handle.cast::<HostExtension>() }
}

/// Writes a line with the fields of a JSON object to `logger`.
pub(super) fn write(mut logger: Logger<'_>, level: u32, text: &str, fields: &[u8]) {
    for (key, value) in serde_json::from_slice::<Map<String, Value>>(fields).unwrap_or_default() {
        logger = logger.with(key, value);
    }
    match level {
        1 => logger.error(text),
        2 => logger.warn(text),
        3 => logger.info(text),
        _ => logger.debug(text),
    }
}

pub(super) unsafe extern "C" fn log(handle: *const c_void, level: u32, text: Text, fields: Text) {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let text = unsafe { text.str() };
    // SAFETY: As above.
    let fields = unsafe { fields.bytes() };
    catch_or_log("a log line", || write(extension.api.logger(), level, text, fields));
}

pub(super) unsafe extern "C" fn register(
    handle: *const c_void,
    registration: *const Registration,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the registration valid for this call. Its object now belongs to the host.
    let registration = unsafe { &*registration };
    // SAFETY: As above.
    let text = unsafe { registration.text.str() };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, || extension.register(registration, text).map(|()| Some(Buffer::EMPTY))) }
}

pub(super) unsafe extern "C" fn mask_inputs(
    handle: *const c_void,
    masker: *const Transformer,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the masker valid for this call.
    let masker = unsafe { &*masker };
    // SAFETY: It now belongs to the host.
    let masker = unsafe { LibraryMasker::new(masker) };
    let register = || {
        let masker = AnyRegistration::InputMasker(Arc::new(masker));
        extension.api.host().register(masker).map(|()| Some(Buffer::EMPTY))
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, register) }
}

pub(super) unsafe extern "C" fn state(handle: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    let state = || extension.api.host().state().map(|state| Buffer::json(&state)).transpose();
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, state) }
}

pub(super) unsafe extern "C" fn update_state(
    handle: *const c_void,
    data: *mut c_void,
    change: ChangeFn,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let host = unsafe { from_handle(handle) }.api.host();
    // SAFETY: The library passed `data` together with `change`, which is called before this returns.
    let update = || host.update_state(&mut |state| unsafe { changed(host, "state", state, data, change) });
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, || update().map(|()| Some(Buffer::EMPTY))) }
}

pub(super) unsafe extern "C" fn shared_state(handle: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    let state = || extension.api.host().shared_state()?.map(|state| Buffer::json(&state)).transpose();
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, state) }
}

pub(super) unsafe extern "C" fn update_shared_state(
    handle: *const c_void,
    data: *mut c_void,
    change: ChangeFn,
    error: *mut Buffer,
) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let host = unsafe { from_handle(handle) }.api.host();
    let update = || {
        // SAFETY: The library passed `data` together with `change`, which is called before this returns.
        host.update_shared_state(&mut |state| unsafe { changed(host, "shared state", state, data, change) })
    };
    // SAFETY: The contract requires a writable `error`.
    unsafe { answer(error, || update().map(|()| Some(Buffer::EMPTY))) }
}

/// Returns the value that `change` of a library writes for `state`, the state or shared state of an extension.
///
/// # Safety
/// `data` must be the pointer that the library passed together with `change`.
unsafe fn changed(
    host: &dyn ExtensionHost,
    kind: &str,
    state: Option<Value>,
    data: *mut c_void,
    change: ChangeFn,
) -> Result<Value> {
    let state = state.map(|state| serde_json::to_vec(&state)).transpose()?;
    let state = state.as_deref().map_or(Text::EMPTY, Text::new);
    // SAFETY: The caller guarantees the data; the text is borrowed for the call.
    let changed = ask(|output| unsafe { change(data, state, output) })?;
    let changed = changed.ok_or_else(|| Error::msg("the library gave no state"))?.parse()?;
    // A library in another language does not check it.
    check(&changed).map_err(|error| error.refuse_state(format_args!("the {kind} of `{}`", host.extension())))?;
    Ok(changed)
}

pub(super) unsafe extern "C" fn subscribe(handle: *const c_void, pattern: Text, once: u32, handler: Object) -> u64 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let pattern = unsafe { pattern.str() };
    let handler = Arc::new(extension.library_object(handler));
    let limit = if once == 1 { Deliveries::One } else { Deliveries::All };
    catch_or_log("subscribing", || match pattern.parse() {
        Ok(pattern) => extension.api.host().subscribe(pattern, limit, handler),
        Err(error) => {
            tracing::error!(pattern, "a library subscribed to what is no pattern: {error}");
            0
        }
    })
    .unwrap_or_default()
}

pub(super) unsafe extern "C" fn unsubscribe(handle: *const c_void, subscription: u64) {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    catch_or_log("unsubscribing", || extension.api.host().unsubscribe(subscription));
}

pub(super) unsafe extern "C" fn emit(handle: *const c_void, name: Text, args: Text) {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let name = unsafe { name.str() };
    // SAFETY: As above.
    let args = unsafe { args.bytes() };
    catch_or_log("emitting an event", || {
        let args = from_json::<Vec<Value>>(args);
        match args.and_then(|args| Event::new(name, args)) {
            Ok(event) => extension.api.host().emit(event),
            Err(error) => tracing::error!(event = name, "an event of a library was lost: {error}"),
        }
    });
}

pub(super) unsafe extern "C" fn show(handle: *const c_void, shown: Text) {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let shown = unsafe { shown.bytes() };
    catch_or_log("showing something", || match from_json::<Shown>(shown) {
        Ok(shown) => extension.api.events().show(shown),
        Err(error) => tracing::error!("what a library shows was lost: {error}"),
    });
}

pub(super) unsafe extern "C" fn delegate(handle: *const c_void, delegation: Text) {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let delegation = unsafe { delegation.bytes() };
    catch_or_log("delegating", || match from_json::<AgentDelegate>(delegation) {
        Ok(delegation) => extension.api.events().delegate(delegation),
        Err(error) => tracing::error!("a delegation of a library was lost: {error}"),
    });
}

pub(super) unsafe extern "C" fn reload(handle: *const c_void, request: Text) -> Future {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    // SAFETY: The contract makes the text valid for this call.
    let request = unsafe { request.bytes() };
    // Sent here, so that it does not depend on whether the future is polled.
    let answer = catch(|| Ok(extension.api.events().reload(from_json::<AgentReload>(request)?)));
    let answer = answer.unwrap_or_else(|text| Err(Error::panicked(&text)));
    let answer = async { Buffer::json(&answer?.await) };
    // SAFETY: The future borrows nothing.
    unsafe { export(NoScope, answer) }
}

pub(super) unsafe extern "C" fn info(handle: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    let info = || Buffer::json(&extension.api.host().info()?).map(Some);
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, info) }
}

pub(super) unsafe extern "C" fn state_dir(handle: *const c_void, output: *mut Buffer) -> i32 {
    // SAFETY: The contract requires a handle of this host that was not released.
    let extension = unsafe { from_handle(handle) };
    let state_dir = || {
        let dir = extension.api.host().state_dir()?.into_os_string();
        let dir = dir.into_string().map_err(|dir| Error::msg(format!("the path {} is not UTF-8", dir.display())))?;
        Ok(Some(Buffer::bytes(dir.into_bytes())))
    };
    // SAFETY: The contract requires a writable `output`.
    unsafe { answer(output, state_dir) }
}

pub(super) unsafe extern "C" fn release(handle: *const c_void) {
    catch_or_log("releasing a handle", || {
        // SAFETY: The contract requires a handle of this host, whose ownership the library gives up.
        drop(unsafe { Box::from_raw(handle.cast_mut().cast::<HostExtension>()) });
    });
}
