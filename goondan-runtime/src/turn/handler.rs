//! Running the handler of a tool, and the host behind its context.

use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};

use goondan_core::host::panic::catch_panics;
use goondan_core::host::{ConversationHost, ReplySize, ToolHost};
use goondan_core::{
    AgentsHost, AskedQuestion, BoxFuture, Decision, Effect, Error, ErrorCode, LiveWait, Logger, Message, Question,
    QuestionId, Result, Secret, Span, ToolCallId, ToolContext, ToolName, ToolReply, TurnInfo, Verdict, Wait,
};
use serde_json::{Map, Value};

use super::asking::{Asking, MAX_ROUNDS, asks_too_often, undeclared};
use super::presented::before;
use super::progress::CallProgress;
use super::requests::Requests;
use super::step_calls::StepCalls;
use super::watchdog::watched;
use crate::live::{Unanswerable, within};
use crate::registry::Tool;
use crate::schema::Schema;

/// Behind the [`ToolContext`] of one call.
pub(super) struct HandlerHost<'a> {
    step: StepCalls<'a>,
    id: &'a ToolCallId,
    name: &'a ToolName,
    tool: &'a Tool,
    requests: Requests<'a>,
    progress: CallProgress,
    asking: Option<&'a Asking>,
    args: &'a Map<String, Value>,
    /// The number of live questions that the call has asked.
    asked: AtomicU32,
}

impl<'a> HandlerHost<'a> {
    pub(super) fn new(
        step: StepCalls<'a>,
        span: Span,
        id: &'a ToolCallId,
        (name, tool): (&'a ToolName, &'a Tool),
        args: &'a Map<String, Value>,
        asking: Option<&'a Asking>,
    ) -> Self {
        let requests = step.requests.in_call(id, span.id).of_tool(&tool.extension);
        Self {
            step,
            id,
            name,
            tool,
            requests,
            progress: CallProgress::default(),
            args,
            asking,
            asked: AtomicU32::new(0),
        }
    }

    /// Takes the input, and runs the handler within the time limit of the tool. The model reads an error.
    // The input is borrowed until the handler has it, because each future around it would store it once more.
    pub(super) async fn run(&self, input: &mut Value) -> Result<ToolReply> {
        let Self { name, tool, .. } = *self;
        let ctx = ToolContext::new(self);
        let limit = tool.timeout.unwrap_or(self.step.generation.spec.policy.tool_timeout);
        // Pinned here, because each future around it would store it twice.
        let mut handler = pin!(catch_panics(&tool.extension, async { tool.handler.call(&ctx, input.take()).await }));
        let handler = poll_fn(move |cx| {
            let polled = handler.as_mut().poll(cx);
            self.progress.polled(self.step.reporter, polled.is_ready(), cx);
            polled
        });
        match within(limit, Some(self.requests.caller.asks.clock), watched(name, handler)).await {
            Some(answer) => {
                let answer = answer.unwrap_or_else(|text| Err(Error::panicked(&text)));
                let answer = answer.and_then(ToolReply::checked);
                let answer = answer.map(|reply| ctx.with_reply_limit(|limit| reply.within(limit)));
                answer.map_err(|error| error.at(&tool.extension, format!("tool `{name}`")))
            }
            None => Err(Error::new(ErrorCode::TOOL_TIMEOUT, format!("`{name}` took longer than {limit:?}")).suggest(
                match tool.effect {
                    Effect::Read | Effect::Idempotent => "ask for less at once, or use another tool",
                    _ => "whether it did its work is unknown: check before calling it again",
                },
            )),
        }
    }
}

impl HandlerHost<'_> {
    /// Asks a live question.
    // ASK-04
    async fn ask(&self, question: Question) -> Result<Value> {
        let Self { tool, step, .. } = self;
        if !tool.asks {
            return Err(undeclared());
        }
        question.check()?;
        question.schema.as_ref().map(Schema::compile).transpose()?;
        if self.asked.fetch_add(1, Ordering::Relaxed) >= MAX_ROUNDS {
            return Err(asks_too_often());
        }
        let mut wait = Wait::new(self.id.clone(), self.name.to_string(), self.args.clone());
        wait.presentation = before(tool, self.args);
        let id = QuestionId::new(tool.extension.clone(), self.name.to_string(), question.name.clone());
        wait.questions.push(AskedQuestion::of_handler(id, question.clone()));
        let turn = step.turn;
        let mut agents = turn.input.callers.clone();
        agents.push(turn.agent.clone());
        let told = LiveWait::new(agents, turn.instance.clone(), wait);
        let asks = self.requests.caller.asks;
        let value = match asks.questions.ask(asks.clock, told).await {
            Ok(decision) => match decision.verdict {
                Verdict::Accept { value, .. } => value,
                Verdict::Reject { reason, .. } => return Err(Error::rejected(reason)),
                _ => return Unanswerable::Expired.answer(&question),
            },
            Err(why) => why.answer(&question)?,
        };
        self.requests.used.keep_secrets(question.secrets_in(&value).into_iter().map(Secret::new));
        Ok(value)
    }
}

impl ToolHost for HandlerHost<'_> {
    fn scope(&self) -> &TurnInfo {
        self.step.turn
    }

    fn call_id(&self) -> &ToolCallId {
        self.id
    }

    fn tool_name(&self) -> &ToolName {
        self.name
    }

    fn message(&self) -> &Message {
        self.step.message
    }

    fn conversation(&self) -> &dyn ConversationHost {
        &self.step.conversation
    }

    fn workdir(&self) -> Result<&Path> {
        self.step.workdir.path()
    }

    fn max_reply(&self) -> ReplySize {
        self.step.max_reply
    }

    fn max_output(&self) -> u64 {
        self.step.max_output()
    }

    fn decisions(&self) -> Result<Vec<Decision>> {
        Ok(self.asking.map(Asking::decisions_of_handler).unwrap_or_default())
    }

    fn ask_live(&self, question: Question) -> BoxFuture<'_, Result<Value>> {
        Box::pin(self.ask(question))
    }

    fn logger(&self) -> Logger<'_> {
        Logger::new(&*self.tool.log)
    }

    fn agents(&self) -> &dyn AgentsHost {
        &self.requests
    }

    fn progress(&self, done: f64, total: Option<f64>, text: &str) {
        self.progress.tell(self.step.reporter, self.id, self.name, done, total, text);
    }
}
