//! The model call of a step, or the prepared answer that is used instead.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::task::{Poll, ready};
use std::time::Duration;

use goondan_core::host::{ConversationExt, IdSet, ModelCall, Projection, ToolCatalogExt};
use goondan_core::{
    BoxFuture, Conversation, Error, ErrorCode, ExtensionName, KeptPrefix, LlmInputMessage, Message, MessageEvent, Part,
    Result, Role, RuntimeEvent, Source, StepRef, ToolCallId,
};
use goondan_lock::Lock;
use serde_json::{Map, Value};

use super::first_piece::FirstPiece;
use super::journaled::JournaledConversation;
use super::left_out::LeftOut;
use super::pieces::Pieces;
use super::prefix::Asked;
use super::settings::CallSettings;
use super::step::StepRun;
use super::transformed::Transforming;
use crate::awaited::AwaitedValue;
use crate::live::within;
use crate::ports::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse, ValueBy, calls_in, whole};
use crate::ports::store::Durability;

/// The share of a request below which it is reported that the next one keeps no more.
const LITTLE: f64 = 0.8;

/// Why a request is repeated whose schema the provider may have refused.
const WITHOUT_VALUE: &str = "the provider refused the request: it is repeated without the schema of its answer";

/// Why a request is repeated whose files the provider may have refused.
const WITHOUT_FILES: &str = "the provider refused the request: it is repeated without its new files";

impl StepRun<'_, '_> {
    /// Calls the model, unless an answer was prepared, and returns the content of the answer. The rest of it
    /// is in `model_call`.
    pub(super) async fn call_model(&mut self) -> Result<Vec<Part>> {
        self.turn.settle(Durability::Flushed).await?;
        self.reach_core();
        if self.directed.prepared.is_some()
            && let Some((content, by)) = self.directed.prepared.use_up()?
        {
            return self.use_prepared(content, by);
        }
        if self.turn.awaited.is_some() {
            self.ask_for_value()?;
        }
        let mut left_out = self.turn.journaled.left_out();
        let projection = self.projection_without(left_out.as_deref())?;
        self.report_start(Some(&self.request(projection.as_deref())));
        self.keep_prefix(projection.as_deref())?;
        if self.turn.reporter.is_watched() {
            self.turn.journaled.first_piece = FirstPiece::asked();
        }
        let transforming = self.transformers.begin();
        let pieces = self.pieces(transforming);
        let limit = self.generation.spec.policy.model_timeout;
        let mut refuses_value = false;
        let send = |piece: ModelDelta<'_>| pieces.take(piece);
        let answer = self.ask(projection.as_deref(), &mut left_out, &mut refuses_value, (&pieces, &send))?;
        let answer = within(limit, None, answer).await.unwrap_or_else(|| {
            let message = format!("the model did not answer within {limit:?}");
            Err(Error::new(ErrorCode::MODEL_TIMEOUT, message).retryable(true))
        });
        let answer = answer.and_then(|mut response| {
            let ModelResponse { content, finish_reason, .. } = &mut response;
            let value_at = self.value_by.and_then(|_| AwaitedValue::take_call(content, finish_reason));
            let was_streamed = pieces.finish(content)?;
            Ok((response, value_at, was_streamed))
        });
        if let Some(left_out) = left_out {
            self.turn.journaled.keep_left_out(&left_out, answer.is_ok())?;
        }
        self.turn.journaled.refuses_values |= refuses_value;
        let (mut response, value_at, was_streamed) = answer?;
        if let Some(at) = value_at {
            AwaitedValue::keep(&mut response.content, at);
        }
        correct_calls(&mut response.content, &self.turn.journaled.conversation);
        self.was_streamed = was_streamed;
        if !was_streamed {
            // The model does not stream.
            self.send_unreviewed(&response.content);
        }
        self.turn.journaled.partial.clear();
        Ok(self.take_response(response, projection.is_some()))
    }

    /// Takes in that the layers have reached the core: what they have directed is in force.
    #[inline]
    fn reach_core(&mut self) {
        self.turn.journaled.partial.start(self.index);
        self.turn.journaled.report_orphans(&self.turn.info.turn);
        self.answer_from = Some(self.turn.journaled.conversation.end());
        if self.directed.held.is_held() {
            self.turn.journaled.hold_messages();
        }
        self.holds = self.reviewers.hold() || self.turn.awaited.is_some();
    }

