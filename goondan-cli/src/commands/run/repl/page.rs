//! Owns what the commands of the conversation show.

use std::fmt::Write as _;

use goondan::{Instance, Message, Result};

use super::terminal::harmless;
use crate::output::message;

/// How many characters of each thing that was said are shown.
const SHORT: usize = 100;

/// Each tool with what it does.
pub(crate) async fn tools(instance: &Instance) -> Result<String> {
    let tools = instance.tools().await?;
    let width = tools.iter().map(|tool| tool.name.as_str().len()).max().unwrap_or(0);
    let mut page = String::new();
    for tool in tools.iter() {
        let does = tool.description.as_deref().and_then(|text| text.lines().next()).unwrap_or_default();
        // Writing into a string does not fail.
        _ = writeln!(page, "{:<width$}  {}", tool.name.as_str(), harmless(does));
    }
    Ok(or(page, "The agent has no tools.\n"))
}

/// What was said, a line for each thing.
pub(crate) async fn history(instance: &Instance) -> Result<String> {
    let messages = instance.messages().await?;
    Ok(or(messages.iter().map(|message| lines(message)).collect(), "Nothing was said yet.\n"))
}

fn lines(message: &Message) -> String {
    let said = message::parts(message);
    said.iter().map(|text| format!("{:<9}  {}\n", message.role().as_str(), short(&harmless(text)))).collect()
}

fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(SHORT) {
        None => line,
        Some((end, _)) => format!("{}…", &line[..end]),
    }
}

/// The state of each extension.
pub(crate) async fn state(instance: &Instance) -> Result<String> {
    let states = instance.states().await?;
    if states.is_empty() {
        return Ok("No extension remembers anything.\n".to_owned());
    }
    Ok(serde_json::to_string_pretty(&states)? + "\n")
}

fn or(page: String, otherwise: &str) -> String {
    if page.is_empty() { otherwise.to_owned() } else { page }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_said_is_cut_to_one_line() {
        assert_eq!(short("a\n  b\tc"), "a b c");
        assert_eq!(short(&"ä".repeat(SHORT + 1)), "ä".repeat(SHORT) + "…");
    }
}
