//! The search in a catalog. It is pure.

use std::collections::BTreeMap;

use goondan::tool::ToolItem;
use serde::Serialize;

/// A tool that was found.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Hit {
    pub(crate) name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) description: Option<String>,
}

/// Returns the first `limit` tools with all words of `query`, those with all words in the name first, and otherwise in
/// the order of the catalog. Words are parts of words, in upper or lower case, so that a query works in any script.
pub(crate) fn find<'a>(tools: impl Iterator<Item = &'a ToolItem>, query: &str, limit: usize) -> Vec<Hit> {
    let query = query.to_lowercase();
    let words: Vec<_> = query.split_whitespace().collect();
    let (mut by_name, mut by_description) = (Vec::new(), Vec::new());
    for tool in tools {
        // Names are ASCII.
        let name = tool.name.as_str().to_ascii_lowercase();
        let mut others = words.iter().filter(|word| !name.contains(**word)).peekable();
        if others.peek().is_none() {
            by_name.push(tool);
        } else if let Some(description) = &tool.description {
            let description = description.to_lowercase();
            if others.all(|word| description.contains(word)) {
                by_description.push(tool);
            }
        }
    }
    let hit = |tool: &ToolItem| Hit { name: tool.name.to_string(), description: tool.description.clone() };
    by_name.into_iter().chain(by_description).take(limit).map(hit).collect()
}

/// Returns how many tools each group has.
pub(crate) fn groups<'a>(tools: impl Iterator<Item = &'a ToolItem>) -> BTreeMap<String, usize> {
    let mut groups = BTreeMap::new();
    for tool in tools {
        let group = tool.name.as_str().split("__").next().unwrap_or_default();
        *groups.entry(group.to_owned()).or_default() += 1;
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(query: &str, limit: usize) -> Vec<String> {
        let tools = [
            ("github__list_issues", "Lists the open issues of a repository."),
            ("github__close", "Closes an issue."),
            ("files__read", "Reads a file. 파일을 읽습니다."),
            ("files__LIST", "Shows what is in a directory."),
            ("clock__now", ""),
        ];
        let tools: Vec<_> = tools.map(|(name, text)| ToolItem::new(name).unwrap().describe(text)).into();
        find(tools.iter(), query, limit).into_iter().map(|hit| hit.name).collect()
    }

    #[test]
    fn all_words_are_in_the_name_or_the_description() {
        assert_eq!(names("list", 9), ["github__list_issues", "files__LIST"]);
        assert_eq!(names("Issue", 9), ["github__list_issues", "github__close"], "names come first");
        assert_eq!(names("github REPOSITORY", 9), ["github__list_issues"], "one word is in each");
        assert_eq!(names("파일", 9), ["files__read"]);
        assert_eq!(names("issue", 1), ["github__list_issues"]);
        assert_eq!(names("weather", 9), [""; 0]);
        assert_eq!(names(" ", 9).len(), 5, "without words, all fit");
    }
}
