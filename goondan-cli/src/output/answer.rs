//! Prints the result of a turn: its answer as text, or the whole result as one line of JSON.

use std::io;

use goondan::agent::{BackgroundTurn, TurnStream};
use goondan::event::{EventSource, TokenUsage};
use goondan::middleware::{FinishReason, ToolCallSummary, ToolError, TurnResult};
use goondan::name::{AgentName, InstanceKey, TurnId};
use goondan::{Error, Result};
use serde::Serialize;

use super::Stream;
use super::stream_line::StreamLines;

/// The format of printed turns.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AnswerFormat {
    Text,
    Json,
    /// As JSON, after the lines of [`stream`].
    Stream,
}

/// A turn in the output of `--json`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TurnLine<'a> {
    turn_id: Option<&'a TurnId>,
    finish_reason: FinishReason,
    response: Option<&'a str>,
    steps: u32,
    tool_calls: &'a [ToolCallSummary],
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<TokenUsage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ToolError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<BackgroundLine<'a>>,
}

/// Where a turn belongs that is no answer to an input of the user.
#[derive(Serialize)]
struct BackgroundLine<'a> {
    agent: &'a AgentName,
    instance: &'a InstanceKey,
    source: &'a EventSource,
    input: Option<&'a str>,
}

/// Prints what happens in `turn` to standard output, and returns its result. When standard output fails, the turn
/// goes on; printing its result fails too, and that error is reported.
pub(crate) async fn stream(mut turn: TurnStream) -> Result<TurnResult> {
    let (mut lines, mut open) = (StreamLines::default(), true);
    while let Some(update) = turn.next().await {
        if let Some(line) = lines.line(&update).filter(|_| open) {
            open = Stream::Out.data(format!("{line}\n").as_bytes()).is_ok();
        }
    }
    turn.finish().await
}

/// Prints the result of a turn to standard output; `background` if the turn is one. Of a failed turn,
/// [`AnswerFormat::Text`] prints nothing: the caller reports the error on standard error in both formats.
pub(crate) fn print(
    outcome: &Result<TurnResult>,
    format: AnswerFormat,
    background: Option<&BackgroundTurn>,
) -> io::Result<()> {
    match (format, outcome) {
        (AnswerFormat::Text, Ok(turn)) => {
            Stream::Out.data(format!("{}\n", turn.text()).as_bytes())?;
            report_cut(turn);
            Ok(())
        }
        (AnswerFormat::Text, Err(_)) => Ok(()),
        (AnswerFormat::Json, outcome) => Stream::Out.data(format!("{}\n", line(outcome, background)).as_bytes()),
        (AnswerFormat::Stream, outcome) => {
            let mut line = line(outcome, background);
            line["type"] = "turn".into();
            Stream::Out.data(format!("{line}\n").as_bytes())
        }
    }
}

/// Says on standard error that the answer was cut off, if it was.
// CUT-01
pub(crate) fn report_cut(turn: &TurnResult) {
    if turn.finish_reason() == FinishReason::Length {
        super::eprint(
            "the answer was cut off at the model's limit of tokens: `maxOutputTokens` of the model raises it\n",
        );
    }
}

fn line(outcome: &Result<TurnResult>, background: Option<&BackgroundTurn>) -> serde_json::Value {
    let text;
    let mut line = match outcome {
        Ok(turn) => {
            text = turn.text();
            TurnLine {
                turn_id: Some(turn.turn_id()),
                finish_reason: turn.finish_reason(),
                response: turn.response().map(|_| &*text),
                steps: turn.steps(),
                tool_calls: turn.tool_calls(),
                usage: turn.usage(),
                error: turn.error().map(ToolError::from),
                background: None,
            }
        }
        Err(error) => failed(error),
    };
    line.background = background.map(|BackgroundTurn { agent, instance, input, .. }| BackgroundLine {
        agent,
        instance,
        source: &input.source,
        input: input.input.as_deref(),
    });
    serde_json::json!(line)
}

fn failed(error: &Error) -> TurnLine<'_> {
    let turn = error.turn();
    TurnLine {
        turn_id: turn.map(|turn| &turn.id),
        finish_reason: FinishReason::Error,
        response: None,
        steps: turn.map_or(0, |turn| turn.steps),
        tool_calls: turn.map_or(&[], |turn| &turn.tool_calls),
        usage: None,
        error: Some(ToolError::from(error)),
        background: None,
    }
}
