//! The traits behind contexts, which each linkage implements: the runtime on the state of its turn, and a library on
//! the C table of its host. Extensions do not see them.

use std::path::Path;

use serde_json::{Map, Value};

use super::directive::{self, Apply};
use crate::conversation::MessageEvent;
use crate::conversation::host::ConversationHost;
use crate::crossing::CoreRun;
use crate::decision::Decision;
use crate::error::{Error, Result};
use crate::event::TurnInfo;
use crate::name::ExtensionName;
use crate::peers::AgentsHost;
use crate::pipeline::{LayerInfo, Reviewer, StepResult, ToolCallResult, Transformer, TurnResult};
use crate::question::Question;
use crate::shown::Shown;
use crate::tool::ToolItem;

/// Behind every context.
pub trait RunHost: Send + Sync {
    /// Returns the values that stay the same during the turn.
    fn scope(&self) -> &TurnInfo;
    /// Returns the map that the middlewares of a run share.
    // CTX-09
    fn metadata(&self) -> &Map<String, Value>;
    /// Returns the same map, to change it.
    fn metadata_mut(&mut self) -> &mut Map<String, Value>;
    /// Fails the step before the model is called, or the tool call before the handler runs, because something that a
    /// middleware brought was refused.
    fn refuse(&mut self, error: Error);
    /// Reports that a layer failed with `error` before or after its `next`, and that the run goes on without it. Does
    /// nothing in a library, because chains run in the host.
    fn report_skipped(&self, _layer: &LayerInfo, _after_next: bool, _error: &Error) {}
    /// Returns whether the run may go on without a layer of an extension that has failed. It does not once the
    /// extension has asked about the call. Not asked in a library, because chains run in the host.
    // ASK-01
    fn may_skip(&self, _by: &ExtensionName) -> bool {
        true
    }
    /// Notes that the layer of an extension is about to change a field. Does nothing in a library, because the host
    /// notes it when the changed field arrives.
    fn changing(&mut self, _field: &'static str, _by: &ExtensionName) {}
}

/// Behind the contexts of turns and steps.
pub trait MessageHost: RunHost {
    /// Returns the conversation.
    fn conversation(&self) -> &dyn ConversationHost;
    /// Returns the access to other agents.
    // AGENTS-01
    fn agents(&self) -> &dyn AgentsHost;
    /// Returns whether the layers run before their core a second time, because the turn was interrupted after they
    /// had reached it: their events are in the conversation already.
    // RESUME-01
    fn is_repeated(&self) -> bool;
    /// Applies a message event to the conversation. An error, of the event or of the store, fails the step before the
    /// model is called. `by` is the extension whose layer runs.
    // D-24
    fn emit(&mut self, event: MessageEvent, by: Option<&ExtensionName>);
}

/// Behind a [`StepContext`](super::StepContext), besides its members.
pub trait AnswerHost: MessageHost {
    /// Lets the reviewer of `layer` judge the answer of the step.
    // REVIEW-01
    fn review(&mut self, reviewer: Reviewer, layer: &LayerInfo);
    /// Lets the transformer of `layer` transform the pieces of the answer.
    // REVIEW-01
    fn transform(&mut self, transformer: Transformer, layer: &LayerInfo);
}

/// Behind a [`TurnContext`](super::TurnContext).
pub trait TurnHost: MessageHost {
    /// Runs the core of the turn: the step loop.
    fn run_core(&mut self) -> CoreRun<'_, TurnResult>;
    /// Updates the answer of a result that an inner layer has returned, if its message was changed or removed. Does
    /// nothing in a library, because the host updates the values that its layers receive and return.
    fn follow(&mut self, _result: &mut TurnResult) {}
}

/// Behind a [`ToolCallContext`](super::ToolCallContext), besides its members.
pub trait CallHost: RunHost {
    /// Returns the tool that is called, if the step offers it.
    fn tool(&self) -> Option<&ToolItem>;
    /// Returns the working directory of the instance, which is created on first use.
    ///
    /// # Errors
    /// When it cannot be created.
    fn workdir(&self) -> Result<&Path>;
    /// Returns how many bytes the output files of the conversation may have together.
    fn max_output(&self) -> u64;
    /// Lets the call wait for a decision about the question of `layer`. A library does not name the layer, because its
    /// host knows it.
    // ASK-01
    fn ask(&mut self, question: Question, layer: Option<&LayerInfo>);
    /// Returns the decisions about the questions of `layer` about this call.
    ///
    /// # Errors
    /// When a host of an older version does not know.
    fn decisions(&self, layer: Option<&LayerInfo>) -> Result<Vec<Decision>>;
    /// Returns whether a layer has asked about this call, now or before it waited.
    fn is_asked(&self) -> bool;
    /// Adds something to the preview of the call, if a layer has asked about it.
    fn show(&mut self, shown: Shown);
}

/// Declares the host trait of each kind that has members.
macro_rules! declare {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        {
            $($mode:ident $name:ident: $type:ty = $json:literal { $(#[doc = $doc:literal])* }
                $($name_mut:ident { $(#[doc = $doc_mut:literal])* })?;)*
        } directives { $($method:ident $arg:tt as $directive:ident = $directive_name:literal $about:tt;)* }
    )*) => {
        $(
            #[doc = concat!("Behind a [`", stringify!($context), "`](crate::", stringify!($context), ").")]
            pub trait $host: $base $(+ Apply<directive::$directive>)* {
                $(
                    declare! { @field $mode $name [$($doc)*] $type }
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
    (@field value $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> $type;
    };
    (@field text $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> &str;
    };
    (@field $mode:ident $name:ident [$($doc:literal)*] $type:ty) => {
        $(#[doc = $doc])*
        fn $name(&self) -> &$type;
    };
}

crate::context_members!(declare);
