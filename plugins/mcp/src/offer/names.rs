//! Legal names for the tools of servers, which may have any name.

/// The longest legal name of a tool.
const LONGEST: usize = 64;

/// The longest name of an extension that leaves room for the names of tools and a number.
pub(crate) const LONGEST_EXTENSION: usize = 48;

/// Returns `<extension>__<tool>` with legal characters, for an extension whose name is not too long. Of several tools
/// with the same legal name, the first keeps it, and the others get a number; `taken` says which names are in use.
// PATTERN-MCP-03, D-09
pub(crate) fn legal(extension: &str, tool: &str, taken: impl Fn(&str) -> bool) -> String {
    let legal: String = tool.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
    let words: Vec<_> = legal.split('_').filter(|word| !word.is_empty()).collect();
    let tool = if words.is_empty() { "tool".to_owned() } else { words.join("_") };
    let room = LONGEST - extension.len() - "__".len();
    let numbered = (2_u64..).map(|number| format!("-{number}"));
    let mut names = std::iter::once(String::new()).chain(numbered).map(|suffix| {
        let cut = &tool[..tool.len().min(room.saturating_sub(suffix.len()))];
        format!("{extension}__{}{suffix}", cut.trim_end_matches('_'))
    });
    // The numbers do not end.
    names.find(|name| !taken(name)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use goondan::name::ToolName;
    use proptest::prelude::*;

    use super::*;

    fn all(extension: &str, tools: &[String]) -> BTreeSet<String> {
        tools.iter().fold(BTreeSet::new(), |mut names, tool| {
            let name = legal(extension, tool, |name| names.contains(name));
            names.insert(name);
            names
        })
    }

    #[test]
    fn a_legal_name_is_kept_and_others_change_little() {
        let name = |tool| legal("github", tool, |_| false);
        assert_eq!(name("get-issue_2"), "github__get-issue_2");
        assert_eq!(name("odd.name__with/parts"), "github__odd_name_with_parts");
        assert_eq!([name("_"), name(""), name("글")], ["github__tool"; 3]);
        assert_eq!(name(&"x".repeat(90)), format!("github__{}", "x".repeat(56)));
        let tools = ["a.b", "a_b", "a b"].map(str::to_owned);
        assert_eq!(all("x", &tools), ["x__a_b", "x__a_b-2", "x__a_b-3"].map(str::to_owned).into());
    }

    proptest! {
        #[test]
        fn names_are_legal_and_differ(
            extension in "[a-z][a-z0-9]{0,47}",
            tools in prop::collection::vec(prop_oneof![any::<String>(), "[a_.-]{0,4}", "a{50,80}"], 0..40),
        ) {
            let names = all(&extension, &tools);
            prop_assert_eq!(names.len(), tools.len());
            for name in names {
                prop_assert!(ToolName::new(&name).is_ok(), "{}", name);
            }
        }
    }
}
