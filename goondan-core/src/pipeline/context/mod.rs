//! Owns the contexts: what a middleware of each kind sees and may do.
//!
//! A context borrows a host for the length of one run. What it offers is the same in both linkages.

pub mod host;
mod step;
mod tool_call;
mod turn;

pub use step::{MODEL_KEY, MODEL_OPTIONS_KEY, StepContext};
pub use tool_call::ToolCallContext;
pub use turn::TurnContext;

/// Writes the members that all three contexts have (CTX-01..03, LEGACY-CTX-01).
macro_rules! shared_members {
    () => {
        /// What stays the same during the turn, for a linkage.
        #[doc(hidden)]
        pub fn scope(&self) -> &crate::event::TurnInfo {
            self.host.scope()
        }

        /// The agent that runs.
        pub fn agent_name(&self) -> &AgentName {
            &self.host.scope().agent
        }

        /// The instance of the agent: which of its conversations this is.
        pub fn instance_key(&self) -> &InstanceKey {
            &self.host.scope().instance
        }

        /// The turn that runs.
        pub fn turn_id(&self) -> &TurnId {
            &self.host.scope().turn
        }

        /// What joins everything that one input caused, across agents.
        pub fn trace_id(&self) -> &TraceId {
            &self.host.scope().trace
        }

        /// The extension whose middleware is running.
        pub fn extension_name(&self) -> Option<&ExtensionName> {
            self.frame.extension()
        }

        /// The map that the middlewares of this run share: what an outer one writes before `next` an inner one reads, and
        /// the other way round after it (CTX-09). The maps of turn and step are one and live for the turn; every tool call
        /// has its own (D-15).
        pub fn metadata(&self) -> &Map<String, Value> {
            self.host.metadata()
        }

        /// The shared map, to change it.
        pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
            self.host.metadata_mut()
        }
    };
}

/// Writes the members that the contexts of turns and steps have (CONV-15).
macro_rules! message_members {
    () => {
        /// The conversation: its base, the events of this turn, and their sum.
        pub fn conversation(&self) -> ConversationView<'_> {
            ConversationView::new(self.host.conversation())
        }

        /// The way to other agents (AGENTS-03).
        pub fn agents(&self) -> AgentsApi<'_> {
            AgentsApi::new(self.host.agents())
        }

        /// Changes the conversation, at once (CONV-16). An appended message gets this extension as its source.
        ///
        /// An event that cannot be taken in, because its id exists or the disk is full, fails the step before the model
        /// is called (D-24).
        pub fn emit(&mut self, mut event: MessageEvent) {
            if let (MessageEvent::Append { message }, Some(extension)) = (&mut event, self.frame.extension()) {
                let source = Source::Extension { extension_name: extension.clone() };
                Arc::make_mut(message).set_source(source);
            }
            self.host.emit(event);
        }
    };
}

pub(crate) use {message_members, shared_members};
