//! The part of the contract that the runtime and `goondan-abi` use beyond the facade. No other crate should use this
//! module.

/// The limit of nesting.
pub mod depth {
    pub use crate::depth::{MAX_DEPTH, MAX_STORED, TooDeep, Unchecked, check, check_text, checked};
}

/// The border that catches panics of extensions.
pub mod panic {
    pub use crate::panic::{CatchPanics, catch, catch_panics, drop_guarded, message};
}

/// Masking of secrets in all that leaves the process.
pub mod secret {
    pub use crate::secret::{any, mask, mask_json, mask_members, mask_text};
}

// The traits behind contexts and handles, implemented by the runtime, and in a library on the tables of its host.
pub use crate::conversation::host::ConversationHost;
pub use crate::conversation::remote::{RemoteConversation, Snapshot};
pub use crate::event::TurnInfo;
pub use crate::pipeline::directive::{self, Apply, Directive};
pub use crate::pipeline::host::{AnswerHost, CallHost, MessageHost, RunHost, StepHost, ToolCallHost, TurnHost};
pub use crate::tool::ToolHost;

// The members of types that the runtime alone calls.
pub use crate::conversation::{ConversationExt, MessageDataExt, MessageExt, PartExt};
pub use crate::event::AgentEventExt;
pub use crate::model_call::ModelOptionsExt;
pub use crate::pipeline::{StepResultExt, ToolCallResultExt, TurnResultExt, VALUE};
pub use crate::tool::{ReplyLimit, ReplySize, ToolCatalogExt, ToolItemExt};

// The parts of a running conversation.
pub use crate::conversation::{
    AsOf, IdMap, IdSet, Mark, Projection, answer_content, message_tokens, text_of, tokens_of,
};
pub use crate::crossing::CoreRun;
pub use crate::error::WireError;
pub use crate::extension::skipped_guard;
pub use crate::pipeline::{
    AnyMiddleware, Chain, Layer, LayerTimeout, ModelCall, Repair, Reviewer, Transformer, in_order, mask_event,
};
