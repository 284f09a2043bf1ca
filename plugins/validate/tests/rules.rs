//! Rules in conversations: what the tool gets, what the model reads, what the log says.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use goondan::prelude::*;
use goondan::{Agent, ErrorCode, ScriptItem, ScriptedModel, Value, json};
use goondan_covers::covers;
use tracing_subscriber::fmt::MakeWriter;
use validate::Validate;

#[derive(Debug, Deserialize, JsonSchema)]
struct Command {
    command: String,
}

struct Shell;

/// A shell that answers with the command that it was given.
#[goondan::extension(name = "bash")]
impl Shell {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn run(&self, input: Command) -> Result<String> {
        Ok(input.command)
    }

    #[tool(name = "other__run")]
    async fn other(&self, input: Command) -> Result<String> {
        Ok(input.command)
    }

    #[middleware(toolCall)]
    async fn expand(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if let Some(Value::String(command)) = ctx.args_mut().get_mut("command") {
            *command = command.replace("$CLEAN", "rm -rf");
        }
        next.run(ctx).await
    }
}

#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Calls `tool` with `args`, and gives what the model reads, and the log.
async fn call(config: Value, tool: &str, args: Value) -> (String, String) {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone()).finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let script = [ScriptItem::call(tool, args.as_object().unwrap().clone()), ScriptItem::say("done")];
    let agent = Agent::builder("assistant").model(ScriptedModel::new(script));
    let agent = agent.extension::<Validate>(config).extension::<Shell>(json!({})).build().await.unwrap();
    let instance = agent.instance("user:42").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "done", "whatever a rule says, the turn goes on");
    let messages = instance.messages().await;
    let answer = messages.iter().find(|message| message.role() == Role::Tool).unwrap();
    let log = String::from_utf8(std::mem::take(&mut log.0.lock().unwrap())).unwrap();
    (answer.text().into_owned(), log)
}

fn command(text: &str) -> Value {
    json!({ "command": text })
}

#[tokio::test]
#[covers("PATTERN-VALIDATE-01")]
async fn shell_commands_are_cut_at_10000_characters_with_a_warning() {
    let long = "ü".repeat(10_001);
    let (answer, log) = call(Value::Null, "bash__run", command(&long)).await;
    assert_eq!(answer, "ü".repeat(10_000), "the handler got the cut command");
    let warning = log.lines().find(|line| line.contains("WARN")).unwrap();
    for part in ["an argument was cut to 10000 characters", "bash__run", "/command", "10001", "extension=validate"] {
        assert!(warning.contains(part), "{warning}");
    }
    let fits = "ü".repeat(10_000);
    assert_eq!(call(Value::Null, "bash__run", command(&fits)).await, (fits, String::new()));
    assert_eq!(call(Value::Null, "other__run", command(&long)).await, (long, String::new()));
}

#[tokio::test]
async fn a_refused_call_is_not_run_and_the_model_reads_why() {
    let config = json!({ "rules": [{ "tool": "bash__*", "path": "/command", "deny": ["sudo ", "rm -rf"] }] });
    let (answer, _) = call(config.clone(), "bash__run", command("cd /; rm -rf *")).await;
    assert!(answer.contains("error E_VALIDATE_REFUSED"), "{answer}");
    assert!(answer.contains("`bash__run` was not run, because the argument `/command` contains `rm -rf`"), "{answer}");
    assert_eq!(call(config.clone(), "bash__run", command("ls")).await.0, "ls");
    let (answer, _) = call(config, "bash__run", command("$CLEAN *")).await;
    assert!(answer.contains("E_VALIDATE_REFUSED"), "rules see what other extensions made of the arguments: {answer}");
}

#[tokio::test]
async fn rules_run_in_their_order_each_on_what_the_others_left() {
    let config = json!({ "rules": [
        { "tool": "*", "path": "/command", "replace": { "from": "~", "to": "/home/agent" } },
        { "tool": "bash__*", "maxLength": 11 },
    ] });
    assert_eq!(call(config.clone(), "bash__run", command("~/notes.txt")).await.0, "/home/agent");
    assert_eq!(call(config, "other__run", command("~/notes.txt")).await.0, "/home/agent/notes.txt");
}

#[tokio::test]
async fn a_required_argument_must_be_there() {
    let config = json!({ "rules": [{ "tool": "bash__run", "path": "/reason", "require": true }] });
    let (answer, _) = call(config, "bash__run", command("ls")).await;
    assert!(answer.contains("the argument `/reason` is missing"), "{answer}");
}

#[tokio::test]
async fn wrong_rules_are_refused_before_anything_runs() {
    for (wrong, place) in [
        (json!({ "tool": "*", "path": "command" }), "/rules/0/path"),
        (json!({ "tool": "", "maxLength": 3 }), "/rules/0/tool"),
        (json!({ "tool": "*", "maxLength": 0 }), "/rules/0/maxLength"),
        (json!({ "tool": "*", "deny": [""] }), "/rules/0/deny/0"),
        (json!({ "tool": "*", "replace": { "from": "", "to": "x" } }), "/rules/0/replace"),
        (json!({ "tool": "*", "maxlength": 3 }), "maxlength"),
        (json!({ "path": "/command" }), "tool"),
    ] {
        let config = json!({ "rules": [wrong] });
        let agent = Agent::builder("assistant").model(ScriptedModel::new([])).extension::<Validate>(config);
        let error = agent.build().await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_CONFIG);
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
    let config = json!({ "rules": [{ "tool": "*", "maxLength": 3 }, { "tool": "*", "path": "/command" }] });
    let agent = Agent::builder("assistant").model(ScriptedModel::new([])).extension::<Validate>(config);
    let error = agent.build().await.unwrap().instance("user:42").await.unwrap_err();
    assert_eq!((error.code(), &*error.message()), (&ErrorCode::EXT_CONFIG, "/rules/1 asks for nothing"));
}
