//! Every content that the conversation may have after a kill, computed without the runtime.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use goondan::conversation::{Message, Part};
use goondan::{Error, Result};

use crate::child::Progress;
use crate::plan::{Plan, Tool, WINDOW};

/// One possible content: the messages as lines, and the state of the extension.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Snapshot {
    pub(crate) lines: Vec<String>,
    pub(crate) progress: Progress,
}

impl Snapshot {
    pub(crate) fn empty() -> Self {
        Self { lines: Vec::new(), progress: Progress::default() }
    }

    /// Returns the content after `turn` was committed.
    pub(crate) fn after(&self, turn: u64) -> Self {
        let mut lines = self.lines.clone();
        events_of(&self.lines, turn).into_iter().for_each(|event| event.apply(&mut lines));
        Self { lines, progress: Progress { last: turn, turns: self.progress.turns + 1 } }
    }

    /// Replaces the results of calls whose outcome is not known by those of calls that are done, and returns these
    /// calls: only one that must not run twice may have such a result.
    pub(crate) fn forgive_unknown(&mut self) -> Vec<String> {
        let mut forgiven = Vec::new();
        for line in &mut self.lines {
            let call = line.strip_prefix("tool: [").and_then(|line| line.strip_suffix(" unknown]"));
            if let Some(call) = call.filter(|call| is_pay(call)).map(str::to_owned) {
                *line = format!("tool: [{call} done]");
                forgiven.push(call);
            }
        }
        forgiven
    }

    /// Returns every possible content after a kill that came while `turn` was running.
    pub(crate) fn after_a_kill_in(&self, turn: u64) -> Vec<Self> {
        let mut snapshots = vec![self.after(turn), self.clone()];
        let mut lines = self.lines.clone();
        for event in events_of(&self.lines, turn) {
            event.apply(&mut lines);
            let closed = closing_results(&lines, turn).into_iter().map(|results| [lines.as_slice(), &results].concat());
            snapshots.extend(closed.map(|lines| Self { lines, progress: self.progress }));
        }
        snapshots
    }
}

enum Event {
    Append(String),
    Rewrite(usize),
    RemoveOldest,
    Truncate,
}

impl Event {
    fn apply(self, lines: &mut Vec<String>) {
        match self {
            Self::Append(line) => lines.push(line),
            Self::Rewrite(index) => lines[index].push('+'),
            Self::RemoveOldest => _ = lines.remove(0),
            Self::Truncate => lines.clear(),
        }
    }
}

/// Returns the events of a turn, in order.
fn events_of(before: &[String], turn: u64) -> Vec<Event> {
    let plan = Plan::of(turn);
    let mut lines: Vec<_> = before.iter().map(String::as_str).collect();
    let input = format!("user: {turn}");
    lines.push(&input);
    let mut events = vec![Event::Append(input.clone())];
    if plan.trims {
        let excess = lines.len().saturating_sub(WINDOW);
        lines.drain(..excess);
        events.extend((0..excess).map(|_| Event::RemoveOldest));
    }
    if let Some(index) = plan.rewrites.map(|index| index % lines.len())
        && !lines[index].contains('[')
    {
        events.push(Event::Rewrite(index));
    }
    if !plan.calls.is_empty() {
        events.push(Event::Append(call_line(turn, plan.calls.len())));
        events.extend((0..plan.calls.len()).map(|call| Event::Append(format!("tool: [{turn}.{call} done]"))));
    }
    events.push(Event::Append(format!("assistant: answer {turn}")));
    events.extend(plan.truncates.then_some(Event::Truncate));
    events.extend(plan.notes.then(|| Event::Append(format!("system: note {turn}"))));
    events
}

/// Returns the assistant message that requests `calls` tool calls.
fn call_line(turn: u64, calls: usize) -> String {
    let calls: Vec<_> = (0..calls).map(|call| format!("[{turn}.{call}]")).collect();
    format!("assistant: {}", calls.join(" "))
}

/// Returns the possible results that close the open calls in `lines`, one list for each possibility. Calls run one
/// after another unless all of them are `look`, so only the first open one can have been running its effect.
fn closing_results(lines: &[String], turn: u64) -> Vec<Vec<String>> {
    let calls = Plan::of(turn).calls;
    let asked = lines.contains(&call_line(turn, calls.len()));
    let answered = (0..calls.len()).filter(|call| lines.contains(&format!("tool: [{turn}.{call} done]"))).count();
    if !asked || answered == calls.len() {
        return vec![Vec::new()];
    }
    let close = |first: &str| {
        let rest = (answered + 1..calls.len()).map(|call| format!("tool: [{turn}.{call} interrupted]"));
        std::iter::once(format!("tool: [{turn}.{answered} {first}]")).chain(rest).collect()
    };
    let mut possible = vec![close("interrupted")];
    possible.extend((calls[answered] == Tool::Pay).then(|| close("unknown")));
    possible
}

/// Returns a message as one line.
pub(crate) fn line(message: &Message) -> String {
    let parts: Vec<_> = message.content().parts().iter().map(part).collect();
    format!("{}: {}", message.role().as_str(), parts.join(" "))
}

fn part(part: &Part) -> String {
    match part {
        Part::Text(part) => part.text.clone(),
        Part::ToolCall(call) => format!("[{}]", call.tool_call_id),
        Part::ToolResult(result) => {
            let text = result.output.to_text();
            let id = &result.tool_call_id;
            let outcome = match &*text {
                text if text == format!("did {id}") => "done",
                text if text.starts_with("error E_TOOL_INTERRUPTED") => "interrupted",
                text if text.starts_with("error E_TOOL_OUTCOME_UNKNOWN") => "unknown",
                other => other,
            };
            format!("[{id} {outcome}]")
        }
        other => format!("{other:?}"),
    }
}

/// EFFECT-01: the ledger contains no call twice, contains each `pay` call that is done, and no call that did not start.
pub(crate) fn check_ledger(ledger: &Path, lines: &[String]) -> Result<()> {
    let ledger = std::fs::read_to_string(ledger).unwrap_or_default();
    let mut runs: HashMap<&str, u32> = HashMap::new();
    ledger.lines().for_each(|call| *runs.entry(call).or_default() += 1);
    if let Some((call, runs)) = runs.iter().find(|(_, runs)| **runs > 1) {
        return Err(Error::msg(format!("the call {call} ran {runs} times")));
    }
    for line in lines {
        let Some((call, outcome)) =
            line.strip_prefix("tool: [").and_then(|line| line.trim_end_matches(']').split_once(' '))
        else {
            continue;
        };
        let ran = runs.contains_key(call);
        let fits = match outcome {
            "done" => ran == is_pay(call),
            "interrupted" => !ran,
            _ => true,
        };
        if !fits {
            return Err(Error::msg(format!("the result of the call {call} is `{outcome}`; in the ledger: {ran}")));
        }
    }
    Ok(())
}

fn is_pay(call: &str) -> bool {
    let numbers =
        call.split_once('.').and_then(|(turn, index)| Some((turn.parse().ok()?, index.parse::<usize>().ok()?)));
    numbers.is_some_and(|(turn, index)| Plan::of(turn).calls.get(index) == Some(&Tool::Pay))
}

/// Removes duplicates.
pub(crate) fn distinct(snapshots: impl IntoIterator<Item = Snapshot>) -> Vec<Snapshot> {
    let mut seen = HashSet::new();
    snapshots.into_iter().filter(|snapshot| seen.insert(snapshot.clone())).collect()
}
