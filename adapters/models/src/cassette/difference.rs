//! Finds the members that a request has and the recorded one has not.

use serde_json::Value;

/// The most characters of a value that are shown.
const SHOWN: usize = 80;

/// The first difference between a recorded body and one that is asked with, in the order of the recorded members.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Difference {
    /// The number of equal values before it, and of equal characters in it.
    pub(super) same: (usize, usize),
    /// Where it is, and the two values.
    pub(super) text: String,
}

/// Compares two bodies. The order of members does not matter.
pub(super) fn difference(recorded: &Value, asked: &Value) -> Option<Difference> {
    // A member that only one of two objects has says less than a message that only one of two conversations has: marks
    // for caches move with the newest message.
    [false, true].into_iter().find_map(|members| {
        let mut search = Search { members, pointer: String::new(), same: 0 };
        let (recorded, asked) = search.first(Some(recorded), Some(asked))?;
        let (alike, recorded, asked) = shown(recorded, asked);
        let Search { pointer, same, .. } = search;
        let text = format!("`{pointer}` is {asked}, and {recorded} in the recording");
        Some(Difference { same: (same, alike), text })
    })
}

struct Search {
    /// Whether members are compared that only one of two objects has.
    members: bool,
    pointer: String,
    same: usize,
}

type Pair<'a> = (Option<&'a Value>, Option<&'a Value>);

impl Search {
    /// Returns the first two values that differ, and leaves the pointer to them.
    fn first<'a>(&mut self, recorded: Option<&'a Value>, asked: Option<&'a Value>) -> Option<Pair<'a>> {
        match (recorded, asked) {
            (Some(Value::Object(a)), Some(Value::Object(b))) => {
                let names = a.keys().chain(b.keys().filter(|name| !a.contains_key(*name)));
                names.into_iter().find_map(|name| {
                    let (a, b) = (a.get(name), b.get(name));
                    let compared = self.members || (a.is_some() && b.is_some());
                    compared.then(|| self.below(&name.replace('~', "~0").replace('/', "~1"), a, b))?
                })
            }
            (Some(Value::Array(a)), Some(Value::Array(b))) => {
                (0..a.len().max(b.len())).find_map(|index| self.below(&index.to_string(), a.get(index), b.get(index)))
            }
            (a, b) if a == b => {
                self.same += 1;
                None
            }
            pair => Some(pair),
        }
    }

    fn below<'a>(&mut self, key: &str, recorded: Option<&'a Value>, asked: Option<&'a Value>) -> Option<Pair<'a>> {
        let length = self.pointer.len();
        self.pointer.push('/');
        self.pointer.push_str(key);
        let found = self.first(recorded, asked);
        if found.is_none() {
            self.pointer.truncate(length);
        }
        found
    }
}

/// Returns two values that differ as short texts, after the number of characters with which both begin. Of long values,
/// the texts are those around the first difference.
fn shown(recorded: Option<&Value>, asked: Option<&Value>) -> (usize, String, String) {
    let text = |value: Option<&Value>| value.map_or_else(|| "absent".to_owned(), Value::to_string);
    let (recorded, asked) = (text(recorded), text(asked));
    let same = recorded.chars().zip(asked.chars()).take_while(|(a, b)| a == b).count();
    let from = same.saturating_sub(SHOWN / 4);
    (same, cut(&recorded, from), cut(&asked, from))
}

fn cut(text: &str, from: usize) -> String {
    let before = if from > 0 { "…" } else { "" };
    let after = if text.chars().count() > from + SHOWN { "…" } else { "" };
    format!("{before}{}{after}", text.chars().skip(from).take(SHOWN).collect::<String>())
}
