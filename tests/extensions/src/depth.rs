//! An extension that puts a value of any depth into the place that its config names.

use goondan::agent::AgentRequest;
use goondan::conversation::{
    Message, Part, ProviderData, Role, Source, TextPart, ToolCallPart, ToolOutput, ToolResultPart,
};
use goondan::middleware::ToolCallDraft;
use goondan::prelude::*;
use goondan::tool::{Effect, ShownCall, ToolHandler, ToolItem};
use goondan::{BoxFuture, Map, Value, json};

use crate::Log;

/// Returns a number inside of `levels` lists and objects. Made and moved without recursion.
pub fn nested(levels: usize) -> Value {
    (0..levels).fold(json!(7), |value, level| match level % 8 {
        1 => Value::Object(Map::from_iter([("k".to_owned(), value)])),
        _ => Value::Array(vec![value]),
    })
}

/// Returns a JSON Schema that holds `value`.
fn schema(value: Value) -> Value {
    Value::Object(Map::from_iter([("default".to_owned(), value)]))
}

/// Acts in turns whose input is `deep`.
pub struct Deep {
    api: ExtensionApi,
    config: DeepConfig,
}

/// The place, and how deep the value is.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub struct DeepConfig {
    log: Log,
    place: String,
    levels: usize,
}

impl DeepConfig {
    /// Returns the value if it belongs into `place`.
    fn value(&self, place: &str) -> Option<Value> {
        (self.place == place).then(|| nested(self.levels))
    }

    fn told(&self, outcome: Result<impl Sized>) {
        self.log
            .write(outcome.map_or_else(|error| format!("{}: {}", error.code(), error.message()), |_| "ok".to_owned()));
    }
}

/// A tool that is registered by hand, whose output is the value.
struct ByHand(DeepConfig);

impl ToolHandler for ByHand {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async { Ok(self.0.value("output by hand").unwrap_or_default().into()) })
    }
}

fn is_deep(input: &goondan::event::AgentEvent) -> bool {
    input.input.as_deref() == Some("deep")
}

