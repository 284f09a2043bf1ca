//! Tool calls that wait for a decision, as people read them.
// ASK-01

use goondan::decision::{AskedQuestion, Wait};
use goondan::event::Shown;
use goondan::{Map, Value};

use super::shown::indented;
use super::{Style, Styled, diff, first_line};

/// How much of long arguments and differences is printed.
#[derive(Clone, Copy)]
pub(crate) enum Extent {
    Short,
    Whole,
}

impl Extent {
    fn lines(self) -> usize {
        match self {
            Self::Short => diff::MAX_LINES,
            Self::Whole => usize::MAX,
        }
    }

    fn chars(self) -> usize {
        match self {
            Self::Short => 4_000,
            Self::Whole => usize::MAX,
        }
    }
}

/// Appends a call with what its extensions show of it. The full name of the tool goes first: what the model and servers
/// say never stands alone.
pub(crate) fn call(page: Styled, wait: &Wait, extent: Extent) -> Styled {
    let wait = wait.masked();
    let page = page.paint(Style::Cyan, "? ").text(&wait.tool);
    let page = match wait.presentation.line.as_str() {
        "" => page,
        line => page.text("  ").text(&first_line(line, 200)),
    };
    let page = page.paint(Style::Dim, &format!("  ({})\n", first_line(wait.call.as_str(), 80)));
    let page = page.paint(Style::Dim, &arguments(&wait.args, extent));
    let page = wait.shown.iter().fold(page, |page, shown| match shown {
        Shown::Difference { diff } => diff::page(diff, extent.lines(), page),
        shown => match shown.to_string().as_str() {
            "" => page,
            text => page.text("  ").text(&indented(text)).text("\n"),
        },
    });
    if wait.again { page.text("  it is not what was approved before\n") } else { page }
}

/// Returns whether a part of a call is left out.
pub(crate) fn is_cut(wait: &Wait) -> bool {
    let lengths = [Extent::Short, Extent::Whole].map(|extent| call(Styled::new(false), wait, extent).as_str().len());
    lengths[0] != lengths[1]
}

/// Appends a question with the extension that asks it.
pub(crate) fn question(page: Styled, asked: &AskedQuestion) -> Styled {
    let text = asked.question.text.trim().replace('\n', "\n  ");
    page.text(&format!("  {} asks: {text}\n", asked.by.extension))
}

/// Returns calls and what is asked about them.
pub(crate) fn page(waits: &[Wait]) -> Styled {
    waits.iter().fold(Styled::new(false), |page, wait| {
        let page = call(page, wait, Extent::Short);
        let page = wait.questions.iter().fold(page, question);
        match wait.expires {
            Some(expires) => page.text(&format!("  rejected after {expires}\n")),
            None => page,
        }
    })
}

/// Returns the arguments, as JSON; long ones shortened, with their length.
fn arguments(args: &Map<String, Value>, extent: Extent) -> String {
    let json = match args.len() {
        0 => return String::new(),
        1 => serde_json::to_string(args),
        _ => serde_json::to_string_pretty(args),
    };
    // Maps of texts and values have JSON.
    let json = json.unwrap_or_default();
    let short: String = json.chars().take(extent.chars()).collect();
    let mut lines: Vec<_> = short.lines().take(extent.lines()).map(|line| format!("  {line}\n")).collect();
    if short.len() < json.len() || short.lines().count() > extent.lines() {
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
