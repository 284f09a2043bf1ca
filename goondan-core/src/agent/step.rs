//! Owns a running step: one model call and the tool calls that it triggers, and the host behind step contexts.

use serde_json::{Map, Value};

use super::instance::tool_message;
use super::tool_call::Dispatch;
use super::turn::TurnRun;
use crate::BoxFuture;
use crate::context::host::{ConversationHost, MessageHost, RunHost, StepHost, TurnScope};
use crate::conversation::{Content, Message, MessageEvent, Part, Role, Source, TextPart, ToolCallPart};
use crate::error::Result;
use crate::model::{ModelRequest, ModelResponse};
use crate::pipeline::{StepResult, ToolCallSummary};
use crate::store::Reach;
use crate::tool::ToolCatalog;

/// One step while it runs.
pub(super) struct StepRun<'a, 't> {
    turn: &'a mut TurnRun<'t>,
    index: u32,
    catalog: ToolCatalog,
}

impl<'a, 't> StepRun<'a, 't> {
    pub(super) fn new(turn: &'a mut TurnRun<'t>, index: u32) -> Self {
        // F-TOOL: every step starts from all tools.
        let catalog = turn.registered.tools.catalog();
        Self { turn, index, catalog }
    }

    async fn call_model_and_tools(&mut self) -> Result<StepResult> {
        let response = self.call_model().await?;
        let message = assistant_message(&response, format!("{}-step-{}", self.turn.scope.turn, self.index));
        if let Some(message) = message {
            self.turn.append(message);
        }
        let mut results = Vec::with_capacity(response.tool_calls.len());
        for request in &response.tool_calls {
            // A call may act on the world: that it was asked for must not be forgotten.
            self.turn.settle(Reach::Machine).await?;
            let dispatch = Dispatch {
                scope: &self.turn.scope,
                registered: self.turn.registered,
                catalog: &self.catalog,
                step_index: self.index,
                policy: self.turn.agent.policy,
            };
            let result = dispatch.run(request).await;
            self.turn.append(tool_message(&result));
            self.turn.tool_calls.push(ToolCallSummary {
                id: request.id.clone(),
                name: request.name.clone(),
                status: result.status(),
            });
            results.push(result);
        }
        Ok(StepResult::new(response.tool_calls, results))
    }

    async fn call_model(&mut self) -> Result<ModelResponse> {
        self.turn.settle(Reach::Process).await?;
        let agent = self.turn.agent;
        let conversation = &self.turn.live.conversation;
        if conversation.orphans() > 0 {
            let orphans = conversation.orphans();
            tracing::warn!(turn = %self.turn.scope.turn, orphans, "tool calls without result, or results without call, are kept from the model");
        }
        agent.model.generate(ModelRequest::new(agent.system.as_deref(), conversation, &self.catalog)).await
    }
}

/// What the model said, as a message; none when it said nothing at all.
fn assistant_message(response: &ModelResponse, step_id: String) -> Option<Message> {
    let text = response.text.as_ref().filter(|text| !text.is_empty());
    let content = if response.tool_calls.is_empty() {
        Content::Text(text?.clone())
    } else {
        let text = text.map(|text| Part::Text(TextPart { text: text.clone() }));
        let calls = response.tool_calls.iter().map(|call| {
            Part::ToolCall(ToolCallPart {
                tool_call_id: call.id.clone(),
                tool_name: call.name.clone(),
                input: call.args.clone(),
            })
        });
        Content::Parts(text.into_iter().chain(calls).collect())
    };
    Some(Message::new(Role::Assistant, content, Source::Assistant { step_id }))
}

impl RunHost for StepRun<'_, '_> {
    fn scope(&self) -> &TurnScope {
        self.turn.scope()
    }

    fn metadata(&self) -> &Map<String, Value> {
        self.turn.metadata()
    }

    fn metadata_mut(&mut self) -> &mut Map<String, Value> {
        self.turn.metadata_mut()
    }
}

impl MessageHost for StepRun<'_, '_> {
    fn conversation(&self) -> &dyn ConversationHost {
        self.turn.conversation()
    }

    fn emit(&mut self, event: MessageEvent) {
        self.turn.emit(event);
    }
}

impl StepHost for StepRun<'_, '_> {
    fn step_index(&self) -> u32 {
        self.index
    }

    fn tool_catalog(&self) -> &ToolCatalog {
        &self.catalog
    }

    fn tool_catalog_mut(&mut self) -> &mut ToolCatalog {
        &mut self.catalog
    }

    fn run_core(&mut self) -> BoxFuture<'_, Result<StepResult>> {
        Box::pin(self.call_model_and_tools())
    }
}
