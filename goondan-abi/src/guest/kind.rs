//! The three kinds of middleware, as hosts behind their contexts.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use goondan_core::linkage::{CoreRun, RemoteCore, RemoteResult};
use goondan_core::{Kind, Result, Step, ToolCall, Turn};

use super::run::MiddlewareRun;
use super::{missing, result};
use crate::table::{STEP, TOOL_CALL, TURN};

impl RemoteCore for MiddlewareRun {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<RemoteResult>> {
        let Some(next) = &mut self.next else { return Poll::Ready(Err(missing("rest of the run"))) };
        let output = ready!(Pin::new(next).poll(cx))?;
        Poll::Ready(result::from_handle(output))
    }

    fn end(&mut self) {
        self.next = None;
    }
}

/// A kind of middleware, on the side of the guest.
pub(super) trait GuestKind: Kind {
    /// The number of the kind in the tables.
    const NUMBER: u32;
    /// Returns the host for the context of one run.
    fn host(run: &mut MiddlewareRun) -> &mut Self::Host<'_>;
}

macro_rules! guest_kind {
    ($kind:ident, $host:ident, $number:expr) => {
        impl GuestKind for $kind {
            const NUMBER: u32 = $number;

            fn host(run: &mut MiddlewareRun) -> &mut (dyn goondan_core::host::$host + '_) {
                run
            }
        }

        impl goondan_core::host::$host for MiddlewareRun {
            guest_kind!(@members $kind);

            fn run_core(&mut self) -> CoreRun<'_, <$kind as Kind>::Output> {
                // The inner layers must see the changes of this layer, and this layer must see theirs.
                if let Err(error) = self.flush() {
                    return CoreRun::local(async { Err(error) });
                }
                self.next = Some(self.call.next());
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