    /// Returns the receiver of the pieces of the answer.
    #[inline]
    fn pieces(&self, transforming: Option<Box<Lock<Transforming>>>) -> Pieces<'_> {
        let JournaledConversation { partial, first_piece, .. } = &*self.turn.journaled;
        Pieces {
            first: first_piece,
            partial,
            reporter: self.turn.reporter,
            step: self.index,
            span: self.span,
            held: self.directed.held.is_held(),
            judged: self.holds,
            transforming,
            sent: AtomicBool::new(false),
        }
    }

    /// Asks the model, and again without the parts of the request that its provider refuses.
    #[inline]
    fn ask<'s>(
        &'s self,
        projection: Option<&'s Projection>,
        left_out: &'s mut Option<Box<LeftOut>>,
        refuses_value: &'s mut bool,
        (pieces, send): (&'s Pieces<'s>, &'s (dyn Fn(ModelDelta<'_>) + Sync)),
    ) -> Result<impl Future<Output = Result<ModelResponse>>> {
        let model = self.settings.model(self.generation)?;
        let mut asked = model.generate(self.request(projection), DeltaSink::to(send));
        // No `async` block, which would store the answer while the request is repeated, and so in each step.
        Ok(poll_fn(move |cx| {
            loop {
                let polled = asked.as_mut().poll(cx);
                if let Some(error) = pieces.failure() {
                    return Poll::Ready(Err(error));
                }
                let answer = ready!(polled);
                if let Err(error) = &answer
                    && let Some(again) = self.ask_without_files(error, left_out, model, send)
                {
                    asked = again;
                    continue;
                }
                if let Err(error) = &answer
                    && !*refuses_value
                    && let Some(again) = self.ask_without_value(error, left_out.as_deref(), model, send)
                {
                    asked = again;
                    *refuses_value = true;
                    continue;
                }
                return Poll::Ready(answer);
            }
        }))
    }

    /// Sends the request again without its new files, if the provider may have refused it because of them.
    // REFUSED-01
    #[cold]
    fn ask_without_files<'s>(
        &'s self,
        error: &Error,
        left_out: &mut Option<Box<LeftOut>>,
        model: &'s dyn Model,
        send: &'s (dyn Fn(ModelDelta<'_>) + Sync),
    ) -> Option<BoxFuture<'s, Result<ModelResponse>>> {
        let conversation = &self.turn.journaled.conversation;
        let projection = self.projection().ok()?;
        let refused = LeftOut::refused(left_out.as_deref(), error, conversation, projection.as_deref())?;
        let without = refused.applied(conversation, projection);
        *left_out = Some(Box::new(refused));
        tracing::warn!(
            turn = %self.turn.info.turn, step = self.index, "a request is repeated without its new files: {}",
            error.report()
        );
        send(ModelDelta::Restart { reason: WITHOUT_FILES, wait: Some(Duration::ZERO) });
        Some(Box::pin(async move { model.generate(self.request(Some(&without)), DeltaSink::to(send)).await }))
    }

    /// Chooses how the model is asked for the value of the turn.
    // VALUE-01
    #[cold]
    fn ask_for_value(&mut self) -> Result<()> {
        let Some(awaited) = self.turn.awaited.as_deref() else { return Ok(()) };
        let model = self.settings.model(self.generation)?;
        let by = match self.turn.journaled.refuses_values {
            true => ValueBy::Tool,
            false => awaited.choose(model, &self.request(None)),
        };
        awaited.offer(by, &mut self.settings.catalog, &mut self.settings.options)?;
        if let Some(words) = AwaitedValue::instruction(by) {
            let message = Arc::new(Message::new(Role::System, words, Source::System));
            self.directed.projected.add(MessageEvent::Append { message }, None);
        }
        self.value_by = Some(by);
        Ok(())
    }

    /// Sends the request again without holding the model to a value, if the provider may have refused that.
    // VALUE-01
    #[cold]
    fn ask_without_value<'s>(
        &'s self,
        error: &Error,
        left_out: Option<&LeftOut>,
        model: &'s dyn Model,
        send: &'s (dyn Fn(ModelDelta<'_>) + Sync),
    ) -> Option<BoxFuture<'s, Result<ModelResponse>>> {
        let by = self.value_by.filter(|by| *by != ValueBy::Tool && *error.code() == ErrorCode::MODEL_REQUEST)?;
        let mut options = self.settings.options.as_deref().cloned();
        if by == ValueBy::RequiredTool
            && let Some(options) = &mut options
        {
            options.tool_choice = None;
        }
        let projection = self.projection_without(left_out).ok()?;
        tracing::warn!(
            turn = %self.turn.info.turn, step = self.index,
            "a request is repeated without the schema of its answer: {}", error.report()
        );
        send(ModelDelta::Restart { reason: WITHOUT_VALUE, wait: Some(Duration::ZERO) });
        Some(Box::pin(async move {
            let request = self.request(projection.as_deref()).with_value_schema(None).with_options(options.as_ref());
            model.generate(request, DeltaSink::to(send)).await
        }))
    }

    /// Returns the conversation with the edits of middlewares, if there are any.
    #[inline]
    pub(super) fn projection(&self) -> Result<Option<Box<Projection>>> {
        // `token_estimate` builds it too: the warning is for the request alone.
        self.directed.projected.of(&self.turn.journaled.conversation, self.answer_from.is_some())
    }

    /// Returns the conversation with the edits of middlewares, and without the files that are left out.
    #[inline]
    fn projection_without(&self, left_out: Option<&LeftOut>) -> Result<Option<Box<Projection>>> {
        let projection = self.projection()?;
        Ok(match left_out {
            None => projection,
            Some(left_out) => Some(left_out.applied(&self.turn.journaled.conversation, projection)),
        })
    }

    fn request<'r>(&'r self, projection: Option<&'r Projection>) -> ModelRequest<'r> {
        let system = self.generation.spec.system.as_deref();
        ModelRequest::new(system, &self.turn.journaled.conversation, &self.settings.catalog)
            .with_registered_tools(Some(&self.settings.registered))
            .with_options(self.settings.options.as_deref())
            .with_instance(&self.turn.info.agent, &self.turn.info.instance)
            .with_projection(projection)
            .with_value_schema(self.value_schema())
    }

    /// Returns the schema that the text of the answer is held to.
    #[inline]
    fn value_schema(&self) -> Option<&Map<String, Value>> {
        let awaited = self.turn.awaited.as_deref().filter(|_| self.value_by == Some(ValueBy::Schema));
        awaited.map(AwaitedValue::object)
    }

    /// Computes how much of the previous request this one begins with, and reports if that is little.
    // CACHE-01
    fn keep_prefix(&mut self, projection: Option<&Projection>) -> Result<()> {
        if !self.turn.reporter.is_watched() {
            self.turn.journaled.prefixes.forget();
            return Ok(());
        }
        let model = self.settings.model(self.generation)?;
        let CallSettings { catalog, registered, .. } = &self.settings;
        let is_changed = !catalog.is_shared_with(registered);
        let with_closed = (is_changed && model.sends_closed_tools(&self.request(projection)))
            .then(|| catalog.merged_into(registered));
        let asked = Asked {
            spec: &self.generation.spec,
            name: self.settings.model.as_ref(),
            model,
            tools: with_closed.as_ref().unwrap_or(catalog),
            projection,
        };
        self.turn.journaled.sent(&asked, self.directed.projected.edits());
        if let Some(prefix) = &self.turn.journaled.prefixes.kept
            && prefix.share() < LITTLE
        {
            self.turn.reporter.report("model.prefixBroken", self.span, |scope| RuntimeEvent::ModelPrefixBroken {
                scope,
                step: StepRef::new(&self.turn.info.turn, self.index),
                prefix: KeptPrefix::clone(prefix),
            });
        }
        Ok(())
    }

    /// Reports that the step has started, with the request to the model.
    pub(super) fn report_start(&self, request: Option<&ModelRequest<'_>>) {
        let reports_input = self.generation.spec.policy.report_model_input;
        self.turn.reporter.report("step.started", self.span, |scope| RuntimeEvent::StepStarted {
            scope,
            step: StepRef::new(&self.turn.info.turn, self.index),
            llm_input_messages: request
                .filter(|_| reports_input)
                .map(|request| request.messages().map(|message| LlmInputMessage::from(&*message)).collect()),
        });
    }

    /// Sends parts of an answer to the stream, each whole, unless the answer is held.
    pub(super) fn send_whole(&self, content: &[Part], is_sent: impl Fn(ModelDelta<'_>) -> bool) {
        if let Some(watch) = self.turn.reporter.streams()
            && !self.directed.held.is_held()
        {
            whole(content).filter(|piece| is_sent(*piece)).for_each(|piece| watch.piece(self.index, self.span, piece));
        }
    }

    /// Sends an answer to the stream that has received none of it, unless it is told only after its review.
    fn send_unreviewed(&mut self, content: &[Part]) {
        if !self.holds {
            self.send_whole(content, |_| true);
            self.was_streamed = true;
        }
    }

    /// Tells that the pieces of the answer are to be discarded, if some were told.
    pub(super) fn restart(&self, reason: &str) {
        if self.was_streamed
            && !self.directed.held.is_held()
            && let Some(watch) = self.turn.reporter.streams()
        {
            watch.piece(self.index, self.span, ModelDelta::Restart { reason, wait: None });
        }
    }

    /// Returns the provider of the model, if it was asked and something watches the turn.
    pub(super) fn provider(&self) -> Option<String> {
        if !self.turn.journaled.first_piece.was_asked() {
            return None;
        }
        let provider = self.settings.model(self.generation).ok()?.info().provider;
        (!provider.is_empty()).then_some(provider)
    }

    /// Returns the content of a response, and notes the rest.
    fn take_response(&mut self, response: ModelResponse, projected: bool) -> Vec<Part> {
        let ModelResponse { content, usage, finish_reason, model, .. } = response;
        if let Some(usage) = usage {
            // The next request has no edits of this one.
            if !projected {
                self.turn.journaled.estimate.measured(usage, &self.turn.journaled.conversation);
            }
            *self.turn.usage.get_or_insert_default() += usage;
            self.turn.requests.used.asked.spend(usage);
        }
        self.model_call = ModelCall { usage, finish_reason, model, prepared_by: None };
        content
    }

    /// Uses the answer that the extension `by` has prepared.
    #[cold]
    fn use_prepared(&mut self, mut content: Vec<Part>, by: ExtensionName) -> Result<Vec<Part>> {
        if let Some(transforming) = self.transformers.begin() {
            transforming.into_inner().finish(&mut content, &|_| ())?;
        }
        correct_calls(&mut content, &self.turn.journaled.conversation);
        self.report_start(None);
        self.send_unreviewed(&content);
        self.model_call = ModelCall { prepared_by: Some(by), ..ModelCall::default() };
        Ok(content)
    }
}

/// Replaces ids of calls that are empty, or that another call of the answer or of the conversation has: results refer
/// to their calls by id. Cuts names that are too long for any tool, because the model has made them up: the
/// conversation keeps them.
// D-12
pub(super) fn correct_calls(content: &mut [Part], conversation: &Conversation) {
    // Most answers have one call, for which a set would cost more than the rest.
    let mut ids = (content.len() > 1 && calls_in(content).nth(1).is_some()).then(IdSet::default);
    for part in content {
        let Part::ToolCall(call) = part else { continue };
        if call.tool_name.len() > LONGEST_NAME {
            cut_name(&mut call.tool_name);
        }
        let id = &mut call.tool_call_id;
        let blank = id.as_str().chars().all(char::is_whitespace);
        if blank || conversation.has_tool_call(id) || ids.as_mut().is_some_and(|ids| !ids.insert(id.clone())) {
            *id = ToolCallId::random();
        }
    }
}

/// The most bytes of the name of a tool.
// TOOL-01
const LONGEST_NAME: usize = 64;

#[cold]
fn cut_name(name: &mut String) {
    name.truncate(name.floor_char_boundary(LONGEST_NAME));
    // The rest may be the name of a tool.
    name.push('…');
}
