//! The text about a conversation that was taken back.
// BACK-01

use std::sync::Arc;

use goondan::agent::Rewound;
use goondan::conversation::{Message, Part, Role};
use goondan::name::{ToolCallId, TurnId};
use goondan::tool::Presentation;

use super::{first_line, message};

/// The number of calls that are named.
const MAX_CALLS: usize = 20;
/// The number of characters of a call that are shown.
const MAX_CALL: usize = 100;

/// Lists the lost messages, and the acts of the calls of the turns, which stay. `is_read` says which tools change
/// nothing.
pub(crate) fn page(rewound: &Rewound, is_read: impl Fn(&str) -> bool) -> String {
    let (turns, messages) = (rewound.turns.len(), rewound.messages.len());
    if turns == 0 {
        return "there was nothing to take back\n".to_owned();
    }
    let mut page = format!("took back {} with {}\n", counted(turns, "turn"), counted(messages, "message"));
    let mut calls = calls(rewound, is_read);
    if calls.is_empty() {
        return page;
    }
    let more = calls.len().saturating_sub(MAX_CALLS);
    calls.truncate(MAX_CALLS);
    page.push_str("what these calls did stays, such as changes of files:\n");
    calls.iter().for_each(|call| page.push_str(&format!("  {call}\n")));
    if more > 0 {
        page.push_str(&format!("  … {more} more\n"));
    }
    page
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Returns the calls that may have changed something, each once.
fn calls(rewound: &Rewound, is_read: impl Fn(&str) -> bool) -> Vec<String> {
    let mut calls: Vec<String> = Vec::new();
    for part in rewound.messages.iter().flat_map(|message| message.content().parts().iter()) {
        let Part::ToolCall(call) = part else { continue };
        if is_read(&call.tool_name) {
            continue;
        }
        let line = presented(rewound, &call.tool_call_id)
            .or_else(|| call.input.as_object().map(Presentation::of_arguments))
            .map(|presentation| presentation.line);
        let call = first_line(&format!("{}  {}", call.tool_name, line.unwrap_or_default()), MAX_CALL);
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
    calls
}

/// Returns how the tool has presented a call, if the message with its result says so.
fn presented(rewound: &Rewound, call: &ToolCallId) -> Option<Presentation> {
    let is_result = |part: &Part| matches!(part, Part::ToolResult(result) if result.tool_call_id == *call);
    let answers = |message: &&Arc<Message>| message.content().parts().iter().any(is_result);
    message::presentation(rewound.messages.iter().find(answers)?)
}

/// Returns the text of the person with which the oldest of the turns began.
pub(crate) fn input(rewound: &Rewound) -> Option<String> {
    let input = rewound.messages.iter().find(|message| message.role() == Role::User)?;
    Some(input.text().into_owned()).filter(|text| !text.trim().is_empty())
}

/// Returns the turns to which a conversation can be taken back, one in a line, each with the beginning of its input.
pub(crate) fn turns<'a>(messages: impl Iterator<Item = (&'a TurnId, String)>) -> String {
    messages.map(|(turn, text)| format!("{turn}  {}\n", first_line(&text, MAX_CALL))).collect()
}