#[goondan::extension(name = "deep")]
impl Deep {
    #[init]
    fn new(api: ExtensionApi, config: DeepConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("deep__by-hand")?.effect(Effect::Read), ByHand(config.clone()))?;
        if let Some(value) = config.value("schema") {
            let item = ToolItem::new("deep__schema")?.parameters(schema(value));
            config.told(api.tools().register(item, ByHand(config.clone())));
        }
        Ok(Self { api, config })
    }

    /// Returns the value, or sets the state to it.
    #[tool(effect = read, present = Self::shown)]
    async fn make(&self, ctx: &ToolContext<'_>) -> Result<Value> {
        let config = &self.config;
        if let Some(value) = config.value("log") {
            self.api.logger().with("deep", value).info("a deep line");
            ctx.logger().with("flat", 1).info("a flat line");
        }
        if let Some(value) = config.value("state") {
            let outcome = self.api.state().set(&value);
            // Moved to where it is dropped without recursion.
            self.api.events().emit("refused", vec![value]);
            outcome?;
        }
        if let Some(value) = config.value("update of state") {
            self.api.state().update(|state: &mut Value| *state = value)?;
        }
        if let Some(value) = config.value("request") {
            config.told(ctx.agents().request(AgentRequest::new("nobody").metadata("deep", value)).await);
        }
        match config.value("failing") {
            Some(_) => Err(Error::msg("as asked")),
            None => Ok(config.value("output").unwrap_or_else(|| "fine".into())),
        }
    }

    fn shown(call: &ShownCall<'_>) -> String {
        call.arg("deep").into_owned()
    }

    /// Returns the value from another thread.
    #[tool(blocking, effect = read)]
    fn slowly(&self) -> Result<Value> {
        Ok(self.config.value("output of a blocking tool").unwrap_or_default())
    }

    /// Reads everything that a program sends about a step.
    #[on("step.started")]
    async fn hear_step(&self, event: &Event) -> Result<()> {
        if self.config.place == "read" {
            let inputs = event.args()[0]["llmInputMessages"].as_array().map_or(0, Vec::len);
            self.config.log.write(format!("{inputs} inputs"));
        }
        Ok(())
    }

    #[on("deep.event")]
    async fn hear(&self, event: &Event) -> Result<()> {
        self.config.log.write(format!("heard {}", event.args().len()));
        Ok(())
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let config = &self.config;
        if config.place == "read" {
            let messages: Vec<_> = ctx.conversation().iter().map(|message| message.to_message()).collect();
            let contents = ctx.conversation().to_llm_messages().len();
            let deep = ctx.conversation().iter().filter(|message| message.metadata("deep").is_some()).count();
            let events = ctx.conversation().events().len();
            let state = self.api.state().get::<Value>()?.is_some();
            self.config.log.write(format!("{} {contents} {deep} {events} {state}", messages.len()));
        }
        if !is_deep(ctx.input()) {
            return next.run(ctx).await;
        }
        if let Some(value) = config.value("metadata of the turn") {
            ctx.metadata_mut().insert("deep".to_owned(), value);
        }
        if let Some(value) = config.value("metadata of a message") {
            ctx.emit(MessageEvent::append(Message::user("with metadata").with_metadata("deep", value)));
        }
        let id = "call_0";
        if let Some(value) = config.value("arguments in a message") {
            let call = Part::from(ToolCallPart::new(id.into(), "a__b", value));
            ctx.emit(MessageEvent::append(Message::new(Role::Assistant, vec![call], Source::System)));
            let result = ToolResultPart::new(id.into(), "a__b", ToolOutput::Text("done".to_owned()));
            ctx.emit(MessageEvent::append(Message::new(Role::Tool, vec![result.into()], Source::System)));
        }
        if let Some(value) = config.value("replaced output in a message") {
            let input = ctx.conversation().iter().last().map(|message| message.id().to_owned()).unwrap_or_default();
            let result = ToolResultPart::new(id.into(), "a__b", ToolOutput::Json(value));
            let message = Message::new(Role::Tool, vec![result.into()], Source::System);
            ctx.emit(MessageEvent::replace(input.as_str(), message.with_id(input.as_str())));
        }
        if let Some(value) = config.value("other part of a message") {
            let part = Map::from_iter([("type".to_owned(), "image".into()), ("deep".to_owned(), value)]);
            ctx.emit(MessageEvent::append(Message::user(vec![Part::Other(Box::new(part))])));
        }
        if let Some(value) = config.value("data of a provider in a message") {
            let rest = Map::from_iter([("deep".to_owned(), value)]);
            let part = TextPart::new("hello").with_provider(ProviderData::new("echo", "echo", rest));
            ctx.emit(MessageEvent::append(Message::user(vec![Part::from(part)])));
        }
        if let Some(value) = config.value("event") {
            self.api.events().emit("deep.event", (1, value));
        }
        if let Some(value) = config.value("event with a list of arguments") {
            self.api.events().emit("deep.event", vec![json!(1), value]);
        }
        let result = next.run(ctx).await?;
        if let Some(value) = config.value("metadata after the turn") {
            ctx.metadata_mut().insert("deep".to_owned(), value);
        }
        if let Some(value) = config.value("message after the turn") {
            ctx.emit(MessageEvent::append(Message::user("with metadata").with_metadata("deep", value)));
        }
        Ok(result)
    }

    #[middleware(step)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if !is_deep(ctx.input()) {
            return next.run(ctx).await;
        }
        if let Some(value) = self.config.value("metadata of a step") {
            ctx.metadata_mut().insert("deep".to_owned(), value);
        }
        if let Some(value) = self.config.value("catalog") {
            ctx.tool_catalog_mut().insert(ToolItem::new("deep__more")?.parameters(schema(value)));
        }
        if let Some(value) = self.config.value("options of the model") {
            ctx.model_options_mut().provider.insert("deep".to_owned(), value);
        }
        let mut result = next.run(ctx).await?;
        if let Some(value) = self.config.value("metadata of a result") {
            result.metadata_mut().insert("deep".to_owned(), value);
        }
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn call(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let config = &self.config;
        if let Some(value) = config.value("arguments") {
            ctx.args_mut().insert("deep".to_owned(), value);
        }
        if let Some(value) = config.value("metadata of a call") {
            ctx.metadata_mut().insert("deep".to_owned(), value);
        }
        let mut result = match next.catch(ctx).await {
            Ok(result) => result,
            Err(failure) => return Err(failure.into_error()),
        };
        if let Some(value) = config.value("replaced output") {
            result.set_output(value);
        }
        if let Some(value) = config.value("arguments after the call") {
            ctx.args_mut().insert("deep".to_owned(), value);
        }
        Ok(result)
    }

    /// Fails with a draft of the value.
    #[middleware(toolCall, priority = -1)]
    async fn recover(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        match next.catch(ctx).await {
            Err(failure) if self.config.place == "recovered output" => {
                Ok(failure.recover(ctx, ToolCallDraft::output(nested(self.config.levels))))
            }
            other => Ok(other?),
        }
    }

    #[middleware(toolCall)]
    async fn fail(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if self.config.place == "recovered output" {
            return Err(Error::msg("as asked"));
        }
        next.run(ctx).await
    }
}
