//! Conversations with the extension, and a model that answers by a function.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use goondan::conversation::{MessageData, Part};
use goondan::middleware::ModelInfo;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::testing::{Chat, ChatBuilder};
use goondan::{BoxFuture, Result, Value};

use crate::linkage::WithPlugin;

/// Returns a chat with the extension, and with one that marks messages: those that begin with `old` can be replaced,
/// those that begin with `pin` are pinned, and both those that begin with `old pin`.
pub(crate) fn builder(config: Value) -> ChatBuilder {
    let chat = Chat::builder().with::<marker::Extension>(Value::Null);
    chat.agent(|agent| agent.plugin("message-compaction", "message-compaction", config))
}

/// Opens a conversation in which the model answers `ok`.
pub(crate) async fn chat(config: Value) -> Chat {
    builder(config).start().await.unwrap()
}

/// Says each of `inputs`.
pub(crate) async fn say_all<I: Into<String>>(chat: &Chat, inputs: impl IntoIterator<Item = I>) {
    for input in inputs {
        chat.say(input.into()).await.unwrap();
    }
}

/// Returns the lines of the last request that `is_wanted` accepts.
pub(crate) fn lines(chat: &Chat, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
    chat.last_request().transcript().into_iter().filter(|line| is_wanted(line)).collect()
}

pub(crate) fn is_summary(line: &str) -> bool {
    line.starts_with("system: [message-compaction]")
}

/// Returns whether each tool call has a later result, and each result an earlier call.
pub(crate) fn is_paired(messages: &[MessageData]) -> bool {
    let mut open = BTreeSet::new();
    let mut parts = messages.iter().flat_map(|message| message.content.parts());
    let known = parts.all(|part| match part {
        Part::ToolCall(call) => open.insert(call.tool_call_id.as_str()),
        Part::ToolResult(result) => open.remove(result.tool_call_id.as_str()),
        _ => true,
    });
    known && open.is_empty()
}

/// Marks messages by what they say, before the extension looks at them.
#[goondan::extension(name = "marker")]
pub(crate) mod marker {
    use goondan::prelude::*;

    #[middleware(turn, priority = -100)]
    async fn mark(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let messages: Vec<_> = ctx.conversation().iter().map(|message| message.to_message()).collect();
        for message in messages.into_iter().filter(|message| message.metadata().is_empty()) {
            let id = message.id().clone();
            let text = message.text().into_owned();
            let marks = [("old", "compaction.eligible"), ("pin", "pinned"), ("old pin", "pinned")];
            let marks = marks.into_iter().filter(|(start, _)| text.starts_with(start));
            let marked = marks.fold(message.clone(), |message, (_, key)| message.with_metadata(key, true));
            if marked != message {
                ctx.emit(MessageEvent::replace(id, marked));
            }
        }
        next.run(ctx).await
    }
}

/// A model that answers by a function of what it is asked: with `None`, never.
#[derive(Clone)]
pub(crate) struct Answering {
    answer: Arc<Answer>,
    asked: Arc<Mutex<Vec<Asked>>>,
    info: ModelInfo,
}

type Answer = dyn Fn(&Asked) -> Option<Result<ModelResponse>> + Send + Sync;

/// What a model was asked.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// The number of the request, from 1.
    pub(crate) number: usize,
    pub(crate) system: String,
    pub(crate) messages: usize,
    /// The text of the last message.
    pub(crate) input: String,
}

impl Answering {
    pub(crate) fn with(answer: impl Fn(&Asked) -> Option<Result<ModelResponse>> + Send + Sync + 'static) -> Self {
        Self { answer: Arc::new(answer), asked: Arc::default(), info: ModelInfo::default() }
    }

    /// Returns the model with what is known of it.
    pub(crate) fn knowing(self, info: ModelInfo) -> Self {
        Self { info, ..self }
    }

    /// Returns what the model was asked so far.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Answering {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let mut all = self.asked.lock().unwrap();
        let asked = Asked {
            number: all.len() + 1,
            system: request.system().unwrap_or_default().to_owned(),
            messages: request.messages().count(),
            input: request.messages().last().map(|message| message.content.text().into_owned()).unwrap_or_default(),
        };
        all.push(asked.clone());
        Box::pin(async move {
            match (self.answer)(&asked) {
                Some(answer) => answer,
                None => std::future::pending().await,
            }
        })
    }

    fn info(&self) -> ModelInfo {
        self.info.clone()
    }
}
