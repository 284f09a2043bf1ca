//! Owns one run of a middleware inside a library: the host traits in front of the functions `run_…` of the host.

use std::ffi::c_void;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use goondan_core::host::{ConversationHost, RemoteConversation, Snapshot};
use goondan_core::linkage::{CoreRun, RemoteCore, RemoteHost, RemoteMessage, RemoteResult};
use goondan_core::{Kind, MessageEvent, MessageRef, Result, Role, Step, ToolCall, Turn};

use super::extension::broken;
use super::host;
pub(super) use super::run_fields::Run;
use crate::bytes::{Owned, ask};
use crate::future::{Imported, Nothing};
use crate::table::{self, BASE, Buffer, HANDLE, Message, NOW, STEP, TOOL_CALL, TURN, Text};

/// A call of the host: what the functions `run_…` want. It is used for as long as the future of the call lives.
#[derive(Clone, Copy)]
pub(super) struct Link(*const c_void);

// SAFETY: The contract lets the functions of the host be called with it from any thread.
unsafe impl Send for Link {}
// SAFETY: As above, also at the same time.
unsafe impl Sync for Link {}

impl Link {
    /// # Safety
    /// `call` must live for as long as this, its copies, and what is borrowed through them.
    pub(super) unsafe fn new(call: *const c_void) -> Self {
        Self(call)
    }

    pub(super) fn raw(self) -> *const c_void {
        self.0
    }

    /// A field of the run.
    pub(super) fn read(self, field: &str) -> Result<Owned> {
        // SAFETY: The call lives; the name is borrowed for this function.
        let read = ask(|output| unsafe { (host().run_read)(self.0, Text::new(field.as_bytes()), output) });
        read?.ok_or_else(|| broken(field))
    }

    pub(super) fn write(self, field: &str, json: &[u8]) -> Result<()> {
        let (field, json) = (Text::new(field.as_bytes()), Text::new(json));
        // SAFETY: The call lives; the texts are borrowed for this function.
        ask(|error| unsafe { (host().run_write)(self.0, field, json, error) }).map(|_| ())
    }

    pub(super) fn emit(self, event: &MessageEvent) -> Result<()> {
        let event = serde_json::to_vec(event)?;
        // SAFETY: The call lives; the text is borrowed for this function.
        ask(|error| unsafe { (host().run_emit)(self.0, Text::new(&event), error) }).map(|_| ())
    }

    /// Starts the rest of the onion.
    fn next(self) -> Imported<Nothing> {
        // SAFETY: The call lives until the future of this run is dropped, and what this gives before.
        let next = unsafe { (host().run_next)(self.0) };
        // SAFETY: The future is new and ours.
        unsafe { Imported::new(next, Nothing) }
    }

    fn message(self, snapshot: Snapshot, cursor: usize, find: Find) -> Option<Message> {
        let mut message = Message { cursor: 0, next: 0, id: Text::EMPTY, role: 0, plain: 0, text: Text::EMPTY };
        // SAFETY: The call lives; the message is a place for the output.
        let status = unsafe { find(self.0, number(snapshot), cursor, &raw mut message) };
        (status == table::OK).then_some(message)
    }
}

type Find = unsafe extern "C" fn(*const c_void, u32, usize, *mut Message) -> i32;

fn number(snapshot: Snapshot) -> u32 {
    match snapshot {
        Snapshot::Base => BASE,
        Snapshot::Next => NOW,
    }
}

impl Run {
    fn found(&self, snapshot: Snapshot, message: Option<Message>) -> Option<(MessageRef<'_>, Message)> {
        let message = message?;
        let role = match message.role {
            0 => Role::System,
            1 => Role::User,
            2 => Role::Assistant,
            _ => Role::Tool,
        };
        // SAFETY: The id lives until the conversation changes, for which `self` would have to be borrowed mutably, or the
        // call ends, which `self` does not outlive.
        let id = unsafe { message.id.lent() };
        // SAFETY: As above.
        let text = (message.plain == 1).then(|| unsafe { message.text.lent() });
        let found = RemoteMessage { host: self, snapshot, cursor: message.cursor, id, role, text };
        Some((MessageRef::from(found), message))
    }
}

impl ConversationHost for Run {
    fn message_count(&self, snapshot: Snapshot) -> usize {
        // SAFETY: The call lives.
        unsafe { (host().run_message_count)(self.link.0, number(snapshot)) }
    }

    fn message_from(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let message = self.link.message(snapshot, cursor, host().run_message_from);
        self.found(snapshot, message).map(|(found, message)| (found, message.next))
    }

    fn message_before(&self, snapshot: Snapshot, cursor: usize) -> Option<(MessageRef<'_>, usize)> {
        let message = self.link.message(snapshot, cursor, host().run_message_before);
        self.found(snapshot, message).map(|(found, message)| (found, message.cursor))
    }

    fn message_events(&self) -> &[MessageEvent] {
        self.events()
    }
}

impl RemoteConversation for Run {
    fn text(&self, snapshot: Snapshot, cursor: usize) -> String {
        RemoteConversation::read(self, snapshot, cursor, "text")
            .map_or_else(|_| String::new(), |text| String::from_utf8_lossy(&text).into_owned())
    }

