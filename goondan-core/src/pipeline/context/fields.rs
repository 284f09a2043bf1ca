//! The fields of contexts, each declared once.
//!
//! From this declaration come the accessors of the contexts, the host traits behind them, and in `goondan-abi` both
//! sides of the border: the host's reads and writes, and the copies in a library. To add a field, declare it here and
//! return its value in the runtime (`agent/turn`).

use serde_json::{Map, Value};

use super::host::{AnswerHost, CallHost};
use super::{StepContext, ToolCallContext};
use crate::crossing::CoreRun;
use crate::model_call::{ModelInfo, ModelOptions};
use crate::name::{ModelName, ToolCallId};
use crate::pipeline::{StepResult, ToolCallResult};
use crate::tool::ToolCatalog;

/// Calls the macro `$then` with the fields of contexts, by kind. A field has a mode, an accessor, a type, its name in
/// the binary contract, and the documentation of the accessor. The modes are:
///
/// - `value`: returned by value
/// - `borrow`: returned by reference
/// - `text`: a `String`, returned as `&str`
/// - `change`: returned by reference, and from a second accessor by mutable reference
#[doc(hidden)]
#[macro_export]
macro_rules! context_fields {
    ($then:ident) => {
        $then! {
            Step(StepContext) {
                value step_index: u32 = "stepIndex" {
                    /// Returns the index of the step in its turn, from 0.
                    // CTX-11
                };
                change tool_catalog: ToolCatalog = "toolCatalog" {
                    /// Returns the tools that this step offers to the model.
                } tool_catalog_mut {
                    /// Returns the same catalog, to change it before `next`. The next step starts with all tools again.
                    // CTX-05, CTX-06
                };
                change model_name: Option<ModelName> = "model" {
                    /// Returns the name of the model that a middleware chose for this step; `None` is the agent's own.
                    // API-11
                } model_name_mut {
                    /// Returns the same name, to change it before `next`: see [`StepContext::set_model`]. The next step
                    /// calls the agent's own model again.
                };
                change model_options: ModelOptions = "modelOptions" {
                    /// Returns the options that middlewares have set for the model call of this step.
                    // API-11
                } model_options_mut {
                    /// Returns the same options, to change them before `next`. They go before those that the model was
                    /// made with, and the next step starts without any.
                    // API-11
                };
                value model_info: ModelInfo = "modelInfo" {
                    /// Returns what is known of the model that this step calls: its context window, its prices.
                };
                value token_estimate: u64 = "tokenEstimate" {
                    /// Returns how many tokens the request of this step has, by estimate: what the provider counted
                    /// last, and a token for every four bytes since then. An image counts as 1,500.
                };
            } host StepHost: AnswerHost, core StepResult, copies step: StepFields;
            ToolCall(ToolCallContext) {
                value step_index: u32 = "stepIndex" {
                    /// Returns the index of the step that the call belongs to, from 0.
                };
                borrow call_id: ToolCallId = "callId" {
                    /// Returns the id of the call.
                    // CTX-13
                };
                text tool_name: String = "toolName" {
                    /// Returns the tool's full name as the model wrote it. It may be unknown: such a call fails in the
                    /// core, inside of all middlewares.
                };
                change args: Map<String, Value> = "args" {
                    /// Returns the arguments.
                } args_mut {
                    /// Returns the arguments, to change them before `next`: the handler is called with these.
                    // CTX-08
                };
            } host ToolCallHost: CallHost, core ToolCallResult, copies tool_call: ToolCallFields;
        }
    };
}

/// Declares the host traits, and the accessors of the contexts, which call them.
macro_rules! declare {
    ($(
        $kind:ident($context:ident) {
            $($mode:ident $name:ident: $type:ty = $json:literal { $(#[doc = $doc:literal])* }
                $($name_mut:ident { $(#[doc = $doc_mut:literal])* })?;)*
        } host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $fields:ident;
    )*) => {
        $(
            impl $context<'_> {
                $(
                    declare! { @accessor $mode $name [$($doc)*] $type }
                    $(
                        $(#[doc = $doc_mut])*
                        pub fn $name_mut(&mut self) -> &mut $type {
                            self.host.$name_mut()
                        }
                    )?
                )*
            }

            #[doc = concat!("Behind a [`", stringify!($context), "`].")]
            pub trait $host: $base {
                $(
                    declare! { @method $mode $name [$($doc)*] $type }
                    $(
                        $(#[doc = $doc_mut])*
                        fn $name_mut(&mut self) -> &mut $type;
                    )?
                )*
                /// Runs the core of the chain.
                fn run_core(&mut self) -> CoreRun<'_, $output>;
            }
        )*
    };
    (@accessor value $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> $type {
            self.host.$name()
        }
    };
    (@accessor text $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> &str {
            self.host.$name()
        }
    };
    (@accessor $mode:ident $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        pub fn $name(&self) -> &$type {
            self.host.$name()
        }
    };
    (@method value $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> $type;
    };
    (@method text $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> &str;
    };
    (@method $mode:ident $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> &$type;
    };
}

context_fields!(declare);
