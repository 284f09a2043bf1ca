//! Owns what the functions of an extension may take and give.
//!
//! Parameters are found by type, not by name: each type that a function may take implements the trait of that kind of
//! function, for the slots that still hold it. Taking a parameter empties its slot, so that a second parameter of the
//! same type, or one of a foreign type, is a compile error at that parameter; any order, alias and rename compiles.
//!
//! Expansions take by the methods of the slots, and the emptied slots are a parameter of the traits, not an associated
//! type: in that form the compiler knows the slots when it looks for the implementation, and reports a fault once.

use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::ExtensionApi;
use crate::context::{StepContext, ToolCallContext, TurnContext};
use crate::error::{Error, ErrorCode, Result};
use crate::pipeline::{Next, Step, ToolCall, Turn};

/// An empty slot: the parameter was taken.
#[derive(Clone, Copy, Debug)]
pub struct Taken;

/// What a middleware can be given: its context and `next`.
#[derive(Debug)]
pub struct MiddlewareSlots<C, N> {
    context: C,
    next: N,
}

impl<C, N> MiddlewareSlots<C, N> {
    /// Both slots full.
    pub fn new(context: C, next: N) -> Self {
        Self { context, next }
    }
}

/// Writes the parameter trait of one kind of middleware.
macro_rules! middleware_param {
    ($(#[$doc:meta])* $param:ident, $take:ident, $kind:ident, $context:ident, $message:literal, $legal:literal) => {
        $(#[$doc])*
        #[diagnostic::on_unimplemented(message = $message, label = "wrong type, or taken twice", note = $legal)]
        pub trait $param<Slots, Rest>: Sized {
            /// Takes the parameter, and gives the slots without it.
            fn take(slots: Slots) -> (Self, Rest);
        }

        #[diagnostic::do_not_recommend]
        impl<'a, 'h, N> $param<MiddlewareSlots<&'a mut $context<'h>, N>, MiddlewareSlots<Taken, N>>
            for &'a mut $context<'h>
        {
            fn take(slots: MiddlewareSlots<Self, N>) -> (Self, MiddlewareSlots<Taken, N>) {
                (slots.context, MiddlewareSlots { context: Taken, next: slots.next })
            }
        }

        #[diagnostic::do_not_recommend]
        impl<'a, C> $param<MiddlewareSlots<C, Next<'a, $kind>>, MiddlewareSlots<C, Taken>> for Next<'a, $kind> {
            fn take(slots: MiddlewareSlots<C, Self>) -> (Self, MiddlewareSlots<C, Taken>) {
                (slots.next, MiddlewareSlots { context: slots.context, next: Taken })
            }
        }

        impl<C, N> MiddlewareSlots<C, N> {
            /// Takes a parameter of a middleware of this kind.
            #[doc(hidden)]
            pub fn $take<P: $param<Self, Rest>, Rest>(self) -> (P, Rest) {
                P::take(self)
            }
        }
    };
}

middleware_param! {
    /// What a turn middleware may take, each at most once: `&mut TurnContext<'_>` and `Next<'_, Turn>`.
    TurnParam, take_in_turn, Turn, TurnContext,
    "`{Self}` is not something that this turn middleware can take",
    "write `async fn name(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult>`"
}
middleware_param! {
    /// What a step middleware may take, each at most once: `&mut StepContext<'_>` and `Next<'_, Step>`.
    StepParam, take_in_step, Step, StepContext,
    "`{Self}` is not something that this step middleware can take",
    "write `async fn name(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult>`"
}
middleware_param! {
    /// What a tool-call middleware may take, each at most once: `&mut ToolCallContext<'_>` and `Next<'_, ToolCall>`.
    ToolCallParam, take_in_tool_call, ToolCall, ToolCallContext,
    "`{Self}` is not something that this tool-call middleware can take",
    "write `async fn name(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult>`"
}

/// Holds for the slots of a middleware that takes `next`: without it, it could not run the rest of the chain (NEXT-01).
#[diagnostic::on_unimplemented(
    message = "this middleware does not take `next`",
    label = "add a parameter `next: Next<'_, Turn>`, `Next<'_, Step>` or `Next<'_, ToolCall>`, as the kind says",
    note = "a middleware runs the rest of the chain exactly once, by `next.run(ctx).await`"
)]
pub trait TakesNext {}

impl<C> TakesNext for MiddlewareSlots<C, Taken> {}

/// Asserts that a middleware took `next`.
#[doc(hidden)]
pub fn all_taken<Slots: TakesNext>(_slots: &Slots) {}

