//! Paths to values in JSON, such as `users[0].name`.

use goondan::{Error, Result, Value};

/// A path: the steps from the whole to a value.
#[derive(Debug, PartialEq)]
pub(crate) struct Path(Vec<Step>);

#[derive(Debug, PartialEq)]
enum Step {
    /// Into an object; or into an array, if it is a number.
    Key(String),
    /// Into an array. A negative index counts from the end.
    Index(i64),
}

impl Path {
    /// Reads a path. `.`, `$` and nothing at all are the whole; a path may begin with `.` or `$`.
    ///
    /// # Errors
    /// When a bracket is open, or holds neither a number nor a key in quotes.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let mut rest = text.strip_prefix('$').unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            rest = match rest.strip_prefix('[') {
                Some(bracket) => {
                    let (step, after) = step_in_bracket(bracket).ok_or_else(|| wrong(text, rest))?;
                    steps.push(step);
                    after
                }
                None => {
                    let key = rest.strip_prefix('.').unwrap_or(rest);
                    let (key, after) = key.split_at(key.find(['.', '[']).unwrap_or(key.len()));
                    if !key.is_empty() {
                        steps.push(Step::Key(key.to_owned()));
                    } else if after.starts_with('.') {
                        return Err(wrong(text, rest));
                    }
                    after
                }
            };
        }
        Ok(Self(steps))
    }

    /// Takes the value out of `whole`, if it is there.
    pub(crate) fn of(&self, whole: Value) -> Option<Value> {
        self.0.iter().try_fold(whole, |value, step| match (value, step) {
            (Value::Object(mut members), Step::Key(key)) => members.swap_remove(key),
            (Value::Array(items), Step::Key(key)) => element(items, key.parse().ok()?),
            (Value::Array(items), Step::Index(index)) => element(items, *index),
            _ => None,
        })
    }
}

fn element(mut items: Vec<Value>, index: i64) -> Option<Value> {
    let back = usize::try_from(index.unsigned_abs()).ok()?;
    let index = if index < 0 { items.len().checked_sub(back)? } else { back };
    (index < items.len()).then(|| items.swap_remove(index))
}

/// Returns the step in a bracket that was opened, and what follows the bracket.
fn step_in_bracket(text: &str) -> Option<(Step, &str)> {
    for quote in ['"', '\''] {
        if let Some(quoted) = text.strip_prefix(quote) {
            let (key, rest) = quoted.split_once(quote)?;
            return Some((Step::Key(key.to_owned()), rest.strip_prefix(']')?));
        }
    }
    let (index, rest) = text.split_once(']')?;
    Some((Step::Index(index.trim().parse().ok()?), rest))
}

fn wrong(path: &str, at: &str) -> Error {
    Error::msg(format!("the path `{path}` is wrong at `{at}`")).suggest("write it like `users[0].name`")
}
