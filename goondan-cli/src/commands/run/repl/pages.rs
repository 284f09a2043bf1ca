//! The output of the commands `/history` and `/state`.

use std::fmt::Write as _;

use goondan::conversation::Message;
use goondan::store::{FileStore, InstanceId};
use goondan::{Instance, Result};

use super::usage;
use crate::output::{clean, cost, message};

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
    // The rest does not appear, as each line has a character for each column at most.
    let start: String = clean(text).chars().take((MAX_LINES + 1) * width).collect();
    let line = start.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut lines: Vec<_> = textwrap::wrap(&line, width).into_iter().map(|line| line.into_owned()).collect();
    if lines.len() > MAX_LINES {
        lines.truncate(MAX_LINES);
        lines.iter_mut().skip(MAX_LINES - 1).for_each(|last| last.push('…'));
    }
    lines
}

/// Returns the usage of all turns together.
pub(crate) fn cost(store: &FileStore, id: &InstanceId) -> Result<String> {
    let costs = cost::of_turns(store.runtime_events(id)?);
    let turns = costs.len();
    if turns == 0 {
        return Ok("no turn has ended yet\n".to_owned());
    }
    let mut page = format!("{turns} turn{}", if turns == 1 { "" } else { "s" });
    // Writing to a string does not fail.
    _ = match cost::total(&costs) {
        Some(tokens) => writeln!(page, " · {}", usage::of(&tokens, cost::calls(&costs))),
        None => writeln!(page, "; the model reports no tokens"),
    };
    if let Some(percent) = cost::kept_prefixes(&costs).and_then(|kept| kept.percent()) {
        _ = writeln!(page, "{percent} % of all requests were kept by the next");
    }
    Ok(page)
}

/// Returns a page whose lines have at most `columns` columns, broken between words. The rest of a line of a table
/// stands below its last column.
pub(crate) fn wrapped(page: &str, columns: usize) -> String {
    let columns = columns.max(MIN_WIDTH);
    let line = |line: &str| {
        let gap = line.trim_end().rfind("  ").map_or(0, |gap| textwrap::core::display_width(&line[..gap + 2]));
        let indent = " ".repeat(if gap <= columns / 2 { gap } else { 4 });
        textwrap::fill(line, textwrap::Options::new(columns).subsequent_indent(&indent)) + "\n"
    };
    clean(page).lines().map(line).collect()
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
    fn pages_are_wrapped_between_words_below_their_last_column() {
        let page = "/help  show this list\n  a__b  looks up the weather of any city\nAll other input is a message.\n";
        let narrow = "/help  show this list\n  a__b  looks up the\n        weather of any\n        city\nAll other input is a\nmessage.\n";
        assert_eq!(wrapped(page, 24), narrow);
        assert_eq!(wrapped(page, 80), page);
        let long = "a__name_that_is_long  described in words\n";
        assert_eq!(wrapped(long, 30), "a__name_that_is_long \n    described in words\n".replace(" \n", "\n"));
        assert_eq!(wrapped("天気予報を調べる  天気\n", 20), "天気予報を調べる  天\n    気\n", "between any of these");
    }

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
