//! Tools that answer with text, JSON, files and failures, and middlewares that see and change the answers.

use goondan::conversation::{FilePart, Part, TextPart, ToolOutput};
use goondan::middleware::ToolCallDraft;
use goondan::prelude::*;
use goondan::tool::{ReplyPart, ToolHandler, ToolItem};
use goondan::{BoxFuture, Value, json};

use crate::Log;
use crate::depth::nested;

/// Answers in every form.
pub struct Replies {
    log: Log,
    change: Option<Change>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct RepliesConfig {
    log: Log,
    /// What the middleware does with each answer.
    change: Option<Change>,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Change {
    /// Replaces it by a value.
    Value,
    /// Replaces it by a reply with a file.
    Reply,
    /// Replaces it by a reply of a tool that failed.
    Failed,
    /// Replaces it by an error.
    Error,
    /// Adds a file to it.
    Add,
    /// Fails, and recovers with a reply.
    Recover,
    /// Replaces it by a reply that is too deep.
    Deep,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Wanted {
    /// The form of the answer.
    form: Form,
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Form {
    Text,
    Json,
    File,
    Files,
    Failed,
    FailedFile,
    FailedJson,
    OfModel,
    Deep,
    DeepMember,
}

/// A picture of which there is no more than the beginning.
fn dot() -> FilePart {
    FilePart::from_bytes("image/png", b"\x89PNG\r\n\x1a\n").named("dot.png")
}

/// Returns a text part with a member that goondan does not know.
fn text_with(name: &str, value: &Value) -> Result<TextPart> {
    match serde_json::from_value(json!({ "type": "text", "text": "A dot:", name: value }))? {
        Part::Text(part) => Ok(part),
        other => Err(Error::msg(format!("{other:?}"))),
    }
}

fn reply(form: Form) -> Result<ToolReply> {
    Ok(match form {
        Form::Text => ToolReply::text("plain"),
        Form::Json => ToolReply::json(vec![1, 2])?,
        Form::File => dot().into(),
        Form::Files => ToolReply::content([
            "before".into(),
            dot().into(),
            ReplyPart::Text(text_with("annotations", &json!({ "audience": ["user"] }))?),
            FilePart::new("application/pdf", "https://example.org/paper.pdf").into(),
        ]),
        Form::Failed => ToolReply::text("there is no such city").failed(),
        Form::FailedFile => ToolReply::text("it looks like this:").file(dot()).failed(),
        Form::FailedJson => ToolReply::json(json!({ "status": 404 }))?.failed(),
        Form::OfModel => {
            let data = json!({ "api": "a", "model": "m", "rest": {} });
            ToolReply::content([ReplyPart::Text(text_with("provider", &data)?)])
        }
        Form::Deep => ToolReply::from(nested(65)).failed(),
        Form::DeepMember => ToolReply::content([ReplyPart::Text(text_with("deep", &nested(65))?)]),
    })
}

/// A tool that is registered by hand.
struct ByHand;

impl ToolHandler for ByHand {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async { Ok(ToolReply::text("A dot:").file(dot())) })
    }
}

#[goondan::extension(name = "replies")]
impl Replies {
    #[init]
    fn new(api: ExtensionApi, config: RepliesConfig) -> Result<Self> {
        api.tools().register(ToolItem::new("replies__by-hand")?, ByHand)?;
        Ok(Self { log: config.log, change: config.change })
    }

    /// Answers in the form that is asked for.
    #[tool]
    async fn make(&self, wanted: Wanted) -> Result<ToolReply> {
        reply(wanted.form)
    }

    /// The same, on a thread of its own, with another type of error.
    #[tool(blocking)]
    fn slowly(&self, wanted: Wanted) -> std::result::Result<ToolReply, std::fmt::Error> {
        reply(wanted.form).map_err(|_| std::fmt::Error)
    }

    /// Returns JSON that looks like a reply.
    #[tool]
    async fn lookalike(&self) -> Result<Value> {
        let content = json!([{ "type": "text", "text": "plain JSON" }]);
        Ok(json!({ "content": content, "output": { "type": "content", "value": content }, "isError": true }))
    }

    #[middleware(step)]
    async fn see_step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let result = next.run(ctx).await?;
        for result in result.tool_results() {
            self.log.write(format!("step: {}", described(result)));
        }
        Ok(result)
    }

    #[middleware(toolCall, priority = -1)]
    async fn see(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let result = next.run(ctx).await?;
        self.log.write(described(&result));
        Ok(result)
    }

    #[middleware(toolCall)]
    async fn change(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = match next.catch(ctx).await {
            Ok(result) => result,
            Err(failure) => {
                return Ok(failure.recover(ctx, ToolCallDraft::output(ToolReply::text("recovered").file(dot()))));
            }
        };
        match self.change {
            None | Some(Change::Recover) => {}
            Some(Change::Value) => result.set_output(json!({ "n": 1 })),
            Some(Change::Reply) => result.set_output(ToolReply::text("another:").file(dot())),
            Some(Change::Failed) => result.set_output(ToolReply::text("no").failed()),
            Some(Change::Error) => result.set_error(Error::new("E_OWN", "not allowed")),
            Some(Change::Add) => {
                let reply = result.to_reply().unwrap_or_else(|| ToolReply::text("nothing"));
                result.set_output(reply.file(FilePart::new("image/gif", "https://example.org/a.gif")));
                // Its own change, before the result is returned.
                self.log.write(format!("changed: {}", described(&result)));
            }
            Some(Change::Deep) => result.set_output(ToolReply::from(nested(65)).failed()),
        }
        Ok(result)
    }

    #[middleware(toolCall, priority = 1)]
    async fn fail(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        match self.change {
            Some(Change::Recover) => Err(Error::msg("as asked")),
            _ => next.run(ctx).await,
        }
    }
}

/// Returns everything that a middleware can see of a result.
fn described(result: &ToolCallResult) -> String {
    let error = result.error().map(|error| (error.code.as_deref().unwrap_or_default(), &error.message));
    let reply = result.to_reply().map(|reply| (reply.is_error(), reply.output() == &result.to_tool_output()));
    let files = match result.to_tool_output() {
        ToolOutput::Content(parts) => parts.iter().filter(|part| matches!(part, Part::File(_))).count(),
        _ => 0,
    };
    json!({
        "status": result.status(), "error": error, "output": result.output(), "reply": reply, "files": files,
    })
    .to_string()
}
