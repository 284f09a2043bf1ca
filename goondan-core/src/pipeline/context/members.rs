//! The members of contexts, each declared once.
//!
//! A *field* is read, and some are changed. A *directive* is an order to the run, and returns nothing. From this
//! declaration come the accessors of the contexts, the host traits behind them, and in `goondan-abi` both sides of the
//! border. To add a field, declare it here and return its value in the runtime's host of the context. To add a
//! directive, declare it here and implement [`Apply`](super::directive::Apply) in the runtime (`turn`).

/// Calls the macro `$then` with the members of contexts, by kind.
///
/// A field has a mode, an accessor, a type, its name in the binary contract, and the documentation of the accessor. The
/// modes are:
///
/// - `value`: returned by value
/// - `borrow`: returned by reference
/// - `text`: a `String`, returned as `&str`
/// - `change`: returned by reference, and from a second accessor by mutable reference
///
/// A directive has a method with at most one argument, a type that carries the argument to the host, its name in the
/// binary contract, and the documentation of the method.
#[doc(hidden)]
#[macro_export]
macro_rules! context_members {
    ($then:ident) => {
        $then! {
            Step(StepContext) host StepHost: AnswerHost, core StepResult, copies step: StepFields {
                value step_index: u32 = "stepIndex" {
                    /// Returns the index of the step in its turn, from 0.
                    // CTX-11
                };
                change tool_catalog: $crate::ToolCatalog = "toolCatalog" {
                    /// Returns the tools that this step offers to the model.
                } tool_catalog_mut {
                    /// Returns the same catalog, to change it before `next`. The next step starts with all tools again.
                    // CTX-05, CTX-06
                };
                change model_name: Option<$crate::ModelName> = "model" {
                    /// Returns the name of the model that a middleware chose for this step; `None` is the agent's own.
                    // API-11
                } model_name_mut {
                    /// Returns the same name, to change it before `next`: see
                    /// [`StepContext::set_model`](crate::StepContext::set_model). The next step calls the agent's own
                    /// model again.
                };
                change model_options: $crate::ModelOptions = "modelOptions" {
                    /// Returns the options that middlewares have set for the model call of this step.
                    // API-11
                } model_options_mut {
                    /// Returns the same options, to change them before `next`. They go before those that the model was
                    /// made with, and the next step starts without any.
                    // API-11
                };
                value joined_inputs: Vec<$crate::MessageId> = "joinedInputs" {
                    /// Returns the messages of inputs that have joined the turn since the step before: a person, or a
                    /// program, has steered it. Layers of the turn have not seen them. A guard of inputs replaces or
                    /// removes one before `next`, and the model never reads it.
                    ///
                    /// ```
                    /// use goondan::prelude::*;
                    ///
                    /// # struct Cards;
                    /// # #[goondan::extension(name = "cards")]
                    /// # impl Cards {
                    /// #     #[init]
                    /// #     fn new() -> Self {
                    /// #         Self
                    /// #     }
                    /// #
                    /// /// Removes inputs with the number of a card.
                    /// #[middleware(step)]
                    /// async fn guard(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
                    ///     for id in ctx.joined_inputs() {
                    ///         let mut messages = ctx.conversation().iter();
                    ///         let joined = messages.find(|message| message.id() == id.as_str());
                    ///         if joined.is_some_and(|message| message.text().contains("4242 4242")) {
                    ///             ctx.emit(MessageEvent::remove(id));
                    ///         }
                    ///     }
                    ///     next.run(ctx).await
                    /// }
                    /// # }
                    /// ```
                    // STEER-01, D-46
                };
                value model_info: $crate::ModelInfo = "modelInfo" {
                    /// Returns facts about the model that this step calls: its context window, its prices.
                };
                value token_estimate: u64 = "tokenEstimate" {
                    /// Returns how many tokens the request of this step has, by estimate: the count of the provider
                    /// last, and a token for every four bytes since then. An image counts as 1,500.
                };
            } directives {
                hold_stream() as HoldStream = "holdStream" {
                    /// Holds the stream of this step, so that this middleware sees the model's answer before the
                    /// readers of the stream do. Call it before `next`.
                    ///
                    /// The stream receives no piece of the answer while the model generates it. When the outermost step
                    /// layer has returned, the stream receives the answer part by part, each in one piece, as the
                    /// conversation then holds it: the replacement of a replaced message, and nothing of a removed one.
                    /// If the step failed, also if a layer recovered from that, nothing is sent. Runtime events are not
                    /// held, so those of the step's tool calls come before the answer.
                    ///
                    /// If a turn is cancelled or fails while the model generates a held answer, no partial answer is
                    /// kept. A complete answer is in the conversation until a middleware replaces or removes it.
                    ///
                    /// A step that is run again is another step, whose layers hold its stream again. A second call
                    /// changes nothing. After `next` the pieces have been sent: the call logs a warning and changes
                    /// nothing.
                };
                project(event: $crate::MessageEvent) as Project = "project" {
                    /// Changes the messages that the model is sent in this step, and nothing else. Call it before
                    /// `next`.
                    ///
                    /// An edit is no message event of the conversation: [`conversation`](Self::conversation) does not
                    /// show it, it is not stored, and the next step, also one that is run again, starts without it. So
                    /// a turn that is cancelled or killed leaves nothing of it. The model is sent the
                    /// conversation when `next` has reached it, with the edits of all layers in the order of the calls:
                    /// an appended message comes last, and an edit may change or remove a message that one before it
                    /// has added. A tool call whose result was removed is not sent, nor a result without its call.
                    ///
                    /// ```
                    /// use goondan::prelude::*;
                    ///
                    /// # struct Search;
                    /// # #[goondan::extension(name = "search")]
                    /// # impl Search {
                    /// #     #[init]
                    /// #     fn new() -> Self {
                    /// #         Self
                    /// #     }
                    /// #
                    /// /// Tells the model the time, which no later step reads.
                    /// #[middleware(step)]
                    /// async fn now(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
                    ///     let now = goondan::conversation::Timestamp::now();
                    ///     ctx.project(MessageEvent::append(Message::system(format!("It is {now}."))));
                    ///     next.run(ctx).await
                    /// }
                    /// # }
                    /// ```
                    ///
                    /// An edit that cannot be applied fails the step before the model is called, as for
                    /// [`emit`](Self::emit). One whose target is not there changes nothing and logs a warning, and so
                    /// does a call after `next`.
                    // PROJ-01
                };
                answer_with(answer: $crate::Content) as AnswerWith = "answer" {
                    /// Prepares the answer of this step: a text, or parts such as text, files and tool calls. Call it
                    /// before `next`.
                    ///
                    /// `next` runs all inner layers as ever, and then the prepared answer is taken instead of asking
                    /// the model. It is treated as an answer of the model: it becomes a message of the conversation,
                    /// and its tool calls run, with the same guards and limits.
                    /// [`StepResult::prepared_by`](crate::StepResult::prepared_by), the event `step.completed` and the
                    /// metadata `preparedBy` of the message name the extension.
                    ///
                    /// ```
                    /// use goondan::prelude::*;
                    ///
                    /// # struct Greeting;
                    /// # #[goondan::extension(name = "greeting")]
                    /// # impl Greeting {
                    /// #     #[init]
                    /// #     fn new() -> Self {
                    /// #         Self
                    /// #     }
                    /// #
                    /// /// Answers a greeting without the model.
                    /// #[middleware(step)]
                    /// async fn greet(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
                    ///     if ctx.input().input.as_deref() == Some("hello") {
                    ///         ctx.answer_with("Hello! What can I do for you?");
                    ///     }
                    ///     next.run(ctx).await
                    /// }
                    /// # }
                    /// ```
                    ///
                    /// If several layers prepare an answer, the innermost one wins. A step that is run again starts
                    /// without any. After `next`, the call logs a warning and changes nothing.
                    ///
                    /// An answer that cannot be used fails the step: with `E_EXT_ANSWER` if it is empty, has the result
                    /// of a tool call, or a tool call whose arguments are no object; with `E_MESSAGE_PART` if reasoning
                    /// or data of a provider does not equal a part that is in the conversation, as for
                    /// [`emit`](Self::emit).
                    // PREP-01
                };
            }
            ToolCall(ToolCallContext) host ToolCallHost: CallHost, core ToolCallResult, copies call: CallFields {
                value step_index: u32 = "stepIndex" {
                    /// Returns the index of the step that the call belongs to, from 0.
                };
                borrow call_id: $crate::ToolCallId = "callId" {
                    /// Returns the id of the call.
                    // CTX-13
                };
                text tool_name: String = "toolName" {
                    /// Returns the tool's full name as the model wrote it. It may be unknown: such a call fails in the
                    /// core, inside of all middlewares.
                };
                change args: serde_json::Map<String, serde_json::Value> = "args" {
                    /// Returns the arguments.
                } args_mut {
                    /// Returns the arguments, to change them before `next`: the handler is called with these.
                    // CTX-08
                };
            } directives {
                answer_with(reply: $crate::ToolReply) as ReplyWith = "answer" {
                    /// Prepares the reply of this call: a JSON value, or a [`ToolReply`](crate::ToolReply). Call it
                    /// before `next`.
                    ///
                    /// `next` runs all inner layers as ever, and checks that the step offers the tool and that the
                    /// arguments fit. Then the prepared reply is taken instead of running the handler, so the call
                    /// never counts as started. [`ToolCallResult::prepared_by`](crate::ToolCallResult::prepared_by),
                    /// the event `tool.completed` and the metadata `preparedBy` of the message name the extension.
                    /// There is no event `tool.called`.
                    ///
                    /// ```
                    /// use goondan::prelude::*;
                    ///
                    /// # struct DryRun;
                    /// # #[goondan::extension(name = "dry-run")]
                    /// # impl DryRun {
                    /// #     #[init]
                    /// #     fn new() -> Self {
                    /// #         Self
                    /// #     }
                    /// #
                    /// /// Lets no mail leave.
                    /// #[middleware(toolCall)]
                    /// async fn pretend(
                    ///     &self,
                    ///     ctx: &mut ToolCallContext<'_>,
                    ///     next: Next<'_, ToolCall>,
                    /// ) -> Result<ToolCallResult> {
                    ///     if ctx.tool_name() == "mail__send" {
                    ///         ctx.answer_with("sent");
                    ///     }
                    ///     next.run(ctx).await
                    /// }
                    /// # }
                    /// ```
                    ///
                    /// If several layers prepare a reply, the innermost one wins. A call that is run again starts
                    /// without any. After `next`, the call logs a warning and changes nothing. A reply that no tool
                    /// could give fails the call.
                    // PREP-01
                };
            }
        }
    };
}
