//! Processes that are killed while calls wait for decisions: the next one asks again, or goes on.
// ASK-01, ASK-02, PAIR-01

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

use goondan::conversation::Part;
use goondan::decision::{Decision, Question, Wait};
use goondan::event::AgentEvent;
use goondan::middleware::{FinishReason, ToolRequest};
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::name::ToolCallId;
use goondan::prelude::*;
use goondan::store::{FileStore, InstanceId};
use goondan::{Agent, BoxFuture, Instance, json};

use crate::steering::killed;

/// Asks about each call that acts, and writes what it has done to a file.
struct Desk {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    acts: PathBuf,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    number: u64,
}

#[goondan::extension(name = "desk")]
impl Desk {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(toolCall)]
    async fn ask(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() == "desk__act" && ctx.decision::<bool>()?.is_none() {
            ctx.ask(Question::new("Act?").expecting::<bool>());
        }
        next.run(ctx).await
    }

    /// Acts.
    #[tool(effect = once)]
    async fn act(&self, input: Input) -> Result<&'static str> {
        let mut acts = OpenOptions::new().append(true).create(true).open(&self.config.acts)?;
        acts.write_all(format!("{}\n", input.number).as_bytes())?;
        Ok("acted")
    }

    /// Does nothing.
    #[tool(effect = idempotent)]
    async fn note(&self) -> Result<&'static str> {
        Ok("noted")
    }
}

/// A model that calls three tools after each `work`, of which two are asked about, and then answers.
struct Working;

impl Model for Working {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let newest = request.messages().last();
        let number =
            newest.as_ref().and_then(|message| message.content.text().strip_prefix("work ")?.parse::<u64>().ok());
        let response = match number {
            Some(number) => {
                let args = |tool: &str| if tool == "desk__act" { json!({ "number": number }) } else { json!({}) };
                let call = |tool: &str| ToolRequest::new(ToolCallId::random(), tool, args(tool));
                ModelResponse::tool_calls([
                    call("desk__note"),
                    call("desk__act"),
                    call("desk__act"),
                    call("desk__note"),
                ])
            }
            None => ModelResponse::text("done"),
        };
        Box::pin(std::future::ready(Ok(response)))
    }
}

fn agent(dir: &Path) -> Result<Agent> {
    let agent = Agent::builder("deciding").model(Working).store(FileStore::open(dir.join("state"))?);
    agent.extension::<Desk>(json!({ "acts": dir.join("acts") })).build()
}

/// Runs turns from number `start` on, and decides about their calls, until it is killed. Prints the number of each that
/// has ended.
pub(crate) async fn child(dir: &Path, start: u64) -> Result<()> {
    let agent = agent(dir)?;
    for number in start.. {
        decided(&agent.instance(&key(number)).await?, number).await?;
        std::io::stdout().write_all(format!("{number}\n").as_bytes())?;
    }
    Ok(())
}

/// The conversation of a turn: each has a few, so that most kills come later than its opening.
fn key(number: u64) -> String {
    format!("after-{}", number - number % 5)
}

/// Whether the calls of a turn are rejected.
fn is_rejected(number: u64) -> bool {
    number.is_multiple_of(3)
}

async fn decided(instance: &Instance, number: u64) -> Result<()> {
    let event = AgentEvent::input(format!("work {number}")).with_id(format!("work-{number}"));
    let mut result = instance.run(event).await?;
    while result.finish_reason() == FinishReason::Suspended {
        let decide = |wait: &Wait| match is_rejected(number) {
            true => Decision::reject(wait.call.clone(), "no"),
            false => Decision::approve(wait.call.clone()),
        };
        let first = result.waits().first().map(decide);
        result = instance.decide(first).await?;
    }
    Ok(())
}

/// Kills `kills` processes at random moments, and then checks that no call ran without its decision or twice.
pub(crate) async fn run(kills: u64) -> Result<()> {
    let dir = tempfile::tempdir()?;
    let (mut next, mut random) = (0, fastrand::Rng::new());
    for _ in 0..kills {
        next = killed("deciding-child", dir.path(), next, random.u64(..60_000))?;
    }
    let agent = agent(dir.path())?;
    let instance = agent.instance(&key(next)).await?;
    decided(&instance, next).await?;
    instance.close().await?;
    let store = FileStore::open(dir.path().join("state"))?;
    let mut messages = Vec::new();
    for number in (0..=next).step_by(5) {
        let id = InstanceId { agent: "deciding".parse()?, key: key(number).parse()? };
        messages.extend(store.read(&id)?.messages);
    }
    let acts = fs::read_to_string(dir.path().join("acts")).unwrap_or_default();
    let (mut number, mut unknown, mut results, mut answers) = (None, 0, Vec::new(), 0);
    let mut turns = 0;
    for message in &messages {
        if let Some(begun) = message.text().strip_prefix("work ").and_then(|number| number.parse::<u64>().ok()) {
            if number.is_some_and(|last: u64| last + 1 != begun) {
                return Err(Error::msg(format!("the turn {begun} comes after {number:?}")));
            }
            (number, turns) = (Some(begun), turns + 1);
        }
        answers += usize::from(message.text() == "done");
        for part in message.content().parts() {
            if let (Part::ToolResult(result), Some(number)) = (part, number) {
                results.push((number, result.tool_name.clone(), result.output.to_text().into_owned()));
            }
        }
    }
    for number in 0..=next {
        let of_turn: Vec<_> = results.iter().filter(|(of, _, _)| *of == number).collect();
        let ran = acts.lines().filter(|line| *line == number.to_string()).count();
        let acted = of_turn.iter().filter(|(_, _, text)| text == "acted").count();
        let lost = of_turn.iter().filter(|(_, _, text)| text.contains("E_TOOL_OUTCOME_UNKNOWN")).count();
        let rejected = of_turn.iter().filter(|(_, _, text)| text.contains("E_TOOL_REJECTED: no")).count();
        unknown += lost;
        let is_whole = of_turn.len() == 4 && of_turn.iter().filter(|(_, _, text)| text == "noted").count() == 2;
        let is_right = match is_rejected(number) {
            true => rejected == 2 && ran == 0,
            false => acted + lost == 2 && (acted..=acted + lost).contains(&ran),
        };
        if !is_whole || !is_right {
            return Err(Error::msg(format!("the calls of turn {number} ran {ran} times: {of_turn:?}")));
        }
    }
    if turns != next + 1 || answers != turns as usize {
        return Err(Error::msg(format!("there are {turns} turns and {answers} answers after {next}")));
    }
    println!("{kills} kills, {turns} turns that waited, {unknown} calls of unknown outcome, none without its decision");
    Ok(())
}
