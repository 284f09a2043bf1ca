//! The three kinds of middleware, as hosts behind their contexts.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use goondan_core::host::{StepHost, ToolCallHost, TurnHost};
use goondan_core::linkage::{CoreRun, RemoteCore, RemoteResult};
use goondan_core::{Kind, Result, Step, StepResult, ToolCall, ToolCallResult, Turn, TurnResult, context_members};

use super::fields::read;
use super::run::MiddlewareRun;
use super::{catalogs, missing, result};
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

            fn host(run: &mut MiddlewareRun) -> &mut (dyn $host + '_) {
                run
            }
        }
    };
}

guest_kind!(Turn, TurnHost, TURN);
guest_kind!(Step, StepHost, STEP);
guest_kind!(ToolCall, ToolCallHost, TOOL_CALL);

impl MiddlewareRun {
    fn run_next<T>(&mut self) -> CoreRun<'_, T> {
        // The inner layers must see the changes of this layer, and this layer must see theirs.
        if let Err(error) = self.write_back() {
            return CoreRun::local(async { Err(error) });
        }
        self.next = Some(self.call.next());
        CoreRun::remote(self)
    }
}

impl TurnHost for MiddlewareRun {
    fn run_core(&mut self) -> CoreRun<'_, TurnResult> {
        self.run_next()
    }
}

/// Implements the host traits of the kinds that have fields.
macro_rules! implement {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        { $($mode:ident $name:ident: $type:ty = $json:literal $doc:tt $($name_mut:ident $doc_mut:tt)?;)* }
        directives $directives:tt
    )*) => {
        $(
            impl $host for MiddlewareRun {
                $(
                    implement! { @method $mode $copies $name $type, $json }
                    $(
                        fn $name_mut(&mut self) -> &mut $type {
                            let call = self.call;
                            self.of_kind_mut().$copies.$name.get_mut(|| implement!(@read call, $name $json))
                        }
                    )?
                )*

                fn run_core(&mut self) -> CoreRun<'_, $output> {
                    self.run_next()
                }
            }
        )*
    };
    // Most steps offer the same tools.
    (@read $call:expr, tool_catalog $json:literal) => {
        catalogs::find($call.tool_catalog_revision(), || read($call, $json))
    };
    (@read $call:expr, $name:ident $json:literal) => { read($call, $json) };
    (@method value $copies:ident $name:ident $type:ty, $json:literal) => {
        fn $name(&self) -> $type {
            self.of_kind().$copies.$name.get(|| implement!(@read self.call, $name $json)).clone()
        }
    };
    (@method text $copies:ident $name:ident $type:ty, $json:literal) => {
        fn $name(&self) -> &str {
            self.of_kind().$copies.$name.get(|| implement!(@read self.call, $name $json))
        }
    };
    (@method $mode:ident $copies:ident $name:ident $type:ty, $json:literal) => {
        fn $name(&self) -> &$type {
            self.of_kind().$copies.$name.get(|| implement!(@read self.call, $name $json))
        }
    };
}

context_members!(implement);
