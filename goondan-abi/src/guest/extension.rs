//! Owns what stands behind the `ExtensionApi` inside a library.

use std::ffi::c_void;
use std::sync::Arc;

use goondan_core::linkage::{Layer, WireToolItem};
use goondan_core::pipeline::AnyMiddleware;
use goondan_core::{
    AnyRegistration, Deliveries, Error, ErrorCode, Event, EventHandler, EventPattern, ExtensionHost, ExtensionName,
    LayerInfo, LogHost, LogLevel, MiddlewareKind, Options, Result,
};
use serde_json::{Map, Value};

use super::host;
use super::object::{Cleanup, Subscriber, Tool, object};
use super::runtime::User;
use crate::bytes::{answer, ask};
use crate::table::{Buffer, CLEANUP, Object, Registration, STEP, SUBSCRIPTION, TOOL, TOOL_CALL, TURN, Text};

/// The host's handle for one extension of one conversation; dropping it gives it back.
pub(super) struct Guest(*const c_void, User);

// SAFETY: The contract lets the functions of the host be called with a handle from any thread.
unsafe impl Send for Guest {}
// SAFETY: As above, also at the same time.
unsafe impl Sync for Guest {}

impl Guest {
    /// # Safety
    /// `handle` must be one that the host has given away.
    pub(super) unsafe fn new(handle: *const c_void) -> Self {
        Self(handle, User::new())
    }

    pub(super) fn named(self, name: ExtensionName) -> Arc<Named> {
        Arc::new(Named { name, guest: self })
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        // SAFETY: The handle is ours, and not used afterwards.
        unsafe { (host().extension_release)(self.0) };
    }
}

/// A handle, and what the agent calls the extension.
pub(super) struct Named {
    name: ExtensionName,
    guest: Guest,
}

impl Named {
    fn layer_info(&self, kind: MiddlewareKind, options: &Options) -> LayerInfo {
        LayerInfo::new(self.name.clone(), kind, options.clone())
    }

    fn note(&self, kind: u32, priority: i32, text: &[u8], object: Object) -> Result<()> {
        let text = Text::new(text);
        let registration = Registration { size: size_of::<Registration>(), kind, priority, text, object };
        // SAFETY: The handle is ours; the registration is borrowed for the call, and its object given away.
        ask(|error| unsafe { (host().extension_register)(self.guest.0, &raw const registration, error) }).map(|_| ())
    }
}

impl ExtensionHost for Named {
    fn extension(&self) -> &ExtensionName {
        &self.name
    }

    fn register(&self, registration: AnyRegistration) -> Result<()> {
        match registration {
            AnyRegistration::Middleware(middleware, options) => {
                let (wire, priority) = (serde_json::to_vec(&options)?, options.priority);
                let info = self.layer_info(middleware.kind(), &options);
                match middleware {
                    AnyMiddleware::Turn(layer) => self.note(TURN, priority, &wire, object(Layer::new(info, layer))),
                    AnyMiddleware::Step(layer) => self.note(STEP, priority, &wire, object(Layer::new(info, layer))),
                    AnyMiddleware::ToolCall(layer) => {
                        self.note(TOOL_CALL, priority, &wire, object(Layer::new(info, layer)))
                    }
                }
            }
            AnyRegistration::Tool(item, handler) => {
                self.note(TOOL, 0, &serde_json::to_vec(&WireToolItem::from(&*item))?, object(Tool(handler)))
            }
            AnyRegistration::Subscription(pattern, handler) => {
                self.note(SUBSCRIPTION, 0, pattern.to_string().as_bytes(), object(Subscriber(handler)))
            }
            AnyRegistration::Cleanup(handler) => self.note(CLEANUP, 0, b"", object(Cleanup(handler))),
        }
    }

    fn state(&self) -> Option<Value> {
        // SAFETY: The handle is ours.
        let state = ask(|output| unsafe { (host().extension_state)(self.guest.0, output) });
        state.and_then(|state| state.map(|json| json.parse()).transpose()).unwrap_or_else(|error| {
            tracing::error!("the host gave no state: {error}");
            None
        })
    }

    fn update_state(&self, change: &mut dyn FnMut(Option<Value>) -> Result<Value>) -> Result<()> {
        type Change<'a> = &'a mut dyn FnMut(Option<Value>) -> Result<Value>;

        unsafe extern "C" fn call(data: *mut c_void, state: Text, output: *mut Buffer) -> i32 {
            let call = || {
                // SAFETY: The host gives back the data that it was given with this function, during that call.
                let change = unsafe { &mut *data.cast::<Change<'_>>() };
                // SAFETY: The text is borrowed for this call.
                let state = unsafe { state.bytes() };
                let state = if state.is_empty() { None } else { Some(serde_json::from_slice(state)?) };
                Buffer::json(&change(state)?).map(Some)
            };
            // SAFETY: By the contract a place for the output.
            unsafe { answer(output, call) }
        }

        let mut change: Change<'_> = change;
        let data = (&raw mut change).cast::<c_void>();
        // SAFETY: The handle is ours; `data` is what `call` expects, for as long as this lasts.
        ask(|error| unsafe { (host().extension_update_state)(self.guest.0, data, call, error) }).map(|_| ())
    }

    fn subscribe(&self, pattern: EventPattern, limit: Deliveries, handler: Arc<dyn EventHandler>) -> u64 {
        let (pattern, once) = (pattern.to_string(), u32::from(limit == Deliveries::One));
        let handler = object(Subscriber(handler));
        // SAFETY: The handle is ours; the pattern is borrowed for the call, and the object given away.
        unsafe { (host().extension_subscribe)(self.guest.0, Text::new(pattern.as_bytes()), once, handler) }
    }

    fn unsubscribe(&self, subscription: u64) {
        // SAFETY: The handle is ours.
        unsafe { (host().extension_unsubscribe)(self.guest.0, subscription) };
    }

    fn emit(&self, event: Event) {
        let args = match serde_json::to_vec(event.args()) {
            Ok(args) => args,
            Err(error) => return tracing::error!(event = event.name(), "the event was not emitted: {error}"),
        };
        let name = Text::new(event.name().as_bytes());
        // SAFETY: The handle is ours; the texts are borrowed for the call.
        unsafe { (host().extension_emit)(self.guest.0, name, Text::new(&args)) };
    }
}

impl LogHost for Named {
    fn log(&self, level: LogLevel, text: &str, fields: &Map<String, Value>) {
        let (level, fields) = (level_number(level), fields_json(fields));
        // SAFETY: The handle is ours; the texts are borrowed for the call.
        unsafe { (host().extension_log)(self.guest.0, level, Text::new(text.as_bytes()), Text::new(&fields)) };
    }
}

pub(super) fn level_number(level: LogLevel) -> u32 {
    match level {
        LogLevel::Error => 1,
        LogLevel::Warn => 2,
        LogLevel::Info => 3,
        LogLevel::Debug => 4,
    }
}

pub(super) fn fields_json(fields: &Map<String, Value>) -> Vec<u8> {
    // A map of JSON values can be written as JSON.
    serde_json::to_vec(fields).unwrap_or_default()
}

/// The host has broken the contract.
pub(super) fn broken(what: &str) -> Error {
    Error::new(ErrorCode::EXT_RUNTIME, format!("the host gave no {what}"))
}
