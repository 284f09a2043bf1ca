//! Suggestions for misspelt names, and lists of names in messages.

/// Returns the candidate that is most like `word`, unless all of them are too different to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Names have at most 63 characters; the cut bounds the work for anything longer.
    let word: Vec<char> = word.chars().flat_map(char::to_lowercase).take(65).collect();
    let near = |candidate: &'a str| {
        let other: Vec<char> = candidate.chars().flat_map(char::to_lowercase).take(65).collect();
        let distance = distance(&word, &other);
        (distance <= word.len().max(other.len()).div_ceil(3)).then_some((distance, candidate))
    };
    candidates.into_iter().filter_map(near).min().map(|(_, candidate)| candidate)
}

/// The number of characters to add, remove, replace or swap with their neighbour to turn `a` into `b`.
fn distance(a: &[char], b: &[char]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut row = vec![i + 1];
        for (j, y) in b.iter().enumerate() {
            let mut cost = (last[j] + usize::from(x != y)).min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && *x == b[j - 1] && a[i - 1] == *y {
                cost = cost.min(before_last[j - 1] + 1);
            }
            row.push(cost);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

/// A guess as the end of a message: ``; did you mean `a`?``; nothing if there is no guess.
pub fn did_you_mean(guess: Option<&str>) -> String {
    guess.map_or_else(String::new, |guess| format!("; did you mean `{guess}`?"))
}

/// `` `a`, `b` or `c` ``; `nothing` for an empty list.
pub fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    let mut quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match (quoted.pop(), quoted.is_empty()) {
        (None, _) => "nothing".to_owned(),
        (Some(only), true) => only,
        (Some(last), false) => format!("{} or {last}", quoted.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_find_what_was_meant() {
        let fields = ["model", "system", "extensions", "policy", "maxStepsPerTurn"];
        for (word, meant) in [
            ("modle", Some("model")),
            ("Model", Some("model")),
            ("extension", Some("extensions")),
            ("max_steps_per_turn", Some("maxStepsPerTurn")),
            ("runtime", None),
            ("", None),
            ("é", None),
        ] {
            assert_eq!(nearest(word, fields), meant, "{word}");
        }
        assert_eq!(nearest(&"x".repeat(100_000), fields), None);
    }

    #[test]
    fn lists_read_as_a_sentence() {
        assert_eq!(one_of([]), "nothing");
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
