//! The output of the commands `/history` and `/state`.

use std::fmt::Write as _;

use goondan::conversation::Message;
use goondan::{Instance, Result};

use crate::output::{clean, message};

/// The number of lines after which a part of a message is cut.
const MAX_LINES: usize = 3;
/// The width of the column with the roles, and of the gap behind it.
const ROLE: usize = 11;
/// The least width of the texts. A narrower terminal wraps them by itself.
const MIN_WIDTH: usize = 20;

/// Returns the messages, each part in a few lines of at most `columns` columns.
pub(crate) async fn history(instance: &Instance, columns: usize) -> Result<String> {
    let messages = instance.messages().await?;
    let page = messages.iter().map(|message| lines(message, columns)).collect();
    Ok(non_empty(page, "There are no messages yet.\n"))
}

fn lines(message: &Message, columns: usize) -> String {
    let mut page = String::new();
    for text in message::parts(message) {
        let role = [message.role().as_str()].into_iter().chain(std::iter::repeat(""));
        for (role, line) in role.zip(short(&text, columns.saturating_sub(ROLE))) {
            // Writing to a string does not fail.
            _ = writeln!(page, "{role:<ROLE$}{line}");
        }
    }
    page
}

/// Wraps `text` between words, into at least one line and at most [`MAX_LINES`].
fn short(text: &str, width: usize) -> Vec<String> {
    // One column less, for the sign of the cut.
    let width = width.max(MIN_WIDTH) - 1;
    // What is behind does not appear, as each line has a character for each column at most.
    let start: String = clean(text).chars().take((MAX_LINES + 1) * width).collect();
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<_> = textwrap::wrap(&line, width).into_iter().map(|line| line.into_owned()).collect();
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.iter_mut().skip(MAX_LINES - 1).for_each(|last| last.push('…'));
    }
    lines
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
    fn long_texts_are_wrapped_between_words_and_cut() {
        assert_eq!(short("a\n  b\tc", 80), ["a b c"]);
        assert_eq!(short("", 80), [""]);
        let words = "five words in each line ".repeat(9);
        assert_eq!(
            short(&words, 25),
            ["five words in each line", "five words in each line", "five words in each line…"]
        );
        assert_eq!(short(&"ä".repeat(100), 31)[2], "ä".repeat(30) + "…", "a word that fits nowhere is broken");
        assert_eq!(short(&"漢".repeat(100), 31)[0], "漢".repeat(15), "wide characters take two columns");
    }
}
