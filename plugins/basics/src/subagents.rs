//! A tool that lets other agents work on several tasks at once.
// D-40

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::prelude::*;
use goondan::tool::{Effect, Presentation, Presenter, ShownCall, ToolHandler, ToolItem, ToolOutcome};
use goondan::{BoxFuture, Value, json};

/// The name of the tool.
const RUN: &str = "subagents__run";
/// The name of the agent itself for tasks.
const GENERAL: &str = "general";
/// The metadata key of a task that is worked on with tools that only read.
const READS: &str = "subagentsReads";
/// The longest wait of a task: longer than any turn.
const LONGEST: Duration = Duration::from_hours(1);

/// The settings.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The agents that can be given tasks, each with what it is good for. The model reads both.
    #[serde(default)]
    agents: BTreeMap<String, String>,
    /// The agent itself can be given tasks too, as `general`, which begins with an empty conversation. `reads`, the
    /// default, leaves it the tools that only read, and `acts` all of them. With `no`, there is no `general`.
    #[serde(default)]
    general: General,
    /// The most tasks of a call that run at once. Defaults to 8.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 256))]
    at_once: usize,
    /// The most tasks of a call. Defaults to 64.
    #[serde(default = "sixty_four")]
    #[schemars(range(min = 1, max = 1024))]
    max_tasks: usize,
    /// The most agents between the first one, which asks on behalf of a person, and one that works on a task. Defaults
    /// to 1: the agents that work give no tasks themselves.
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 16))]
    max_depth: usize,
}

/// The tools of the agent itself when it works on a task.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
enum General {
    No,
    #[default]
    Reads,
    Acts,
}

impl Config {
    /// Returns the agents that can be given tasks, each with what it is good for.
    fn offered(&self) -> impl Iterator<Item = (&str, &str)> {
        let general = match self.general {
            General::No => None,
            General::Reads => Some("does what you would do, with those of your tools that only read"),
            General::Acts => Some("does what you would do, with all your tools"),
        };
        let agents = self.agents.iter().map(|(agent, good_for)| (agent.as_str(), good_for.as_str()));
        agents.chain(general.map(|good_for| (GENERAL, good_for)))
    }
}

fn one() -> usize {
    1
}

fn eight() -> usize {
    8
}

fn sixty_four() -> usize {
    64
}

/// The input of the tool.
#[derive(Debug, Deserialize)]
struct Tasks {
    tasks: Vec<Task>,
}

#[derive(Debug, Deserialize)]
struct Task {
    agent: String,
    task: String,
}

/// The result of a task.
#[derive(Debug, Serialize)]
struct Done {
    agent: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// Lets other agents work on tasks, each in a conversation of its own.
pub struct Subagents {
    depth: Arc<AtomicUsize>,
    /// Whether the turn has only tools that read.
    reads: AtomicBool,
}

#[goondan::extension(name = "subagents", requires = ["agents"])]
impl Subagents {
    #[init]
    fn new(api: ExtensionApi, config: Config) -> Result<Self> {
        if config.general != General::No && config.agents.contains_key(GENERAL) {
            let message = "`general` is one of `agents`, and the agent itself works on tasks under this name";
            return Err(Error::msg(message).suggest("set `general: no`, or give the other agent another name"));
        }
        if config.offered().next().is_none() {
            return Err(Error::msg("there is no agent to give tasks to").suggest("name one in `agents`"));
        }
        let depth = Arc::<AtomicUsize>::default();
        let item = ToolItem::new(RUN)?.describe(description(&config)).parameters(parameters(&config));
        // The other agents answer each request once, also if it is made again.
        let item = item.effect(Effect::Idempotent).parallel().timeout(LONGEST + Duration::from_mins(1));
        api.tools().register(item, Run { config, depth: Arc::clone(&depth) })?;
        Ok(Self { depth, reads: AtomicBool::new(false) })
    }

    /// Takes note of how many agents have led to this turn.
    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.depth.store(ctx.input().callers.len(), Ordering::Relaxed);
        self.reads.store(ctx.input().metadata.contains_key(READS), Ordering::Relaxed);
        next.run(ctx).await
    }

    /// Takes away the tools that act. After all other layers, which may add some.
    #[middleware(step, priority = 2_000_000_000)]
    async fn step(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.reads.load(Ordering::Relaxed) {
            ctx.tool_catalog_mut().retain(|tool| tool.effect == Effect::Read);
        }
        next.run(ctx).await
    }
}

