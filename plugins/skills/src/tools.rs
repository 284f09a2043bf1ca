//! The tools of the model. They are registered at run time, because an empty config registers nothing.

use std::sync::Arc;
use std::time::Duration;

use goondan::prelude::*;
use goondan::tool::{Effect, LineTemplate, Presentation, Presenter, ShownCall, ToolHandler, ToolItem, ToolOutcome};
use goondan::{BoxFuture, Value, json};
use schemars::schema_for;

use crate::collection::Collection;
use crate::context::{CLOSE, OPEN, RUN};
use crate::run;

/// The longest time of a call: longer than its command, so that the error is about that.
const DEADLINE: Duration = Duration::from_secs(60 * 60);

/// Registers the tools.
///
/// # Errors
/// As `ToolsApi::register`.
pub(crate) fn register(skills: &Arc<Collection>) -> Result<()> {
    let add = |item: ToolItem, tool| skills.api.tools().register(item, Handler { skills: Arc::clone(skills), tool });
    let list = ToolItem::new("skills__list")?.describe("Lists the skills.").effect(Effect::Read);
    add(list.parameters(json!({ "type": "object", "properties": {} })), Tool::List)?;
    let open = ToolItem::new(OPEN)?
        .describe("Opens a skill: returns its instructions, and keeps them in the context until it is closed.");
    add(open.parameters(schema_for!(Name)).effect(Effect::Idempotent), Tool::Open)?;
    let close = ToolItem::new(CLOSE)?.describe("Closes a skill: removes its instructions from the context.");
    add(close.parameters(schema_for!(Name)).effect(Effect::Idempotent), Tool::Close)?;
    if skills.config.run {
        let run = ToolItem::new(RUN)?.describe("Runs a shell command in the directory of a skill.");
        add(run.parameters(schema_for!(Run)).timeout(DEADLINE), Tool::Run)?;
    }
    Ok(())
}

/// The input of `open` and `close`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Name {
    /// The name of the skill.
    name: String,
}

/// The input of `run`.
#[derive(Debug, Deserialize, JsonSchema)]
struct Run {
    /// The name of the skill.
    name: String,
    /// The command, such as `./deploy.sh production`.
    command: String,
    /// Further arguments. The shell does not interpret them.
    #[serde(default)]
    args: Vec<String>,
    /// The longest time of the command, in milliseconds.
    #[serde(default = "default_timeout")]
    #[schemars(range(min = 1, max = 3_540_000))]
    timeout: u64,
}

// PATTERN-SKILL-17
fn default_timeout() -> u64 {
    60_000
}

#[derive(Clone, Copy, Debug)]
enum Tool {
    List,
    Open,
    Close,
    Run,
}

struct Handler {
    skills: Arc<Collection>,
    tool: Tool,
}

impl ToolHandler for Handler {
    fn call<'a>(&'a self, ctx: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        let skills = &self.skills;
        Box::pin(async move {
            let reply = match self.tool {
                Tool::List => list(skills),
                Tool::Open => open(skills, json::from_value(input)?).await?,
                Tool::Close => {
                    let Name { name } = json::from_value(input)?;
                    json!({ "closed": skills.close(&name)?, "name": name })
                }
                Tool::Run => run(skills, ctx, json::from_value(input)?).await?,
            };
            Ok(reply.into())
        })
    }

    fn presenter(&self) -> Option<&dyn Presenter> {
        match self.tool {
            Tool::List => None,
            Tool::Open | Tool::Close => Some(&const { LineTemplate::new("{name}") }),
            Tool::Run => Some(&shown_run),
        }
    }
}

/// Presents a command: its text, its output and its end.
// PRESENT-01
fn shown_run(call: &ShownCall<'_>) -> Presentation {
    let presentation = Presentation::new(format!("{}: {}", call.arg("name"), call.arg("command")));
    if call.reply().is_none() {
        return presentation;
    }
    let outcome = match call.output("code").and_then(Value::as_i64) {
        Some(0) => ToolOutcome::ok(""),
        Some(code) => ToolOutcome::failed(format!("exit {code}")),
        None => ToolOutcome::failed("ended by a signal"),
    };
    let wrote = |stream| call.output(stream).and_then(Value::as_str).unwrap_or_default();
    presentation.outcome(outcome).output(format!("{}{}", wrote("stdout"), wrote("stderr")))
}

// PATTERN-SKILL-03, C-17
fn list(skills: &Collection) -> Value {
    let found = skills.found();
    let all: Value = found
        .in_order()
        .into_iter()
        .map(|(name, skill)| json!({ "name": name, "description": skill.description, "path": skill.path }))
        .collect();
    json!({ "skills": all, "items": all, "total": found.skills.len() })
}

// PATTERN-SKILL-04, PATTERN-SKILL-13
async fn open(skills: &Collection, Name { name }: Name) -> Result<Value> {
    let skill = skills.get(&name)?;
    let content = skills.content(&skill).await?;
    skills.open(&name)?;
    let hint = match skills.config.run {
        true => "`skills__run` runs commands in `dir`",
        false => "the files of the skill are in `dir`",
    };
    Ok(json!({ "name": name, "path": skill.path, "dir": skill.dir, "content": content, "hint": hint }))
}

// PATTERN-SKILL-16
async fn run(skills: &Collection, ctx: &ToolContext<'_>, Run { name, command, args, timeout }: Run) -> Result<Value> {
    let (dir, limit) = (skills.get(&name)?.dir, Duration::from_millis(timeout));
    let environment = &skills.environment;
    if let Some(note) = environment.note() {
        skills.api.logger().info(note);
    }
    let run::Ended { code, stdout, stderr } = run::run(ctx, environment, &dir, &command, &args, limit).await?;
    Ok(json!({ "code": code, "stdout": stdout, "stderr": stderr, "skill": name, "command": command, "args": args }))
}
