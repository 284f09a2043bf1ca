//! The cost of turns, computed from the stored runtime events of an instance.

use std::collections::HashMap;
use std::fmt;
use std::io::BufRead;
use std::sync::Arc;
use std::time::Duration;

use goondan::conversation::{Message, Source, Timestamp};
use goondan::event::{EventScope, KeptPrefix, RuntimeEvent, TokenUsage};
use goondan::model::ModelFinish;
use goondan::name::TurnId;
use serde::Serialize;

/// The cost of one turn. `Display` writes a line for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TurnCost {
    turn_id: TurnId,
    ended_at: Timestamp,
    duration_ms: u64,
    steps: u32,
    tool_calls: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_usage: Option<TokenUsage>,
    /// The tokens of the turn and of the turns of other agents that it has waited for, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    whole_usage: Option<TokenUsage>,
    /// Why the last answer of the model ended, if its provider says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    finish_reason: Option<ModelFinish>,
    /// The part that the requests of the turn kept of the requests before them.
    #[serde(skip_serializing_if = "Option::is_none")]
    kept_prefix: Option<KeptPrefixes>,
    /// Why the turn failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The parts that the requests of a turn kept: the sums, and each difference.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct KeptPrefixes {
    kept: u64,
    of: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    broken: Vec<BrokenPrefix>,
}

/// A request that did not begin with the whole one before.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
struct BrokenPrefix {
    turn_id: TurnId,
    step_index: u32,
    #[serde(flatten)]
    prefix: KeptPrefix,
}

/// Totals over the steps and model requests of a turn whose end has not been read yet.
#[derive(Default)]
struct StepTotals {
    count: u32,
    tool_calls: u32,
    tokens: Option<TokenUsage>,
    finish_reason: Option<ModelFinish>,
    kept_prefix: Option<KeptPrefixes>,
}

impl StepTotals {
    fn add_prefix(&mut self, turn_id: &TurnId, step_index: u32, prefix: KeptPrefix) {
        let all = self.kept_prefix.get_or_insert_default();
        (all.kept, all.of) = (all.kept + prefix.kept, all.of + prefix.of);
        if prefix.broken.is_some() {
            all.broken.push(BrokenPrefix { turn_id: turn_id.clone(), step_index, prefix });
        }
    }

    /// Returns the cost of the turn, which has ended.
    fn ended(self, scope: EventScope, duration: Duration) -> TurnCost {
        TurnCost {
            turn_id: scope.turn_id,
            ended_at: scope.timestamp,
            duration_ms: millis(duration),
            steps: self.count,
            tool_calls: self.tool_calls,
            token_usage: self.tokens,
            whole_usage: None,
            finish_reason: self.finish_reason,
            kept_prefix: self.kept_prefix,
            error: None,
        }
    }
}

impl KeptPrefixes {
    /// Returns the share that is kept, in per cent, unless there was nothing to keep. It is rounded down: 100 per cent
    /// are all.
    pub(crate) fn percent(&self) -> Option<u64> {
        u64::try_from((u128::from(self.kept) * 100).checked_div(self.of.into())?).ok()
    }
}

/// Returns the known beginnings of the requests of all turns.
pub(crate) fn kept_prefixes(costs: &[TurnCost]) -> Option<KeptPrefixes> {
    costs.iter().filter_map(|cost| cost.kept_prefix.clone()).reduce(|mut sum, turn| {
        (sum.kept, sum.of) = (sum.kept + turn.kept, sum.of + turn.of);
        sum.broken.extend(turn.broken);
        sum
    })
}

/// Returns the costs of the turns that these runtime events report, oldest first. Turns whose events are missing or
/// incomplete are left out: nothing else depends on these files, and they are never repaired.
pub(crate) fn of_turns(events: impl BufRead) -> Vec<TurnCost> {
    let mut running = HashMap::new();
    let lines = events.split(b'\n').map_while(Result::ok);
    lines.filter_map(|line| serde_json::from_slice(&line).ok()).filter_map(|event| add(&mut running, event)).collect()
}

