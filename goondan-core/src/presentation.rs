//! Presentation of a tool call for people: a line, its outcome and its output.
// PRESENT-01

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::secret::mask;

/// The most characters of the line.
const MAX_LINE: usize = 200;
/// The most characters of the words of an outcome.
const MAX_WORDS: usize = 120;

/// Presentation of a tool call for people. A text converts into a line without an outcome.
///
/// ```
/// use goondan::tool::{Presentation, ToolOutcome};
///
/// let begins = Presentation::from("cargo test -p core");
/// let failed = Presentation::new("cargo test -p core").outcome(ToolOutcome::failed("exit 101"));
/// assert_eq!(begins.line, failed.line);
/// assert_eq!(failed.to_string(), "cargo test -p core · exit 101");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Presentation {
    /// One line about the effect of the call. Of more than 200 characters, the first ones are shown.
    #[serde(default)]
    pub line: String,
    /// Outcome of the call, `None` before its end. If a presenter returns none for a call that has ended, the runtime
    /// derives one from the status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<ToolOutcome>,
    /// Output for people, such as the text that a command wrote. Defaults to the output for the model. Runtime events
    /// do not have it; the stream of the turn has it as `TurnUpdate::Output`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// Outcome of a tool call for people. It does not change the result for the model: a command that ended with exit
/// code 2 has run, and has failed for a person.
///
/// ```
/// use goondan::tool::ToolOutcome;
///
/// assert!(ToolOutcome::failed("exit 2").failed);
/// assert_eq!(ToolOutcome::ok("3 files").words, "3 files");
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ToolOutcome {
    /// Whether it failed.
    #[serde(default)]
    pub failed: bool,
    /// A few words, such as `exit 2`; at most 120 characters are shown.
    #[serde(default)]
    pub words: String,
}

impl ToolOutcome {
    /// The call did its work.
    pub fn ok(words: impl Into<String>) -> Self {
        Self { failed: false, words: words.into() }
    }

    /// The call did not do its work.
    pub fn failed(words: impl Into<String>) -> Self {
        Self { failed: true, words: words.into() }
    }
}

impl Presentation {
    /// A line without an outcome.
    pub fn new(line: impl Into<String>) -> Self {
        Self { line: line.into(), ..Self::default() }
    }

    /// Sets the outcome.
    #[must_use]
    pub fn outcome(self, outcome: ToolOutcome) -> Self {
        Self { outcome: Some(outcome), ..self }
    }

    /// Sets the output for people.
    #[must_use]
    pub fn output(self, output: impl Into<String>) -> Self {
        Self { output: Some(output.into()), ..self }
    }

    /// Returns the presentation of a call whose tool has no presenter: its arguments.
    pub fn of_arguments(args: &Map<String, Value>) -> Self {
        Self::new(match args.values().next() {
            Some(only) if args.len() == 1 => start_of(only),
            _ => {
                let named: Vec<_> = args.iter().map(|(name, value)| format!("{name}: {}", start_of(value))).collect();
                named.join(", ")
            }
        })
    }

    /// Returns the presentation with secrets masked, and with short lines without control characters. The output
    /// keeps such characters.
    #[doc(hidden)]
    #[must_use]
    pub fn cleaned(self) -> Self {
        Self {
            line: in_one_line(&self.line, MAX_LINE),
            outcome: self.outcome.map(|ToolOutcome { failed, words }| {
                let words = in_one_line(&words, MAX_WORDS);
                ToolOutcome { failed, words }
            }),
            output: self.output.map(|text| mask(&text).into_owned()),
        }
    }
}

impl<T: Into<String>> From<T> for Presentation {
    fn from(line: T) -> Self {
        Self::new(line)
    }
}

impl fmt::Display for Presentation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line)?;
        match &self.outcome {
            Some(outcome) if self.line.is_empty() => f.write_str(&outcome.words),
            Some(outcome) if !outcome.words.is_empty() => write!(f, " · {}", outcome.words),
            _ => Ok(()),
        }
    }
}

/// Replaces characters that would change how others are displayed.
const UNSEEN: char = '\u{fffd}';