    fn read(&self, snapshot: Snapshot, cursor: usize, field: &'static str) -> Result<Vec<u8>> {
        let name = Text::new(field.as_bytes());
        let number = number(snapshot);
        // SAFETY: The call lives; the name is borrowed for this function.
        let read = ask(|output| unsafe { (host().run_message_read)(self.link.0, number, cursor, name, output) });
        Ok(read?.ok_or_else(|| broken("message"))?.bytes().to_vec())
    }
}

impl RemoteCore for Run {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<RemoteResult>> {
        let Some(next) = &mut self.next else { return Poll::Ready(Err(broken("rest of the run"))) };
        let result = ready!(Pin::new(next).poll(cx))?;
        if !result.is_handle() {
            return Poll::Ready(Err(broken("result")));
        }
        let Buffer { data, len: kind, .. } = result.into_raw();
        Poll::Ready(side(kind).map(|side| RemoteResult::new(side, data.expose_provenance())))
    }

    fn end(&mut self) {
        self.next = None;
    }
}

/// Results of one kind, which the host keeps; each is known by the address in its handle.
struct InHost(u32);

static TURNS: InHost = InHost(TURN);
static STEPS: InHost = InHost(STEP);
static TOOL_CALLS: InHost = InHost(TOOL_CALL);

/// Where the results of a kind lie.
fn side(kind: usize) -> Result<&'static InHost> {
    [&TURNS, &STEPS, &TOOL_CALLS]
        .into_iter()
        .find(|side| side.0 as usize == kind)
        .ok_or_else(|| broken("kind of result"))
}

impl RemoteHost for InHost {
    fn read(&self, result: usize, name: &'static str) -> Result<Vec<u8>> {
        let (name, result) = (Text::new(name.as_bytes()), std::ptr::with_exposed_provenance(result));
        // SAFETY: The handle is ours until it is given back; the name is borrowed for this function.
        let read = ask(|output| unsafe { (host().result_read)(self.0, result, name, output) });
        Ok(read?.ok_or_else(|| broken("field of a result"))?.bytes().to_vec())
    }

    fn write(&self, result: usize, name: &'static str, json: &[u8]) -> Result<()> {
        let (name, json) = (Text::new(name.as_bytes()), Text::new(json));
        let result = std::ptr::with_exposed_provenance_mut(result);
        // SAFETY: The handle is ours, and its one owner calls this; the texts are borrowed for this function.
        ask(|error| unsafe { (host().result_write)(self.0, result, name, json, error) }).map(|_| ())
    }

    fn release(&self, result: usize) {
        // SAFETY: The handle is ours, and not used afterwards.
        unsafe { (host().result_release)(self.0, std::ptr::with_exposed_provenance_mut(result)) };
    }
}

/// A handle of the host on its way back.
pub(super) fn handle_buffer<K: GuestKind>(handle: usize) -> Buffer {
    let data = std::ptr::with_exposed_provenance_mut(handle);
    Buffer { data, len: K::NUMBER as usize, extra: HANDLE, free: None }
}

/// A kind of middleware, as the host behind its context.
pub(super) trait GuestKind: Kind {
    /// The number of the kind in the tables.
    const NUMBER: u32;
    fn host(run: &mut Run) -> &mut Self::Host<'_>;
}

macro_rules! guest_kind {
    ($kind:ident, $host:ident, $number:expr) => {
        impl GuestKind for $kind {
            const NUMBER: u32 = $number;

            fn host(run: &mut Run) -> &mut (dyn goondan_core::host::$host + '_) {
                run
            }
        }

        impl goondan_core::host::$host for Run {
            guest_kind!(@members $kind);

            fn run_core(&mut self) -> CoreRun<'_, <$kind as Kind>::Output> {
                // The inner layers see what this one changed, and this one sees what they changed.
                if let Err(error) = self.hand_over() {
                    return CoreRun::local(async { Err(error) });
                }
                self.next = Some(self.link.next());
                CoreRun::remote(self)
            }
        }
    };
    (@members Turn) => {};
    (@members Step) => {
        fn step_index(&self) -> u32 {
            self.index()
        }

        fn tool_catalog(&self) -> &goondan_core::ToolCatalog {
            self.catalog()
        }

        fn tool_catalog_mut(&mut self) -> &mut goondan_core::ToolCatalog {
            self.catalog_mut()
        }
    };
    (@members ToolCall) => {
        fn step_index(&self) -> u32 {
            self.index()
        }

        fn call_id(&self) -> &goondan_core::ToolCallId {
            self.tool_call()
        }

        fn tool_name(&self) -> &str {
            self.tool()
        }

        fn args(&self) -> &serde_json::Map<String, serde_json::Value> {
            self.arguments()
        }

        fn args_mut(&mut self) -> &mut serde_json::Map<String, serde_json::Value> {
            self.arguments_mut()
        }
    };
}

guest_kind!(Turn, TurnHost, TURN);
guest_kind!(Step, StepHost, STEP);
guest_kind!(ToolCall, ToolCallHost, TOOL_CALL);
