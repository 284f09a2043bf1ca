//! Tool calls that wait for a decision, as people read them.
// ASK-01

use goondan::decision::{AskedQuestion, Wait};
use goondan::{Map, Value};

use super::{Style, Styled, first_line};

/// The most lines of arguments.
const MAX_LINES: usize = 40;
/// The most characters of arguments.
const MAX_CHARS: usize = 4_000;

/// Returns a call, and what is asked about it. The full name of the tool goes first: what the model and servers say never
/// stands alone.
pub(crate) fn call(page: Styled, wait: &Wait) -> Styled {
    let wait = wait.masked();
    let page = page.paint(Style::Cyan, "? ").text(&wait.tool);
    let page = match wait.presentation.line.as_str() {
        "" => page,
        line => page.text("  ").text(&first_line(line, 200)),
    };
    let page = page.paint(Style::Dim, &format!("  ({})\n", first_line(wait.call.as_str(), 80)));
    let page = page.paint(Style::Dim, &arguments(&wait.args));
    if wait.again { page.text("  the arguments are not those that were approved before\n") } else { page }
}

/// Returns a question with the extension that asks it.
pub(crate) fn question(page: Styled, asked: &AskedQuestion) -> Styled {
    let text = asked.question.text.trim().replace('\n', "\n  ");
    page.text(&format!("  {} asks: {text}\n", asked.by.extension))
}

/// Returns calls and what is asked about them.
pub(crate) fn page(waits: &[Wait]) -> Styled {
    waits.iter().fold(Styled::new(false), |page, wait| {
        let page = call(page, wait);
        let page = wait.questions.iter().fold(page, question);
        match wait.expires {
            Some(expires) => page.text(&format!("  rejected after {expires}\n")),
            None => page,
        }
    })
}

/// Returns the arguments, as JSON; long ones shortened, with their length.
fn arguments(args: &Map<String, Value>) -> String {
    let json = match args.len() {
        0 => return String::new(),
        1 => serde_json::to_string(args),
        _ => serde_json::to_string_pretty(args),
    };
    // Maps of texts and values have JSON.
    let json = json.unwrap_or_default();
    let short: String = json.chars().take(MAX_CHARS).collect();
    let mut lines: Vec<_> = short.lines().take(MAX_LINES).map(|line| format!("  {line}\n")).collect();
    if short.len() < json.len() || short.lines().count() > MAX_LINES {
        lines.push(format!("  … ({} characters)\n", json.chars().count()));
    }
    lines.concat()
}

#[cfg(test)]
mod tests {
    use goondan::decision::{Question, QuestionId};

    use super::*;

    #[test]
    fn long_arguments_are_shortened_with_their_length() {
        let mut args = Map::new();
        args.insert("text".to_owned(), "x".repeat(1 << 20).into());
        let wait = Wait::new("call-1".into(), "fs__write", args);
        let id = QuestionId::new("approval".parse().unwrap(), "ask", None);
        let wait = wait.question(AskedQuestion::new(id, Question::new("Write\n\x1b[2J it?")));
        let page = page(&[wait]);
        let page = page.as_str();
        assert!(page.starts_with("? fs__write  (call-1)\n  {\"text\":\"xxx"), "{}", &page[..40]);
        assert!(page.contains("… (1048587 characters)\n") && page.len() < 5_000, "{}", page.len());
        assert!(page.ends_with("  approval asks: Write\n  ␛[2J it?\n"), "{page}");
    }
}
