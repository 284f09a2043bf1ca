//! The host behind the `ExtensionApi` of a library: registration, state and events of one extension in one
//! conversation.

use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use goondan_core::host::AnyMiddleware;
use goondan_core::linkage::{Layer, WireToolItem};
use goondan_core::{
    AgentDelegate, AgentReload, AgentReloadAnswer, AnyRegistration, BoxFuture, Deliveries, Error, Event, EventHandler,
    EventPattern, ExtensionHost, ExtensionInfo, ExtensionName, LayerInfo, LogHost, LogLevel, MiddlewareKind,
    MiddlewareOptions, ReloadEffect, Result, Shown,
};
use serde_json::{Map, Value};

use super::log::{fields_json, level_number};
use super::object::object;
use super::parts::{Cleanup, PresentedTool, Subscriber, Tool};
use super::runtime::RuntimeRef;
use super::transform::export_masker;
use super::{host, host_1_2, host_1_3, missing, too_old};
use crate::bytes::{answer, ask};
use crate::future::{Imported, NoScope};
use crate::table::{Buffer, CLEANUP, Object, Registration, STEP, SUBSCRIPTION, TOOL, TOOL_CALL, TURN, Text};

/// A change of a value of the extension.
type Change<'a> = &'a mut dyn FnMut(Option<Value>) -> Result<Value>;

/// A function of the host that updates a value of an extension.
type Update = unsafe extern "C" fn(
    *const c_void,
    *mut c_void,
    unsafe extern "C" fn(*mut c_void, Text, *mut Buffer) -> i32,
    *mut Buffer,
) -> i32;

/// The host's handle for one extension in one conversation. Dropping it releases it.
pub(super) struct ExtensionHandle(*const c_void, RuntimeRef);

// SAFETY: The contract allows calling the functions of the host with a handle from any thread.
unsafe impl Send for ExtensionHandle {}
// SAFETY: As above; the calls may be concurrent.
unsafe impl Sync for ExtensionHandle {}

impl ExtensionHandle {
    /// # Safety
    /// `handle` must be one that the host passed to `register`, and must have no other owner.
    pub(super) unsafe fn new(handle: *const c_void) -> Self {
        Self(handle, RuntimeRef::new())
    }

    pub(super) fn with_name(self, name: ExtensionName) -> Arc<GuestExtension> {
        Arc::new(GuestExtension { name, handle: self })
    }
}

impl Drop for ExtensionHandle {
    fn drop(&mut self) {
        // SAFETY: `self` owns the handle, which is not used afterwards.
        unsafe { (host().extension_release)(self.0) };
    }
}

/// The host of one extension: forwards to the functions `extension_…` of the host's table.
pub(super) struct GuestExtension {
    /// The name of the extension in the agent.
    name: ExtensionName,
    handle: ExtensionHandle,
}

impl GuestExtension {
    fn layer_info(&self, kind: MiddlewareKind, options: &MiddlewareOptions) -> LayerInfo {
        LayerInfo::new(self.name.clone(), kind, options.clone())
    }

    fn register_object(&self, kind: u32, priority: i32, text: &[u8], object: Object) -> Result<()> {
        let text = Text::new(text);
        let registration = Registration { size: size_of::<Registration>(), kind, priority, text, object };
        // SAFETY: `self` owns the handle. The registration is borrowed for the call; its object passes to the host.
        ask(|error| unsafe { (host().extension_register)(self.handle.0, &raw const registration, error) }).map(|_| ())
    }

    /// Passes a change to `update`, one of the two functions of the host that update a value of the extension.
    fn update(&self, update: Update, change: Change<'_>) -> Result<()> {
        unsafe extern "C" fn call(data: *mut c_void, state: Text, output: *mut Buffer) -> i32 {
            let call = || {
                // SAFETY: The contract makes the host pass the data that came with this function, and only before
                // `update` returns.
                let change = unsafe { &mut *data.cast::<Change<'_>>() };
                // SAFETY: The contract makes the text valid for this call.
                let state = unsafe { state.bytes() };
                let state = if state.is_empty() { None } else { Some(serde_json::from_slice(state)?) };
                Buffer::json(&change(state)?).map(Some)
            };
            // SAFETY: The contract makes the host pass a writable `output`.
            unsafe { answer(output, call) }
        }

        // A panic must not unwind through the host.
        let mut panic = None;
        let mut change: Change<'_> = &mut |state| {
            catch_unwind(AssertUnwindSafe(|| change(state))).unwrap_or_else(|payload| {
                panic = Some(payload);
                Err(Error::msg("the change of the state panicked"))
            })
        };
        let data = (&raw mut change).cast::<c_void>();
        // SAFETY: `self` owns the handle; `data` points to a `Change`, as `call` requires, which outlives the call.
        let updated = ask(|error| unsafe { update(self.handle.0, data, call, error) });
        match panic {
            Some(payload) => resume_unwind(payload),
            None => updated.map(|_| ()),
        }
    }
}

