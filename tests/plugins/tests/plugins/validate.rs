//! PATTERN-VALIDATE: rules in conversations: the arguments of the tool, the result for the model, the log.

use goondan::extension::LogLevel;
use goondan::prelude::*;
use goondan::testing::{Chat, ChatBuilder, LogLine};
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

#[derive(Debug, Deserialize, JsonSchema)]
struct Command {
    command: String,
}

struct Shell;

/// A shell that returns its command.
#[goondan::extension(name = "shell")]
impl Shell {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool(name = "bash__run")]
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

fn chat(config: Value) -> ChatBuilder {
    Chat::builder().agent(|agent| agent.plugin("validate", "validate", config))
}

/// Calls `tool` with `command`, and returns the result that the model reads, and the log.
async fn call(config: Value, tool: &str, command: &str) -> (String, Vec<LogLine>) {
    let mut chat = self::chat(config).with::<Shell>(json!({})).start().await.unwrap();
    chat.call(tool, json!({ "command": command })).await.unwrap();
    let transcript = chat.transcript().await;
    assert_eq!(transcript.last().unwrap(), "assistant: done", "whatever a rule says, the turn goes on");
    let result = chat.last_request().transcript().pop().unwrap();
    (result.strip_prefix("tool: ").unwrap().to_owned(), chat.logs())
}

#[both_linkages]
#[covers("PATTERN-VALIDATE-01")]
async fn shell_commands_are_cut_at_10000_characters_with_a_warning() {
    let long = "ü".repeat(10_001);
    let (answer, log) = call(Value::Null, "bash__run", &long).await;
    assert_eq!(answer, "ü".repeat(10_000), "the handler got the cut command");
    let [warning] = &log[..] else { panic!("{log:?}") };
    assert_eq!((warning.level, warning.extension.as_deref()), (LogLevel::Warn, Some("validate")));
    assert_eq!(warning.text, "an argument was cut to 10000 characters");
    for (name, value) in [("tool", json!("bash__run")), ("path", json!("/command")), ("length", json!(10_001))] {
        assert_eq!(warning.fields[name], value);
    }
    let fits = "ü".repeat(10_000);
    assert_eq!(call(Value::Null, "bash__run", &fits).await, (fits, vec![]));
    assert_eq!(call(Value::Null, "other__run", &long).await, (long, vec![]));
}

#[both_linkages]
async fn a_refused_call_is_not_run_and_the_model_reads_why() {
    let config = json!({ "rules": [{ "tool": "bash__*", "path": "/command", "deny": ["sudo ", "rm -rf"] }] });
    let (answer, _) = call(config.clone(), "bash__run", "cd /; rm -rf *").await;
    assert!(answer.contains("error E_VALIDATE_REFUSED"), "{answer}");
    assert!(answer.contains("`bash__run` was not run, because the argument `/command` contains `rm -rf`"), "{answer}");
    assert_eq!(call(config.clone(), "bash__run", "ls").await.0, "ls");
    let (answer, _) = call(config, "bash__run", "$CLEAN *").await;
    assert!(
        answer.contains("E_VALIDATE_REFUSED"),
        "rules see the arguments as other extensions changed them: {answer}"
    );
}

#[both_linkages]
async fn rules_run_in_their_order_each_on_what_the_others_left() {
    let config = json!({ "rules": [
        { "tool": "*", "path": "/command", "replace": { "from": "~", "to": "/home/agent" } },
        { "tool": "bash__*", "maxLength": 11 },
    ] });
    assert_eq!(call(config.clone(), "bash__run", "~/notes.txt").await.0, "/home/agent");
    assert_eq!(call(config, "other__run", "~/notes.txt").await.0, "/home/agent/notes.txt");
}

#[both_linkages]
async fn a_call_without_a_required_argument_is_refused() {
    let config = json!({ "rules": [{ "tool": "bash__run", "path": "/reason", "require": true }] });
    let (answer, _) = call(config, "bash__run", "ls").await;
    assert!(answer.contains("the argument `/reason` is missing"), "{answer}");
}

#[both_linkages]
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
        let error = chat(json!({ "rules": [wrong] })).start().await.unwrap_err();
        assert_eq!((error.code(), error.part()), (&ErrorCode::EXT_CONFIG, Some("config")));
        assert!(error.to_string().contains(place), "{place}: {error}");
    }
    let config = json!({ "rules": [{ "tool": "*", "maxLength": 3 }, { "tool": "*", "path": "/command" }] });
    let error = chat(config).start().await.unwrap_err();
    assert_eq!((error.code(), error.part()), (&ErrorCode::EXT_CONFIG, Some("#[init]")));
    assert_eq!(error.message(), "/rules/1 asks for nothing");
}