/// Adds an event to the totals. Returns the cost of the turn that the event ends, unless the start of the turn is
/// missing.
fn add(running: &mut HashMap<TurnId, StepTotals>, event: RuntimeEvent) -> Option<TurnCost> {
    match event {
        RuntimeEvent::TurnStarted { scope } => {
            running.insert(scope.turn_id, StepTotals::default());
            None
        }
        RuntimeEvent::StepCompleted {
            scope, step, tool_call_count, token_usage, finish_reason, kept_prefix, ..
        } => {
            let steps = running.get_mut(&scope.turn_id)?;
            (steps.count, steps.tool_calls) = (steps.count + 1, steps.tool_calls + tool_call_count);
            steps.finish_reason = finish_reason;
            if let Some(prefix) = kept_prefix {
                steps.add_prefix(&scope.turn_id, step.step_index, prefix);
            }
            if let Some(tokens) = token_usage {
                *steps.tokens.get_or_insert_default() += tokens;
            }
            None
        }
        RuntimeEvent::ModelAsked { scope, token_usage: Some(tokens), .. } => {
            *running.get_mut(&scope.turn_id)?.tokens.get_or_insert_default() += tokens;
            None
        }
        RuntimeEvent::StepFailed { scope, .. } => {
            running.get_mut(&scope.turn_id)?.count += 1;
            None
        }
        RuntimeEvent::TurnCompleted { scope, step_count, duration, token_usage, whole_usage } => {
            let cost = running.remove(&scope.turn_id)?.ended(scope, duration);
            Some(TurnCost { steps: step_count, token_usage, whole_usage, ..cost })
        }
        RuntimeEvent::TurnFailed { scope, duration, error_message, token_usage, whole_usage, .. } => {
            let cost = running.remove(&scope.turn_id)?.ended(scope, duration);
            let token_usage = token_usage.or(cost.token_usage);
            Some(TurnCost { token_usage, whole_usage, error: Some(error_message), ..cost })
        }
        _ => None,
    }
}

/// Returns the cost of the turn that produced `messages`. `next` is the time of the next input, if any.
pub(crate) fn of<'a>(
    messages: &[Arc<Message>],
    next: Option<Timestamp>,
    costs: &'a [TurnCost],
) -> Option<&'a TurnCost> {
    let asked = messages.iter().find_map(|message| match message.source() {
        Source::Assistant { step_id } => step_id.rsplit_once("-step-").map(|(turn, _)| turn),
        _ => None,
    });
    // An extension may have replaced every answer.
    let turn = asked.or_else(|| messages.iter().rev().find_map(|message| message.turn()).map(|turn| turn.as_str()));
    // The messages of a turn that failed before the model answered do not contain its id. It ended between two inputs.
    let (begin, end) = (messages.first()?.created_at(), next);
    let within = |cost: &TurnCost| cost.ended_at >= begin && end.is_none_or(|end| cost.ended_at <= end);
    costs.iter().find(|cost| match turn {
        Some(turn) => cost.turn_id.as_str() == turn,
        None => cost.error.is_some() && within(cost),
    })
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

impl TurnCost {
    /// Returns the tokens of the turn with those of the turns of other agents that it has waited for.
    fn whole(&self) -> Option<TokenUsage> {
        self.whole_usage.or(self.token_usage)
    }
}

impl fmt::Display for TurnCost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { turn_id, duration_ms, steps, tool_calls, .. } = self;
        write!(f, "({turn_id}: ")?;
        match duration_ms {
            0..1_000 => write!(f, "{duration_ms} ms")?,
            _ => write!(f, "{}.{} s", duration_ms / 1_000, duration_ms % 1_000 / 100)?,
        }
        write!(f, ", {}, {}", counted(*steps, "step"), counted(*tool_calls, "tool call"))?;
        if let Some(usage) = self.whole() {
            write!(f, ", {}", tokens(&usage))?;
        }
        if self.whole_usage.is_some() {
            f.write_str(", those of other agents included")?;
        }
        if self.finish_reason == Some(ModelFinish::Length) {
            f.write_str(", cut off at the limit of tokens")?;
        }
        if let Some(percent) = self.kept_prefix.as_ref().and_then(KeptPrefixes::percent) {
            write!(f, ", {percent} % of requests kept")?;
        }
        f.write_str(if self.error.is_some() { ", failed)" } else { ")" })?;
        let broken = self.kept_prefix.iter().flat_map(|prefix| &prefix.broken);
        broken.take(MOST_BROKEN).try_for_each(|broken| write!(f, "\n  {broken}"))
    }
}

/// The most differences of a turn that are shown to people.
const MOST_BROKEN: usize = 5;

