//! Child process: an agent that runs one turn after another and acknowledges each, until it is killed.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use goondan::conversation::{Content, Part};
use goondan::event::AgentEvent;
use goondan::middleware::ToolRequest;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::name::ToolCallId;
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, json};

use crate::plan::{Plan, WINDOW};

/// The key of the conversation.
pub(crate) const KEY: &str = "killed";
/// The name of the agent.
pub(crate) const AGENT: &str = "churner";

/// Runs turns, starting with the number `start`. Acknowledges each finished turn with one line on standard output. With
/// `same_events`, the event of a turn has the id that it had in an earlier process.
pub(crate) async fn run(dir: &Path, start: u64, same_events: bool) -> Result<()> {
    let instance = agent(dir).await?.instance(KEY).await?;
    for turn in start.. {
        instance.run(if same_events { event(turn) } else { AgentEvent::input(turn.to_string()) }).await?;
        // One write, so that the parent reads the whole line or nothing.
        std::io::stdout().write_all(format!("{turn}\n").as_bytes())?;
    }
    Ok(())
}

/// Returns the event of a turn, the same in each process.
pub(crate) fn event(turn: u64) -> AgentEvent {
    AgentEvent::input(turn.to_string()).with_id(format!("event-{turn}"))
}

/// Returns the agent whose files are in `dir`.
pub(crate) async fn agent(dir: &Path) -> Result<Agent> {
    // Of each process another one, so that some kills happen in a checkpoint.
    let limit = [1, 2_000, 1 << 18][std::process::id() as usize % 3];
    let store = FileStore::open(dir.join("store"))?.journal_limit(limit);
    let config = json!({ "ledger": dir.join("ledger") });
    Agent::builder(AGENT).model(Planned).store(store).extension::<Churn>(config).build()
}

/// A model that follows the plan of the turn.
struct Planned;

impl Model for Planned {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(std::future::ready(respond(&request)))
    }
}

fn respond(request: &ModelRequest<'_>) -> Result<ModelResponse> {
    let messages: Vec<_> = request.messages().collect();
    check_pairs(messages.iter().map(|message| &message.content))?;
    let asked = messages.iter().rfind(|message| message.role == Role::User);
    let turn = asked.and_then(|message| turn_of(&message.content.text())).ok_or_else(|| Error::msg("nothing asked"))?;
    let calls = Plan::of(turn).calls;
    if calls.is_empty() || messages.last().is_some_and(|message| message.role == Role::Tool) {
        return Ok(ModelResponse::text(format!("answer {turn}")));
    }
    let call = |(index, tool): (usize, &crate::plan::Tool)| {
        ToolRequest::new(ToolCallId::from(format!("{turn}.{index}").as_str()), tool.name(), json!({}))
    };
    Ok(ModelResponse::tool_calls(calls.iter().enumerate().map(call)))
}

/// PAIR-01: every call is followed by its result, and there are no other results.
fn check_pairs<'a>(contents: impl Iterator<Item = &'a Content>) -> Result<()> {
    let mut open = Vec::new();
    for part in contents.flat_map(Content::parts) {
        match part {
            Part::ToolCall(call) => open.push(&call.tool_call_id),
            Part::ToolResult(result) => match open.iter().position(|id| **id == result.tool_call_id) {
                Some(call) => _ = open.remove(call),
                None => return Err(Error::msg(format!("the result {} has no call", result.tool_call_id))),
            },
            _ => {}
        }
    }
    if open.is_empty() { Ok(()) } else { Err(Error::msg(format!("calls without result: {open:?}"))) }
}

/// Returns the number of a turn from its input, which may have been rewritten.
fn turn_of(input: &str) -> Option<u64> {
    input.trim_end_matches('+').parse().ok()
}

/// The state of the extension, which must match the conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
pub(crate) struct Progress {
    /// The last committed turn.
    pub(crate) last: u64,
    /// How many turns were committed.
    pub(crate) turns: u64,
}

/// Changes the conversation according to the plan, and has a tool of each effect.
struct Churn {
    api: ExtensionApi,
    ledger: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Config {
    ledger: PathBuf,
}

#[goondan::extension(name = "churn")]
impl Churn {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Self {
        Self { api, ledger: config.ledger }
    }

    #[middleware(turn)]
    async fn churn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let input = ctx.input().input.as_deref().unwrap_or_default();
        let turn = turn_of(input).ok_or_else(|| Error::msg("the input is no number"))?;
        let plan = Plan::of(turn);
        if plan.trims {
            let excess = ctx.conversation().len().saturating_sub(WINDOW);
            let oldest: Vec<_> = ctx.conversation().iter().take(excess).map(|message| message.to_id()).collect();
            oldest.into_iter().for_each(|id| ctx.emit(MessageEvent::remove(id)));
        }
        if let Some(index) = plan.rewrites {
            let index = index % ctx.conversation().len();
            let message = ctx.conversation().iter().nth(index).map(|message| message.to_message());
            if let Some(message) = message
                && let [Part::Text(part)] = message.content().parts()
            {
                let text = format!("{}+", part.text);
                ctx.emit(MessageEvent::replace(message.id().clone(), message.with_content(text)));
            }
        }
        let result = next.run(ctx).await?;
        if plan.truncates {
            ctx.emit(MessageEvent::truncate());
        }
        if plan.notes {
            ctx.emit(MessageEvent::append(Message::system(format!("note {turn}"))));
        }
        self.api
            .state()
            .set(&Progress { last: turn, turns: self.api.state().get::<Progress>()?.unwrap_or_default().turns + 1 })?;
        Ok(result)
    }

    /// Changes nothing.
    #[tool(effect = read)]
    async fn look(&self, ctx: &ToolContext<'_>) -> Result<String> {
        Ok(self.done(ctx))
    }

    /// May run twice.
    #[tool(effect = idempotent)]
    async fn set(&self, ctx: &ToolContext<'_>) -> Result<String> {
        std::fs::write(self.ledger.with_file_name("set"), ctx.call_id().as_str())?;
        Ok(self.done(ctx))
    }

    /// Must not run twice: every run is one line of the ledger.
    #[tool(effect = once)]
    async fn pay(&self, ctx: &ToolContext<'_>) -> Result<String> {
        let mut ledger = std::fs::File::options().append(true).create(true).open(&self.ledger)?;
        ledger.write_all(format!("{}\n", ctx.call_id()).as_bytes())?;
        Ok(self.done(ctx))
    }
}

impl Churn {
    /// Returns the answer of a tool after a delay, so that some kills happen during a call.
    fn done(&self, ctx: &ToolContext<'_>) -> String {
        std::thread::sleep(Duration::from_millis(2));
        format!("did {}", ctx.call_id())
    }
}
