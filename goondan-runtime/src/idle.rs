//! A run without a runtime, for tests and benchmarks of chains.

use std::path::Path;

use goondan_core::host::{
    AnswerHost, Apply, CallHost, ConversationHost, CoreRun, MessageHost, Reviewer, RunHost, StepHost, ToolCallHost,
    Transformer, TurnInfo,
};
use goondan_core::{
    AgentName, AgentRequest, AgentResponse, AgentsHost, BoxFuture, Conversation, Decision, Error, ExtensionName,
    LayerInfo, MessageEvent, Question, RequestTicket, Result, Shown, StepResult, ToolCallResult, ToolItem,
    context_members,
};
use serde_json::{Map, Value};

/// Behind the contexts of a step and of a tool call that have no runtime. Fields are read and changed here; directives
/// and message events are ignored. A new member needs no change of those who use it.
#[derive(Debug)]
pub struct IdleRun<F> {
    /// The data that stays the same during the turn.
    pub scope: TurnInfo,
    /// The conversation.
    pub conversation: Conversation,
    /// The map that the middlewares share.
    pub metadata: Map<String, Value>,
    /// The fields of a step.
    pub step: StepFields,
    /// The fields of a tool call.
    pub call: CallFields,
    /// Returns the result of the core.
    pub core: F,
}

impl<F> IdleRun<F> {
    /// A run with empty fields.
    pub fn new(scope: TurnInfo, core: F) -> Self {
        let (conversation, metadata) = (Conversation::default(), Map::new());
        Self { scope, conversation, metadata, step: StepFields::default(), call: CallFields::default(), core }
    }
}

impl<F: Send + Sync> RunHost for IdleRun<F> {
    fn scope(&self) -> &TurnInfo {
        &self.scope
    }

    fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        &mut self.metadata
    }

    fn refuse(&mut self, _: Error) {}
}

impl<F: Send + Sync> MessageHost for IdleRun<F> {
    fn conversation(&self) -> &dyn ConversationHost {
        &self.conversation
    }

    fn agents(&self) -> &dyn AgentsHost {
        &NoAgents
    }

    fn is_repeated(&self) -> bool {
        false
    }

    fn emit(&mut self, _: MessageEvent, _: Option<&ExtensionName>) {}
}

impl<F: Send + Sync> AnswerHost for IdleRun<F> {
    fn review(&mut self, _: Reviewer, _: &LayerInfo) {}

    fn transform(&mut self, _: Transformer, _: &LayerInfo) {}
}

impl<F: Send + Sync> CallHost for IdleRun<F> {
    fn tool(&self) -> Option<&ToolItem> {
        None
    }

    fn workdir(&self) -> Result<&Path> {
        Err(missing("working directory"))
    }

    fn max_output(&self) -> u64 {
        0
    }

    fn ask(&mut self, _: Question, _: Option<&LayerInfo>) {}

    fn decisions(&self, _: Option<&LayerInfo>) -> Result<Vec<Decision>> {
        Ok(Vec::new())
    }

    fn is_asked(&self) -> bool {
        false
    }

    fn show(&mut self, _: Shown) {}
}

impl<F, D> Apply<D> for IdleRun<F> {
    fn apply(&mut self, _: D, _: &ExtensionName) {}
}

/// Declares the fields, and implements the host traits on them.
macro_rules! declare {
    ($(
        $kind:ident($context:ident) host $host:ident: $base:ident, core $output:ident, copies $copies:ident: $copy:ident
        { $($mode:ident $name:ident: $type:ty = $json:literal $doc:tt $($name_mut:ident $doc_mut:tt)?;)* }
        directives $directives:tt
    )*) => {
        $(
            #[doc = concat!("Fields of a [`", stringify!($context), "`](goondan_core::", stringify!($context), ").")]
            #[derive(Clone, Debug)]
            pub struct $copy {
                $(#[doc = "As in the context."] pub $name: $type,)*
            }

            impl Default for $copy {
                fn default() -> Self {
                    Self { $($name: declare!(@default $name),)* }
                }
            }

            impl<F: Fn(&$copy) -> Result<$output> + Send + Sync> $host for IdleRun<F> {
                $(
                    declare! { @field $mode $copies $name $type }
                    $(
                        fn $name_mut(&mut self) -> &mut $type {
                            &mut self.$copies.$name
                        }
                    )?
                )*

                fn run_core(&mut self) -> CoreRun<'_, $output> {
                    CoreRun::local(async { (self.core)(&self.$copies) })
                }
            }
        )*
    };
    (@default call_id) => { "call".into() };
    (@default $name:ident) => { Default::default() };
    (@field value $copies:ident $name:ident $type:ty) => {
        fn $name(&self) -> $type {
            self.$copies.$name.clone()
        }
    };
    (@field text $copies:ident $name:ident $type:ty) => {
        fn $name(&self) -> &str {
            &self.$copies.$name
        }
    };
    (@field $mode:ident $copies:ident $name:ident $type:ty) => {
        fn $name(&self) -> &$type {
            &self.$copies.$name
        }
    };
}

context_members!(declare);

fn missing(what: &str) -> Error {
    Error::msg(format!("a run without a runtime has no {what}"))
}

/// Reaches no agent.
struct NoAgents;

impl AgentsHost for NoAgents {
    fn request<'a>(&'a self, _: AgentRequest, _: Option<&'a ExtensionName>) -> BoxFuture<'a, Result<AgentResponse>> {
        Box::pin(async { Err(missing("agents")) })
    }

    fn request_later(&self, _: AgentRequest) -> Result<RequestTicket> {
        Err(missing("agents"))
    }

    fn send(&self, _: AgentRequest) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async { Err(missing("agents")) })
    }

    fn list(&self) -> Vec<AgentName> {
        Vec::new()
    }
}
