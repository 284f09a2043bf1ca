//! Tool calls that wait for a decision, as people read them.
// ASK-01

use goondan::decision::{AnswerKind, AnswerOption, AskedQuestion, LiveWait, Question, Wait};
use goondan::event::Shown;
use goondan::{Map, Value};

use super::shown::indented;
use super::{Style, Styled, clean, diff, first_line};

/// The most answers to choose from that are listed.
const MAX_OPTIONS: usize = 50;
/// The most characters of one.
const MAX_TITLE: usize = 200;

/// The extent to which long arguments and differences are printed.
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

/// Appends a call with the notes of its extensions on it. The full name of the tool goes first: what the model and
/// servers say never stands alone.
pub(crate) fn call(page: Styled, wait: &Wait, extent: Extent) -> Styled {
    let wait = wait.masked();
    let page = page.paint(Style::Cyan, "? ").text(&wait.tool);
    let page = match wait.presentation.line.as_str() {
        "" => page,
        line => page.text("  ").text(&first_line(line, 200)),
    };
    let page = page.paint(Style::Dim, &format!("  ({})\n", first_line(wait.call.as_str(), 80)));
    // The question of a tool that asks has the important ones.
    let page = match wait.questions.iter().all(|asked| asked.of_handler) && !wait.questions.is_empty() {
        true => page,
        false => page.paint(Style::Dim, &arguments(&wait.args, extent)),
    };
    let page = wait.shown.iter().fold(page, |page, shown| match shown {
        Shown::Difference { diff } => diff::page(diff, extent.lines(), page),
        shown => match shown.to_string().as_str() {
            "" => page,
            text => page.text("  ").text(&indented(text)).text("\n"),
        },
    });
    if wait.again { page.text("  it is not what was approved before\n") } else { page }
}

/// Appends a live question, with the agents that wait for its answer.
// ASK-04
pub(crate) fn live(page: Styled, told: &LiveWait, extent: Extent) -> Styled {
    let page = call(page, &told.wait, extent);
    let agents: Vec<_> = told.agents.iter().map(|agent| agent.as_str()).collect();
    let page = match agents.len() {
        0 | 1 => page,
        _ => page.paint(Style::Dim, &format!("  {}\n", agents.join(" → "))),
    };
    told.wait.masked().questions.iter().fold(page, question)
}

/// Returns whether a part of a call is left out.
pub(crate) fn is_cut(wait: &Wait) -> bool {
    let lengths = [Extent::Short, Extent::Whole].map(|extent| call(Styled::new(false), wait, extent).as_str().len());
    lengths[0] != lengths[1]
}

/// Appends a question with the extension that asks it.
pub(crate) fn question(page: Styled, asked: &AskedQuestion) -> Styled {
    let Question { text, .. } = &asked.question;
    let short: String = text.trim().chars().take(Extent::Short.chars()).collect();
    let lines: Vec<_> = short.lines().take(Extent::Short.lines()).collect();
    let page = page.text(&format!("  {} asks: {}\n", asked.by.extension, lines.join("\n  ")));
    let page = match lines.len() < text.trim().lines().count() || short.len() < text.trim().len() {
        true => page.paint(Style::Dim, &format!("  … ({} characters)\n", text.chars().count())),
        false => page,
    };
    match asked.question.kind() {
        AnswerKind::Choose(options) | AnswerKind::ChooseSeveral(options) => {
            let line = |(index, option): (usize, &AnswerOption)| {
                format!("  {:>3}  {}\n", index + 1, first_line(&option.title, MAX_TITLE))
            };
            let lines: String = options.iter().enumerate().map(line).take(MAX_OPTIONS).collect();
            let page = page.text(&lines);
            match options.len().saturating_sub(MAX_OPTIONS) {
                0 => page,
                more => page.paint(Style::Dim, &format!("       … {more} more\n")),
            }
        }
        // The whole of it: its end says where it leads as much as its beginning.
        AnswerKind::Address(url) => {
            let page = page.text("  ").text(&clean(&url)).text("\n");
            match host(&url) {
                Some(host) if host.is_ascii() => page.paint(Style::Dim, &format!("  at {host}\n")),
                Some(host) => {
                    page.text(&format!("  at {}, a name with letters that may look like others\n", clean(host)))
                }
                None => page,
            }
        }
        _ => page,
    }
}

/// Returns the host that an address leads to.
fn host(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    authority.rsplit('@').next().filter(|host| !host.is_empty())
}

/// Returns calls and the questions about them.
pub(crate) fn page(waits: &[Wait]) -> Styled {
    waits.iter().fold(Styled::new(false), |page, wait| {
        let page = call(page, wait, Extent::Short);
        let page = wait.masked().questions.iter().fold(page, question);
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

    #[test]
    fn answers_and_addresses_are_shown() {
        let shown = |question: Question| {
            let asked = AskedQuestion::new(QuestionId::new("e".parse().unwrap(), "ask", None), question);
            super::question(Styled::new(false), &asked).as_str().to_owned()
        };
        assert_eq!(shown(Question::choose("Which?", ["a\nb", "c"])), "  e asks: Which?\n    1  a\n    2  c\n");
        let many = shown(Question::choose_several("Which?", (0..60).map(|number| number.to_string())));
        assert!(many.ends_with("   50  49\n       … 10 more\n"), "{many}");
        let address = |url: &str| shown(Question::for_address("Open it.", url));
        let url = "https://example.org@evil.example:8443/a?b#c";
        assert_eq!(address(url), format!("  e asks: Open it.\n  {url}\n  at evil.example:8443\n"));
        let long = shown(Question::new("a\n".repeat(1 << 19)));
        assert!(long.lines().count() == 41 && long.ends_with("  … (1048576 characters)\n"), "{}", long.len());
        assert!(address("https://exаmple.org/").ends_with("a name with letters that may look like others\n"));
    }
}
