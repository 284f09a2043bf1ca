//! Patterns with `*`, for any run of characters, and `?`, for any one.

/// Returns whether `text` fits `pattern` as a whole.
pub(crate) fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut next) = (0, 0);
    // Where the last `*` is, and where in the text what it stands for ends.
    let mut star = None;
    while next < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, next));
                at += 1;
            }
            Some(expected) if *expected == '?' || *expected == text[next] => (at, next) = (at + 1, next + 1),
            _ => {
                let Some((of_star, end)) = star else { return false };
                star = Some((of_star, end + 1));
                (at, next) = (of_star + 1, end + 1);
            }
        }
    }
    pattern[at..].iter().all(|rest| *rest == '*')
}

#[cfg(test)]
mod tests {
    use super::fits;

    #[test]
    fn stars_stand_for_any_run_of_characters() {
        for (pattern, text, expected) in [
            ("bash__*", "bash__exec", true),
            ("bash__*", "bash_", false),
            ("*rm -rf*", "cd / && rm -rf .", true),
            ("*rm -rf*", "rm -r -f .", false),
            ("./work/**", "./work/a/b.txt", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*", "", true),
            ("", "", true),
            ("", "a", false),
            ("*a*b*c", "xaybzbc", true),
            ("*a*b*c", "xaybzb", false),
            ("ä*", "äö", true),
        ] {
            assert_eq!(fits(pattern, text), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        assert!(!fits(&"*a".repeat(200), &"a".repeat(199)));
        assert!(!fits(&format!("{}b", "*a".repeat(50)), &"a".repeat(20_000)));
    }
}
