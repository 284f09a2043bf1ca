//! The output of the commands `/tools`, `/history` and `/state`.

use std::fmt::Write as _;

use goondan::conversation::Message;
use goondan::{Instance, Result};

use super::terminal::sanitize;
use crate::output::message;

/// The number of characters after which a part of a message is cut.
const MAX_CHARS: usize = 100;

/// Returns each tool with the first line of its description.
pub(crate) async fn tools(instance: &Instance) -> Result<String> {
    let tools = instance.tools().await?;
    let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
    let mut page = String::new();
    for tool in tools.iter() {
        let description = tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        // Writing to a string does not fail.
        _ = writeln!(page, "{:<width$}  {}", tool.name.as_str(), sanitize(description));
    }
    Ok(non_empty(page, "The agent has no tools.\n"))
}

/// Returns the messages, one line for each part.
pub(crate) async fn history(instance: &Instance) -> Result<String> {
    let messages = instance.messages().await?;
    Ok(non_empty(messages.iter().map(|message| lines(message)).collect(), "There are no messages yet.\n"))
}

fn lines(message: &Message) -> String {
    let parts = message::parts(message);
    parts.iter().map(|text| format!("{:<9}  {}\n", message.role().as_str(), short(&sanitize(text)))).collect()
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// Returns the state of each extension as JSON.
pub(crate) async fn state(instance: &Instance) -> Result<String> {
    let states = instance.states().await?;
    if states.is_empty() {
        return Ok("No extension has state.\n".to_owned());
    }
    Ok(serde_json::to_string_pretty(&states)? + "\n")
}

fn non_empty(page: String, otherwise: &str) -> String {
    if page.is_empty() { otherwise.to_owned() } else { page }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_to_one_line() {
        assert_eq!(short("a\n  b\tc"), "a b c");
        assert_eq!(short(&"ä".repeat(MAX_CHARS + 1)), "ä".repeat(MAX_CHARS) + "…");
    }
}