impl ExtensionHost for GuestExtension {
    fn extension(&self) -> &ExtensionName {
        &self.name
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        let name = &self.name;
        match registration {
            AnyRegistration::Middleware(middleware, options) => {
                let (wire, priority) = (serde_json::to_vec(&options)?, options.priority);
                let info = self.layer_info(middleware.kind(), &options);
                match middleware {
                    AnyMiddleware::Turn(layer) => {
                        self.register_object(TURN, priority, &wire, object(name, Layer::new(info, layer)))
                    }
                    AnyMiddleware::Step(layer) => {
                        self.register_object(STEP, priority, &wire, object(name, Layer::new(info, layer)))
                    }
                    AnyMiddleware::ToolCall(layer) => {
                        self.register_object(TOOL_CALL, priority, &wire, object(name, Layer::new(info, layer)))
                    }
                }
            }
            AnyRegistration::InputMasker(masker) => {
                let Some(host) = host_1_3() else { return Err(too_old("maskers of inputs")) };
                let masker = export_masker(name, masker);
                // SAFETY: `self` owns the handle. The masker is borrowed for this function, and passed on to the host
                // by it.
                ask(|error| unsafe { (host.extension_mask_inputs)(self.handle.0, &raw const masker, error) }).map(drop)
            }
            AnyRegistration::Tool(item, handler) => {
                let item = serde_json::to_vec(&WireToolItem::from(&*item))?;
                let object = match handler.presenter() {
                    Some(_) => object(name, PresentedTool(Tool(handler))),
                    None => object(name, Tool(handler)),
                };
                self.register_object(TOOL, 0, &item, object)
            }
            AnyRegistration::Subscription(pattern, handler) => {
                self.register_object(SUBSCRIPTION, 0, pattern.to_string().as_bytes(), object(name, Subscriber(handler)))
            }
            AnyRegistration::Cleanup(handler) => self.register_object(CLEANUP, 0, b"", object(name, Cleanup(handler))),
        }
    }

    fn state(&self) -> Option<Value> {
        // SAFETY: `self` owns the handle.
        let state = ask(|output| unsafe { (host().extension_state)(self.handle.0, output) });
        state.and_then(|state| state.map(|json| json.parse()).transpose()).unwrap_or_else(|error| {
            tracing::error!("the host gave no state: {error}");
            None
        })
    }

    fn update_state(&self, change: Change<'_>) -> Result<()> {
        self.update(host().extension_update_state, change)
    }

    fn shared_state(&self) -> Result<Option<Value>> {
        // SAFETY: `self` owns the handle.
        let state = ask(|output| unsafe { (host().extension_shared_state)(self.handle.0, output) })?;
        state.map(|json| json.parse()).transpose()
    }

    fn update_shared_state(&self, change: Change<'_>) -> Result<()> {
        self.update(host().extension_update_shared_state, change)
    }

    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        let (pattern, once) = (pattern.to_string(), u32::from(limit == Deliveries::One));
        let handler = object(&self.name, Subscriber(handler));
        // SAFETY: `self` owns the handle. The pattern is borrowed for the call; the object passes to the host.
        unsafe { (host().extension_subscribe)(self.handle.0, Text::new(pattern.as_bytes()), once, handler) }
    }

    fn unsubscribe(&self, subscription: u64) {
        // SAFETY: `self` owns the handle.
        unsafe { (host().extension_unsubscribe)(self.handle.0, subscription) };
    }

    fn emit(&self, event: Event) {
        let args = match serde_json::to_vec(event.args()) {
            Ok(args) => args,
            Err(error) => return tracing::error!(event = event.name(), "the event was not emitted: {error}"),
        };
        let name = Text::new(event.name().as_bytes());
        // SAFETY: `self` owns the handle; the texts are borrowed for the call.
        unsafe { (host().extension_emit)(self.handle.0, name, Text::new(&args)) };
    }

    fn show(&self, shown: Shown) {
        // A host of an earlier version shows nothing.
        let Some(host) = host_1_2() else { return };
        let shown = match serde_json::to_vec(&shown) {
            Ok(shown) => shown,
            Err(error) => return tracing::error!("what is shown was not sent: {error}"),
        };
        // SAFETY: `self` owns the handle; the text is borrowed for the call.
        unsafe { (host.extension_show)(self.handle.0, Text::new(&shown)) };
    }

    fn delegate(&self, delegation: AgentDelegate) {
        let delegation = match serde_json::to_vec(&delegation) {
            Ok(delegation) => delegation,
            Err(error) => return tracing::error!("the delegation was not sent: {error}"),
        };
        // SAFETY: `self` owns the handle; the text is borrowed for the call.
        unsafe { (host().extension_delegate)(self.handle.0, Text::new(&delegation)) };
    }

    fn reload(&self, request: AgentReload) -> BoxFuture<'static, AgentReloadAnswer> {
        let answer = serde_json::to_vec(&request).map(|request| {
            // SAFETY: `self` owns the handle; the text is borrowed for the call.
            let answer = unsafe { (host().extension_reload)(self.handle.0, Text::new(&request)) };
            // SAFETY: The host just returned the future, which has no other owner.
            unsafe { Imported::new(answer, NoScope) }
        });
        Box::pin(async move {
            let answer = async { answer?.await?.parse() }.await;
            answer.unwrap_or_else(|error: Error| {
                let (effect, reason) = (ReloadEffect::None, Some(error.message().into_owned()));
                AgentReloadAnswer::new(request.id, effect, reason)
            })
        })
    }

    fn info(&self) -> Result<ExtensionInfo> {
        // SAFETY: `self` owns the handle.
        let info = ask(|output| unsafe { (host().extension_info)(self.handle.0, output) })?;
        info.ok_or_else(|| missing("context of `#[init]`"))?.parse()
    }

    fn state_dir(&self) -> Result<PathBuf> {
        // SAFETY: `self` owns the handle.
        let dir = ask(|output| unsafe { (host().extension_state_dir)(self.handle.0, output) })?;
        let dir = dir.ok_or_else(|| missing("directory"))?;
        Ok(PathBuf::from(std::str::from_utf8(dir.bytes())?))
    }
}

impl LogHost for GuestExtension {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        let (level, fields) = (level_number(level), fields_json(fields));
        // SAFETY: `self` owns the handle; the texts are borrowed for the call.
        unsafe { (host().extension_log)(self.handle.0, level, Text::new(text.as_bytes()), Text::new(&fields)) };
    }
}