fn description(config: &Config) -> String {
    let mut text =
        "Gives tasks to other agents, which work on them at the same time, each on its own: they see nothing \
                    of this conversation nor of one another, so say in each task all that matters, and what the answer \
                    should have. Returns their answers in the order of the tasks. The agents:"
            .to_owned();
    for (agent, good_for) in config.offered() {
        text += &format!("\n- {agent}: {good_for}");
    }
    text
}

fn parameters(config: &Config) -> Value {
    let agents: Vec<_> = config.offered().map(|(agent, _)| agent).collect();
    json!({
        "type": "object",
        "properties": {
            "tasks": {
                "description": "The tasks, in any order: they run at the same time.",
                "type": "array",
                "minItems": 1,
                "maxItems": config.max_tasks,
                "items": {
                    "type": "object",
                    "properties": {
                        "agent": { "type": "string", "enum": agents, "description": "Who works on it." },
                        "task": { "type": "string", "minLength": 1, "description": "What it should do, in full." },
                    },
                    "required": ["agent", "task"],
                },
            },
        },
        "required": ["tasks"],
    })
}

/// The handler of the tool.
struct Run {
    config: Config,
    /// The number of agents that have led to the turn.
    depth: Arc<AtomicUsize>,
}

impl Run {
    /// Returns a request to an agent that is offered.
    fn request(&self, ctx: &ToolContext<'_>, agent: &str) -> AgentRequest {
        let is_general = agent == GENERAL && self.config.general != General::No;
        let target = if is_general { ctx.agent_name().as_str() } else { agent };
        let request = AgentRequest::new(target).ephemeral().timeout(LONGEST);
        match self.config.general {
            General::Reads if is_general => request.metadata(READS, true),
            _ => request,
        }
    }

    async fn run(&self, ctx: &ToolContext<'_>, Tasks { tasks }: Tasks) -> Result<Vec<Done>> {
        let depth = self.depth.load(Ordering::Relaxed);
        if depth >= self.config.max_depth {
            let message = format!("{depth} agents have led to this one, which gives no tasks to further ones");
            return Err(Error::msg(message).suggest("do the work yourself, or answer with what is left to do"));
        }
        let (count, ended) = (f64::from(u32::try_from(tasks.len()).unwrap_or(u32::MAX)), AtomicU32::new(0));
        ctx.progress(0.0, Some(count), "tasks");
        let ended = &ended;
        let work = tasks.into_iter().map(|Task { agent, task }| {
            Box::pin(async move {
                let request = self.request(ctx, &agent).input(task);
                let done = match ctx.agents().request(request).await {
                    Ok(answer) => Done { agent, answer: Some(answer.response), error: None },
                    Err(error) => Done { agent, answer: None, error: Some(error.report().to_string()) },
                };
                let ended = ended.fetch_add(1, Ordering::Relaxed) + 1;
                ctx.progress(ended.into(), Some(count), &format!("tasks, {} has ended", done.agent));
                done
            })
        });
        Ok(join_at_most(self.config.at_once, work.collect()).await)
    }
}

/// Runs futures, at most so many at a time. Returns their outputs in order.
async fn join_at_most<F: Future + Unpin>(most: usize, futures: Vec<F>) -> Vec<F::Output> {
    let mut all: Vec<_> = futures.into_iter().map(|future| (Some(future), None)).collect();
    poll_fn(|cx| {
        let mut running = 0;
        for (future, output) in &mut all {
            let Some(started) = future.as_mut().filter(|_| running < most) else { continue };
            match std::pin::Pin::new(started).poll(cx) {
                Poll::Ready(value) => (*future, *output) = (None, Some(value)),
                Poll::Pending => running += 1,
            }
        }
        if running > 0 { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    all.into_iter().filter_map(|(_, output)| output).collect()
}

impl ToolHandler for Run {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let done = self.run(ctx, json::from_value(input)?).await?;
            Ok(json!({ "results": done }).into())
        })
    }

    fn presenter(&self) -> Option<&dyn Presenter> {
        Some(&shown)
    }
}

/// Presents a call: the agents, and how many have failed.
// PRESENT-01
fn shown(call: &ShownCall<'_>) -> Presentation {
    let tasks = call.args().get("tasks").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let agents: Vec<_> = tasks.iter().filter_map(|task| task["agent"].as_str()).collect();
    let presentation = Presentation::new(agents.join(", "));
    let Some(results) = call.output("results").and_then(Value::as_array) else { return presentation };
    let failed = results.iter().filter(|done| done.get("error").is_some()).count();
    match failed {
        0 => presentation.outcome(ToolOutcome::ok(format!("{} done", results.len()))),
        failed => presentation.outcome(ToolOutcome::failed(format!("{failed} of {} failed", results.len()))),
    }
}