impl fmt::Display for BrokenPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { step_index, prefix: KeptPrefix { kept, of, broken, .. }, .. } = self;
        write!(f, "(step {step_index} kept {kept} of {of} characters of the request before")?;
        if let Some(broken) = broken {
            write!(f, ": {}", broken.part.as_str())?;
            match &broken.tool_name {
                Some(tool) => write!(f, ", `{tool}` {}", broken.change.as_str())?,
                None => write!(f, ", number {} {}", broken.index + 1, broken.change.as_str())?,
            }
            if let Some(extension) = &broken.extension_name {
                write!(f, " by {extension}")?;
            }
        }
        f.write_str(")")
    }
}

/// Returns the tokens that all turns used, with those of other agents that they have waited for, if the models report
/// them.
pub(crate) fn total(costs: &[TurnCost]) -> Option<TokenUsage> {
    costs.iter().filter_map(TurnCost::whole).reduce(|mut sum, usage| {
        sum += usage;
        sum
    })
}

/// Returns the number of tool calls of all turns.
pub(crate) fn calls(costs: &[TurnCost]) -> u32 {
    costs.iter().fold(0, |calls, cost| calls.saturating_add(cost.tool_calls))
}

/// Returns tokens and their cost as text.
pub(crate) fn tokens(usage: &TokenUsage) -> String {
    let cost = usage.cost.map(|cost| format!(", {cost}")).unwrap_or_default();
    format!("{} tokens in and {} out{cost}", usage.prompt_tokens, usage.completion_tokens)
}

fn counted(count: u32, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(kind: &str, members: &str) -> RuntimeEvent {
        let scope = concat!(
            r#""agentName":"a","instanceKey":"k","timestamp":"2026-01-31T12:00:00.000Z","turnId":"turn-1","#,
            r#""traceId":"0af7651916cd43dd8448eb211c80319c","spanId":"b7ad6b7169203331","#,
            r#""stepId":"turn-1-step-0","stepIndex":0"#,
        );
        serde_json::from_str(&format!("{{\"type\":\"{kind}\",{scope}{members}}}")).unwrap()
    }

    #[test]
    fn tokens_and_times_are_shown_when_they_are_known() {
        let mut running = HashMap::new();
        let tokens = r#","tokenUsage":{"promptTokens":9,"completionTokens":2,"totalTokens":11}"#;
        let step = format!(r#","toolCallCount":2,"duration":5{tokens}"#);
        assert_eq!(add(&mut running, event("step.completed", &step)), None, "its start is missing");
        assert_eq!(add(&mut running, event("turn.started", "")), None);
        assert_eq!(add(&mut running, event("step.completed", &step)), None);
        let end = format!(r#","stepCount":1,"duration":12345{tokens}"#);
        let cost = add(&mut running, event("turn.completed", &end)).unwrap();
        assert_eq!(cost.to_string(), "(turn-1: 12.3 s, 1 step, 2 tool calls, 9 tokens in and 2 out)");

        add(&mut running, event("turn.started", ""));
        add(&mut running, event("step.completed", &format!(r#"{step},"finishReason":"length""#)));
        let cost = add(&mut running, event("turn.completed", &end)).unwrap();
        assert!(cost.to_string().ends_with("2 out, cut off at the limit of tokens)"), "{cost}");
        assert_eq!(serde_json::json!(cost)["finishReason"], "length");

        let all = r#","keptPrefix":{"kept":100,"of":100}"#;
        let broken = r#""broken":{"part":"messages","index":0,"change":"removed","extensionName":"message-window"}"#;
        add(&mut running, event("turn.started", ""));
        add(&mut running, event("step.completed", &format!("{step}{all}")));
        add(&mut running, event("step.completed", &format!(r#"{step},"keptPrefix":{{"kept":20,"of":140,{broken}}}"#)));
        let cost = add(&mut running, event("turn.completed", &end)).unwrap();
        let expected = "2 out, 50 % of requests kept)\n  (step 0 kept 20 of 140 characters of the request before: \
             messages, number 1 removed by message-window)";
        assert!(cost.to_string().ends_with(expected), "{cost}");
        assert_eq!(serde_json::json!(cost)["keptPrefix"]["broken"][0]["broken"]["change"], "removed");

        add(&mut running, event("turn.started", ""));
        add(&mut running, event("step.completed", &step));
        add(&mut running, event("step.failed", r#","duration":5,"errorMessage":"no""#));
        let cost = add(&mut running, event("turn.failed", r#","duration":999,"errorMessage":"no""#)).unwrap();
        assert_eq!(cost.to_string(), "(turn-1: 999 ms, 2 steps, 2 tool calls, 9 tokens in and 2 out, failed)");
    }
}
