//! The code of an answer in colours, by the grammars of `syntect` and `two-face`.

use std::sync::LazyLock;

use syntect::parsing::{ParseState, Scope, ScopeStack, SyntaxSet};

use super::{Span, Style};

/// The longest line that is coloured, in bytes. Patterns may take long for longer ones.
const LONGEST: usize = 1000;

/// Loaded with the first block of code.
static GRAMMARS: LazyLock<SyntaxSet> = LazyLock::new(two_face::syntax::extra_newlines);

/// The style of each kind of code; of several that fit, the first one is taken.
static STYLES: LazyLock<Vec<(Scope, Style)>> = LazyLock::new(|| {
    let styles = [
        ("comment", Style::Dim),
        ("string", Style::Green),
        ("constant", Style::Yellow),
        ("entity.name.function", Style::Blue),
        ("support.function", Style::Blue),
        ("variable.function", Style::Blue),
        ("storage.type.function", Style::Magenta),
        ("storage.type", Style::Cyan),
        ("entity.name", Style::Cyan),
        ("support", Style::Cyan),
        ("storage", Style::Magenta),
        ("keyword.operator", Style::Dim),
        ("keyword", Style::Magenta),
        ("markup.inserted", Style::Green),
        ("markup.deleted", Style::Red),
        ("markup.heading", Style::Bold),
    ];
    // Each name is one that a scope may have.
    styles.into_iter().filter_map(|(name, style)| Some((Scope::new(name).ok()?, style))).collect()
});

/// A block of code in one language.
#[derive(Debug)]
pub(super) struct Highlighter {
    state: ParseState,
    scopes: ScopeStack,
}

impl Highlighter {
    /// Starts a block of code, unless its language is not known.
    pub(super) fn new(language: &str) -> Option<Self> {
        let grammar = GRAMMARS.find_syntax_by_token(language)?;
        Some(Self { state: ParseState::new(grammar), scopes: ScopeStack::new() })
    }

    /// Returns the next line in colours.
    pub(super) fn line(&mut self, line: &str) -> Vec<Span> {
        if line.len() > LONGEST {
            return vec![Span::fixed(line.to_owned(), &[])];
        }
        let operations = self.state.parse_line(&format!("{line}\n"), &GRAMMARS).unwrap_or_default();
        let (mut spans, mut at) = (Vec::new(), 0);
        for (end, operation) in operations {
            if let Some(text) = line.get(at..end.min(line.len())).filter(|text| !text.is_empty()) {
                spans.push(Span::fixed(text.to_owned(), self.style().as_slice()));
            }
            at = end.min(line.len());
            // A grammar that ends a scope that has not begun loses its colours, and nothing else.
            _ = self.scopes.apply(&operation);
        }
        if let Some(text) = line.get(at..).filter(|text| !text.is_empty()) {
            spans.push(Span::fixed(text.to_owned(), self.style().as_slice()));
        }
        spans
    }

    fn style(&self) -> Option<Style> {
        let style_of =
            |scope: &Scope| STYLES.iter().find(|(kind, _)| kind.is_prefix_of(*scope)).map(|(_, style)| *style);
        self.scopes.as_slice().iter().rev().find_map(style_of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn styled(language: &str, code: &str) -> String {
        let mut block = Highlighter::new(language).unwrap();
        let lines = code.lines().map(|line| {
            let spans = block.line(line);
            spans.iter().map(|span| format!("{:?}{}", span.styles, span.text)).collect::<String>()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn code_has_colours_over_several_lines() {
        assert_eq!(
            styled("rust", "/* a\nb */ let x = \"s\";"),
            "[Dim]/*[Dim] a\n[Dim]b [Dim]*/[] [Cyan]let[] x [Dim]=[] [Green]\"[Green]s[Green]\"[];"
        );
        assert_eq!(styled("diff", "+new\n-old"), "[Green]+[Green]new\n[Red]-[Red]old");
    }

    #[test]
    fn the_languages_of_everyday_work_are_known() {
        for language in [
            "rs", "py", "ts", "tsx", "js", "json", "toml", "yaml", "sh", "bash", "go", "c", "cpp", "java", "kotlin",
            "sql",
        ] {
            assert!(Highlighter::new(language).is_some(), "{language}");
        }
        assert!(Highlighter::new("no such language").is_none());
    }

    #[test]
    fn a_long_line_stays_as_it_is() {
        let line = "a".repeat(LONGEST + 1);
        assert_eq!(Highlighter::new("rust").unwrap().line(&line), [Span::fixed(line, &[])]);
    }
}
