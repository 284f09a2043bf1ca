//! PATTERN-LOG: the lines of the log, and that it does not change conversations.

use goondan::extension::LogLevel;
use goondan::model::ScriptItem;
use goondan::prelude::*;
use goondan::testing::{Chat, LogLine};
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

#[derive(Debug, Deserialize, JsonSchema)]
struct Input {
    text: String,
}

struct Echo;

/// A tool that returns its text, a tool that fails, and a layer that changes or refuses arguments.
#[goondan::extension(name = "echo")]
impl Echo {
    #[init]
    fn new() -> Self {
        Self
    }

    #[tool]
    async fn say(&self, input: Input) -> Result<String> {
        Ok(input.text)
    }

    #[tool]
    async fn fail(&self) -> Result<()> {
        Err(Error::new("E_ECHO", "nobody answers"))
    }

    #[middleware(toolCall)]
    async fn shout(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        match ctx.args_mut().get_mut("text") {
            Some(Value::String(text)) if text == "refuse" => Err(Error::new("E_ECHO_REFUSED", "refused")),
            Some(Value::String(text)) => {
                text.make_ascii_uppercase();
                next.run(ctx).await
            }
            _ => next.run(ctx).await,
        }
    }
}

/// Runs one turn, and returns its outcome, the conversation after it, and the lines of the extension.
async fn turn(script: &[ScriptItem], config: Option<Value>) -> (Result<TurnResult>, Vec<String>, Vec<LogLine>) {
    let mut chat = Chat::with::<Echo>(json!({})).script(script.to_vec()).agent(|agent| agent.hint("plan", "gold"));
    if let Some(config) = config {
        chat = chat.agent(|agent| agent.plugin("logging", "logging", config));
    }
    let chat = chat.start().await.unwrap();
    let outcome = chat.say("hello").await;
    let mut lines = chat.logs();
    lines.retain(|line| line.extension.as_deref() == Some("logging"));
    (outcome, chat.transcript().await, lines)
}

/// Returns a script of two steps, with a tool call in the first.
fn two_steps() -> [ScriptItem; 2] {
    [ScriptItem::call("echo__say", json!({ "text": "hi" })), ScriptItem::say("done")]
}

fn texts(lines: &[LogLine]) -> Vec<(LogLevel, &str)> {
    lines.iter().map(|line| (line.level, line.text.as_str())).collect()
}

#[both_linkages]
#[covers("PATTERN-LOG-01")]
async fn turns_and_steps_are_logged_at_info_with_their_times() {
    let (outcome, _, lines) = turn(&two_steps(), Some(json!({}))).await;
    let expected =
        ["turn started", "step started", "step completed", "step started", "step completed", "turn completed"];
    assert_eq!(texts(&lines), expected.map(|text| (LogLevel::Info, text)));
    let turn = outcome.unwrap().turn_id().to_string();
    for line in &lines {
        assert_eq!(line.fields["turn"], turn.as_str());
        assert_eq!(
            line.fields.get("elapsedMs").is_some_and(Value::is_u64),
            line.text.ends_with("completed"),
            "{line:?}"
        );
    }
    assert_eq!((&lines[2].fields["step"], &lines[2].fields["toolCalls"]), (&json!(0), &json!(1)));
    assert_eq!((&lines[4].fields["step"], &lines[4].fields["status"]), (&json!(1), &json!("completed")));
    assert_eq!(lines[5].fields["finishReason"], "text_response");
}

#[both_linkages]
#[covers("PATTERN-LOG-02")]
async fn a_failing_step_is_logged_at_error_and_its_error_goes_on_unchanged() {
    let script = [ScriptItem::fail("overloaded", false)];
    let (with, _, lines) = turn(&script, Some(json!({}))).await;
    let (without, ..) = turn(&script, None).await;
    let (with, without) = (with.unwrap_err(), without.unwrap_err());
    assert_eq!(with.report().to_string(), without.report().to_string());
    assert_eq!((with.code(), with.extension(), with.part()), (without.code(), None, None));
    assert_eq!(texts(&lines)[2..], [(LogLevel::Error, "step failed"), (LogLevel::Error, "turn failed")]);
    let step = &lines[2].fields;
    assert_eq!((&step["step"], &step["code"], &step["error"]), (&json!(0), &json!("E_MODEL"), &json!("overloaded")));
    assert!(step["elapsedMs"].is_u64());
}