/// What a handler returns: a `Result` with the output of its kind, and any error that `?` turns into a goondan error.
#[diagnostic::on_unimplemented(
    message = "this function returns `{Self}`, not `Result<{T}>`",
    label = "must return `Result<{T}>`",
    note = "any error type that converts into `goondan::Error` will do"
)]
pub trait Outcome<T> {
    /// The result with its error converted.
    ///
    /// # Errors
    /// The error of the handler.
    fn into_result(self) -> Result<T>;
}

impl<T, E: Into<Error>> Outcome<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}

/// What the runtime gives to `#[init]`.
#[derive(Debug)]
pub struct Given {
    api: ExtensionApi,
    config: Value,
}

impl Given {
    /// A handle, and the config as it stands in the bundle.
    pub fn new(api: ExtensionApi, config: Value) -> Self {
        Self { api, config }
    }
}

/// The slot of a config that waits to be read as the type that `#[init]` takes.
#[derive(Clone, Copy, Debug)]
pub struct RawConfig;

/// What `#[init]` can be given, as types: the handle and the config. The values come later, because the schema of the
/// config is asked for without them.
#[derive(Debug)]
pub struct InitSlots<A, C>(PhantomData<fn() -> (A, C)>);

impl InitSlots<ExtensionApi, RawConfig> {
    /// Both slots full.
    pub fn all() -> Self {
        Self(PhantomData)
    }
}

impl<A, C> InitSlots<A, C> {
    /// Takes a parameter of `#[init]`.
    #[doc(hidden)]
    pub fn take<P: InitParam<Self, InitSlots<A2, C2>>, A2, C2>(self) -> (Found<P>, InitSlots<A2, C2>) {
        (Found { read: P::read, schema: P::config_schema }, InitSlots(PhantomData))
    }
}

/// A parameter of `#[init]` that was found by its type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Found<P> {
    /// Reads the value.
    pub read: fn(&mut Given) -> Result<P>,
    /// The JSON Schema of the config, if this parameter is it.
    pub schema: fn() -> Option<Value>,
}

/// What `#[init]` may take, each at most once: the [`ExtensionApi`], and one config that derives `Deserialize` and
/// `JsonSchema`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not something that `#[init]` can take",
    label = "not an `ExtensionApi`, and not a config, or taken twice",
    note = "a config derives `serde::Deserialize` and `schemars::JsonSchema`",
    note = "write `async fn new(api: ExtensionApi, config: Config) -> Result<Self>`"
)]
pub trait InitParam<Slots, Rest>: Sized {
    /// Makes the parameter from what the runtime gives.
    ///
    /// # Errors
    /// `E_EXT_CONFIG` when the config cannot be read as the type.
    fn read(given: &mut Given) -> Result<Self>;
    /// The JSON Schema of the config, if this parameter is it.
    fn config_schema() -> Option<Value> {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<C> InitParam<InitSlots<ExtensionApi, C>, InitSlots<Taken, C>> for ExtensionApi {
    fn read(given: &mut Given) -> Result<Self> {
        Ok(given.api.clone())
    }
}

#[diagnostic::do_not_recommend]
impl<T: DeserializeOwned + JsonSchema, A> InitParam<InitSlots<A, RawConfig>, InitSlots<A, Taken>> for T {
    fn read(given: &mut Given) -> Result<Self> {
        serde_json::from_value(given.config.take())
            .map_err(|error| Error::new(ErrorCode::EXT_CONFIG, format!("the config cannot be read: {error}")))
    }

    fn config_schema() -> Option<Value> {
        Some(schemars::schema_for!(T).to_value())
    }
}

/// The schema of an extension without a config: an object without members.
pub fn no_config() -> Value {
    serde_json::json!({ "type": "object", "additionalProperties": false })
}

/// What `#[init]` returns: the extension, or a `Result` with it.
#[diagnostic::on_unimplemented(
    message = "`#[init]` returns `{Self}`, not the extension",
    label = "must return `Self` or `Result<Self>`"
)]
pub trait Made<T> {
    /// The result with its error converted.
    ///
    /// # Errors
    /// The error of the initializer.
    fn into_result(self) -> Result<T>;
}

impl<T> Made<T> for T {
    fn into_result(self) -> Result<T> {
        Ok(self)
    }
}

impl<T, E: Into<Error>> Made<T> for Result<T, E> {
    fn into_result(self) -> Result<T> {
        self.map_err(Into::into)
    }
}
