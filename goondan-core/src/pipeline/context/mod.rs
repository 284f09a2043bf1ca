//! The contexts: the values that a middleware of each kind can read and change.
//!
//! A context borrows its host during one run of a chain. Its members are the same in both linkages; those that belong
//! to one kind are declared in `members`.

mod accessors;
pub mod directive;
pub(crate) mod host;
mod members;
mod step;
mod tool_call;
mod turn;

pub use step::StepContext;
pub use tool_call::ToolCallContext;
pub use turn::TurnContext;

/// Generates the members that all three contexts have.
// CTX-01, CTX-02, CTX-03, LEGACY-CTX-01
macro_rules! shared_members {
    () => {
        /// Returns the values that stay the same during the turn, for a linkage.
        #[doc(hidden)]
        pub fn scope(&self) -> &crate::event::TurnInfo {
            self.host.scope()
        }

        /// Returns the name of the agent.
        pub fn agent_name(&self) -> &AgentName {
            &self.host.scope().agent
        }

        /// Returns the key of the instance: which conversation of the agent this is.
        pub fn instance_key(&self) -> &InstanceKey {
            &self.host.scope().instance
        }

        /// Returns the id of the turn.
        pub fn turn_id(&self) -> &TurnId {
            &self.host.scope().turn
        }

        /// Returns the id of the trace, which connects everything that one input event caused, across agents.
        pub fn trace_id(&self) -> &TraceId {
            &self.host.scope().trace
        }

        /// Returns how often the turn was gone on with after an interruption: 0 while it runs for the first time.
        // RESUME-01
        pub fn resumption(&self) -> u32 {
            self.host.scope().resumption
        }

        /// Returns the extension whose middleware is running.
        pub fn extension_name(&self) -> Option<&ExtensionName> {
            self.frame.extension()
        }

        /// Returns the map that the middlewares of this run share: inner layers read the values that outer ones wrote
        /// before `next`, and outer layers read those of inner ones once `next` has returned. The contexts of a turn
        /// and of its steps share one map for the length of the turn; every tool call has its own.
        // CTX-09, D-15
        pub fn metadata(&self) -> &Map<String, Value> {
            self.host.metadata()
        }

        /// Returns the shared map, to change it.
        pub fn metadata_mut(&mut self) -> &mut Map<String, Value> {
            self.host.metadata_mut()
        }
    };
}

/// Generates the members that the contexts of turns and steps have.
// CONV-15
macro_rules! message_members {
    () => {
        /// Returns the conversation: its base, the message events of this turn, and the messages that result.
        pub fn conversation(&self) -> ConversationView<'_> {
            ConversationView::new(self.host.conversation())
        }

        /// Returns the access to other agents, and to models.
        // AGENTS-03, D-33
        pub fn agents(&self) -> AgentsApi<'_> {
            AgentsApi::new(self.host.agents(), self.frame.extension())
        }

        /// Returns whether this layer has run before its `next` already, in the same turn before it was interrupted,
        /// and the events that it emitted are in the conversation: it may emit them again, and they are not applied
        /// twice. It becomes false once `next` has run. A layer whose events cost something asks this first.
        ///
        /// ```
        /// use goondan::agent::AgentRequest;
        /// use goondan::prelude::*;
        ///
        /// # struct Advice;
        /// # #[goondan::extension(name = "advice")]
        /// # impl Advice {
        /// #     #[init]
        /// #     fn new() -> Self {
        /// #         Self
        /// #     }
        /// #
        /// /// Asks another agent for advice, once.
        /// #[middleware(turn)]
        /// async fn advise(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        ///     if !ctx.is_repeated() {
        ///         let request = AgentRequest::new("advisor").input("What should I pay attention to?");
        ///         let advice = ctx.agents().request(request).await?;
        ///         ctx.emit(MessageEvent::append(Message::system(advice.response)));
        ///     }
        ///     next.run(ctx).await
        /// }
        /// # }
        /// ```
        // RESUME-01
        pub fn is_repeated(&self) -> bool {
            self.host.is_repeated()
        }

        /// Changes the conversation at once. A message that is appended, or replaces another, gets this extension as
        /// its source.
        ///
        /// An event that cannot be applied, because its id exists already, a value in it is nested too deeply, a file
        /// in it [cannot be used](crate::FilePart::check), or the disk is full, fails the step before the model is
        /// called.
        // CONV-16, D-24
        pub fn emit(&mut self, mut event: MessageEvent) {
            if let Err(error) = event.check_depth() {
                return self.host.refuse(event.refuse(error));
            }
            if let (MessageEvent::Append { message } | MessageEvent::Replace { message, .. }, Some(extension)) =
                (&mut event, self.frame.extension())
            {
                let source = Source::Extension { extension_name: extension.clone() };
                Arc::make_mut(message).set_source(source);
            }
            self.host.emit(event, self.frame.extension());
        }
    };
}

pub(crate) use {message_members, shared_members};