#[both_linkages]
#[covers("PATTERN-LOG-03")]
async fn tool_calls_are_logged_at_debug_with_name_arguments_time_and_status() {
    let (_, _, lines) = turn(&two_steps(), Some(json!({ "level": "debug", "includeToolArgs": true }))).await;
    let calls: Vec<_> = lines.iter().filter(|line| line.level == LogLevel::Debug).collect();
    assert_eq!(calls.iter().map(|line| &*line.text).collect::<Vec<_>>(), ["tool call started", "tool call completed"]);
    for line in &calls {
        assert_eq!((&line.fields["tool"], &line.fields["args"]), (&json!("echo__say"), &json!({ "text": "hi" })));
    }
    assert_eq!(calls[1].fields["status"], "ok");
    assert!(calls[1].fields["elapsedMs"].is_u64());
}

#[both_linkages]
async fn an_error_of_a_tool_and_a_failure_of_a_layer_are_logged_differently() {
    let script = [
        ScriptItem::call("echo__fail", json!({})),
        ScriptItem::call("echo__say", json!({ "text": "refuse" })),
        ScriptItem::say("done"),
    ];
    let (_, _, lines) = turn(&script, Some(json!({ "level": "debug" }))).await;
    let calls: Vec<_> = lines.iter().filter(|line| line.text.starts_with("tool call")).collect();
    assert_eq!((calls[1].level, &*calls[1].text), (LogLevel::Debug, "tool call completed"));
    assert_eq!((&calls[1].fields["status"], &calls[1].fields["error"]["code"]), (&json!("error"), &json!("E_ECHO")));
    assert_eq!((calls[3].level, &*calls[3].text), (LogLevel::Error, "tool call failed"));
    assert_eq!(calls[3].fields["code"], "E_ECHO_REFUSED");
}

#[both_linkages]
#[covers("PATTERN-LOG-04")]
async fn the_config_says_what_is_logged() {
    let log = async |config| turn(&two_steps(), Some(config)).await.2;
    for (level, debug, info) in [("debug", 2, 6), ("info", 0, 6), ("warn", 0, 0), ("error", 0, 0)] {
        let lines = log(json!({ "level": level })).await;
        let count = |wanted| lines.iter().filter(|line| line.level == wanted).count();
        assert_eq!((count(LogLevel::Debug), count(LogLevel::Info)), (debug, info), "{level}");
    }
    let failing = [ScriptItem::fail("overloaded", false)];
    let (_, _, lines) = turn(&failing, Some(json!({ "level": "error" }))).await;
    assert_eq!(texts(&lines), [(LogLevel::Error, "step failed"), (LogLevel::Error, "turn failed")]);

    let lines = log(json!({ "level": "debug" })).await;
    assert!(lines.iter().all(|line| !line.fields.contains_key("args")), "arguments stay out unless asked for");
    let started = &lines[0].fields;
    assert_eq!((&started["input"], &started["metadata"]["plan"]), (&json!("message"), &json!("gold")));
    assert!(started["trace"].is_string());
    let started = &log(json!({ "includeTurnMetadata": false })).await[0].fields;
    assert_eq!(started.keys().collect::<Vec<_>>(), ["turn"]);
}

#[both_linkages]
#[covers("PATTERN-LOG-05")]
async fn a_conversation_is_the_same_with_and_without_the_log() {
    let everything = json!({ "level": "debug", "includeToolArgs": true });
    let script = [
        ScriptItem::call("echo__say", json!({ "text": "hi" })),
        ScriptItem::call("echo__fail", json!({})),
        ScriptItem::call("no__tool", json!({})),
        ScriptItem::say("done"),
    ];
    let (with, transcript_with, lines) = turn(&script, Some(everything)).await;
    let (without, transcript_without, no_lines) = turn(&script, None).await;
    let (with, without) = (with.unwrap(), without.unwrap());
    let summary = |turn: &TurnResult| {
        let calls: Vec<_> = turn.tool_calls().iter().map(|call| (call.name.clone(), call.status)).collect();
        (turn.text().into_owned(), turn.finish_reason(), turn.steps(), calls)
    };
    assert_eq!(summary(&with), summary(&without));
    assert_eq!(transcript_with, transcript_without);
    assert!(transcript_with.contains(&"tool: HI".to_owned()), "the tool got the arguments of the inner layer");
    assert_eq!((lines.len(), no_lines.len()), (16, 0));
}

#[both_linkages]
async fn a_wrong_config_is_refused() {
    let config = json!({ "level": "loud" });
    let chat = Chat::builder().agent(|agent| agent.plugin("logging", "logging", config));
    let error = chat.start().await.unwrap_err();
    assert_eq!((error.code(), error.part()), (&ErrorCode::EXT_CONFIG, Some("config")));
}
