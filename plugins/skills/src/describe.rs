//! The description of a skill, from the text of its `SKILL.md`. It is pure.

use std::collections::BTreeMap;

/// The longest description, in characters.
const LONGEST: usize = 1024;

/// The head of a `SKILL.md`.
#[derive(Debug, PartialEq)]
pub(crate) struct About {
    /// The name in its front matter, if any.
    pub(crate) name: Option<String>,
    /// One line.
    pub(crate) description: String,
}

/// Returns what `text` says about the skill in the folder `folder`.
// FRONT-01, D-30, PATTERN-SKILL-10
pub(crate) fn describe(folder: &str, text: &str) -> About {
    let text = text.trim_start_matches('\u{feff}');
    let (front, body) = split(text).unwrap_or(("", text));
    let first_line = body.lines().next().unwrap_or_default().trim_start_matches('#');
    let description = member(front, "description").unwrap_or_else(|| one_line(first_line));
    // A file that begins with `---` has no front matter if there is no second such line.
    let says_something = !description.is_empty() && description != "---";
    About {
        name: member(front, "name"),
        description: if says_something { description } else { format!("Skill: {folder}") },
    }
}

/// Splits a text with front matter into that and the text after it, from its first line with text on.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let start = lines.next().filter(|line| line.trim_end() == "---")?.len();
    let mut end = start;
    for line in lines {
        if line.trim_end() == "---" {
            return Some((&text[start..end], text[end + line.len()..].trim_start()));
        }
        end += line.len();
    }
    None
}

/// Returns the text of a member of the front matter, on one line. Other members are not read, and need not be legal.
fn member(front: &str, key: &str) -> Option<String> {
    let value = |line: &'_ str| line.strip_prefix(key).is_some_and(|rest| rest.starts_with(':'));
    let mut lines = front.split_inclusive('\n').skip_while(|line| !value(line));
    let first = lines.next()?;
    let belongs = |line: &&str| line.starts_with([' ', '\t']) || line.trim().is_empty();
    let member: String = std::iter::once(first).chain(lines.take_while(belongs)).collect();
    let text = match serde_saphyr::from_str::<BTreeMap<String, String>>(&member) {
        Ok(mut members) => members.remove(key)?,
        // Such as `description: Use it when: always`, which is common, and no YAML.
        Err(_) => member[key.len() + 1..].to_owned(),
    };
    Some(one_line(&text)).filter(|line| !line.is_empty())
}

/// Returns the words on one line, if they are not too long.
fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(LONGEST) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use goondan_covers::covers;

    use super::*;

    fn description(text: &str) -> String {
        describe("deploy", text).description
    }

    #[test]
    #[covers("FRONT-01", "D-30")]
    fn the_front_matter_describes_the_skill() {
        for front in [
            "description: Deploys the shop.",
            "name: deploy\ndescription: \"Deploys the shop.\"\nlicense: MIT",
            "description: 'Deploys the shop.' # a comment",
            "description: |-\n  Deploys\n  the shop.\nname: deploy",
            "description: >\n  Deploys\n\n  the shop.\n",
            "description: Deploys\n  the shop.",
            "not: [legal\ndescription: Deploys the shop.\nallowed-tools: *",
            "description:\tDeploys the shop.",
        ] {
            assert_eq!(description(&format!("---\n{front}\n---\n# Title")), "Deploys the shop.", "{front}");
            let windows = format!("\u{feff}---\n{front}\n--- \n# Title").replace('\n', "\r\n");
            assert_eq!(description(&windows), "Deploys the shop.", "{front}");
        }
        let colons = "---\ndescription: Use it when: the \"shop\" is down, or: always\n---\n";
        assert_eq!(description(colons), "Use it when: the \"shop\" is down, or: always");
        let long = format!("---\ndescription: {}\n---\n", "é".repeat(2000));
        assert_eq!(description(&long), "é".repeat(1024));
        assert_eq!(describe("deploy", "---\nname: other\n---\n").name.as_deref(), Some("other"));
    }

    #[test]
    #[covers("FRONT-01", "D-30", "PATTERN-SKILL-10")]
    fn otherwise_its_first_line_does() {
        for (text, expected) in [
            ("# Deploy the shop\nmore", "Deploy the shop"),
            ("###Deploy  the shop ##", "Deploy the shop ##"),
            ("Deploy the shop", "Deploy the shop"),
            ("---\nname: deploy\n---\n\n# Deploy the shop\n", "Deploy the shop"),
            ("---\ndescription:\n---\n# Deploy the shop\n", "Deploy the shop"),
            ("", "Skill: deploy"),
            ("#\nmore", "Skill: deploy"),
            ("\n# Deploy", "Skill: deploy"),
            ("---\nname: deploy\n---\n", "Skill: deploy"),
            ("---\n", "Skill: deploy"),
            ("---\ndescription: without an end", "Skill: deploy"),
        ] {
            assert_eq!(description(text), expected, "{text:?}");
        }
    }
}