/// Whether a character is text, and neither a control character nor one that changes the direction of others.
fn is_seen(char: char) -> bool {
    !(char.is_control() || matches!(char, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'))
}

/// Returns the text in one line of at most `limit` characters.
pub(crate) fn in_one_line(text: &str, limit: usize) -> String {
    let masked = mask(text);
    // As many words as there may be characters: words behind them are not looked at.
    let words = masked.split_whitespace().take(limit + 1);
    let mut line = String::new();
    for word in words {
        if !line.is_empty() {
            line.push(' ');
        }
        line.extend(word.chars().take(limit + 1).map(|char| if is_seen(char) { char } else { UNSEEN }));
    }
    cut(line.chars(), limit)
}

/// Returns the first `limit` characters of the text, whose lines it keeps.
pub(crate) fn in_lines(text: &str, limit: usize) -> String {
    let masked = mask(text);
    let chars = masked.chars().filter(|char| *char != '\r');
    cut(chars.map(|char| if is_seen(char) || matches!(char, '\n' | '\t') { char } else { UNSEEN }), limit)
}

/// Returns the first `limit` characters; an ellipsis is the last of them if there are more.
fn cut(mut chars: impl Iterator<Item = char>, limit: usize) -> String {
    let mut text: String = chars.by_ref().take(limit).collect();
    if chars.next().is_some() {
        text.pop();
        text.push('…');
    }
    text
}

/// Returns the start of an argument as text, of at least one character more than a line shows.
fn start_of(arg: &Value) -> String {
    match arg {
        Value::String(text) => text.chars().take(MAX_LINE + 1).collect(),
        other => {
            // A character has at most four bytes. The writing ends when there is no room.
            let mut start = [0; 4 * (MAX_LINE + 1)];
            let mut left = &mut start[..];
            let _ = serde_json::to_writer(&mut left, other);
            let left = left.len();
            String::from_utf8_lossy(&start[..start.len() - left]).into_owned()
        }
    }
}

/// Returns a text as it is, and another value as JSON.
pub(crate) fn text_of(value: &Value) -> Cow<'_, str> {
    match value {
        Value::String(text) => Cow::Borrowed(text),
        other => Cow::Owned(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::secret::Secret;

    #[test]
    fn the_arguments_are_what_is_shown_of_a_tool_that_says_nothing() {
        let line = |args: Value| Presentation::of_arguments(args.as_object().unwrap()).line;
        assert_eq!(line(json!({})), "");
        assert_eq!(line(json!({ "command": "ls -l" })), "ls -l");
        assert_eq!(line(json!({ "path": "a", "limit": 3, "tags": ["x"] })), r#"path: a, limit: 3, tags: ["x"]"#);
        let many = line(json!({ "all": vec!["日本語"; 1_000_000] }));
        assert!(many.starts_with(r#"["日本語","#) && (201..1_000).contains(&many.chars().count()), "{many}");
    }

    #[test]
    fn what_is_shown_is_one_line_of_visible_characters() {
        for (text, line) in [
            (" cargo  test\n -p core\t", "cargo test -p core"),
            ("\x1b[2Ja\u{202e}b\0", "\u{fffd}[2Ja\u{fffd}b\u{fffd}"),
            ("日本語", "日本語"),
        ] {
            assert_eq!(Presentation::new(text).cleaned().line, line);
        }
        let long = Presentation::new("ä".repeat(201)).cleaned().line;
        assert_eq!((long.chars().count(), long.ends_with("ä…")), (200, true));
        assert_eq!(Presentation::new("ä".repeat(200)).cleaned().line, "ä".repeat(200));
        let many = Presentation::new("a ".repeat(1_000_000)).cleaned().line;
        assert_eq!(many.chars().count(), 200);
    }

    #[test]
    fn secrets_are_masked() {
        let _secret = Secret::new("the-secret-4711");
        let text = "curl -u me:the-secret-4711";
        let shown = Presentation::new(text).outcome(ToolOutcome::failed(text)).output(text).cleaned();
        let Presentation { line, outcome, output } = shown;
        assert_eq!([line, outcome.unwrap().words, output.unwrap()], ["curl -u me:***"; 3]);
    }

    #[test]
    fn an_outcome_is_short_and_what_is_returned_stays_whole() {
        let output = "a\n".repeat(1_000);
        let shown = Presentation::new("a").output(&*output).outcome(ToolOutcome::ok("x\ny ".repeat(100))).cleaned();
        assert_eq!(shown.output.unwrap(), output);
        assert_eq!(shown.outcome.unwrap().words.chars().count(), MAX_WORDS);
    }

    #[test]
    fn a_presentation_of_a_later_version_is_read() {
        let json = json!({ "line": "a", "outcome": { "failed": true, "words": "no", "code": 2 }, "icon": "x" });
        let shown: Presentation = serde_json::from_value(json).unwrap();
        assert_eq!(shown, Presentation::new("a").outcome(ToolOutcome::failed("no")));
    }
}
