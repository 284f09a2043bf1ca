//! Tools that change text.
//!
//! They count characters, not bytes. What only repeats an argument is not in the answers.

use goondan::prelude::*;

/// The input of `text-transform__replace`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Replace {
    /// The text to change.
    text: String,
    /// What to search for, literally.
    #[schemars(length(min = 1))]
    search: String,
    /// What to put there instead. Defaults to nothing: what was found is removed.
    #[serde(default)]
    replacement: String,
    /// Whether to replace all occurrences. Defaults to false: only the first.
    #[serde(default)]
    all: bool,
}

/// The output of `text-transform__replace`.
#[derive(Debug, Serialize)]
struct Replaced {
    result: String,
    replacements: usize,
}

/// The input of `text-transform__slice`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Slice {
    /// The text to cut from.
    text: String,
    /// The index of the first character, from 0. A negative one counts from the end: -3 is the third last character.
    #[serde(default)]
    start: i64,
    /// The index after the last character, counted in the same way. Defaults to the end of the text.
    end: Option<i64>,
}

/// The output of `text-transform__slice`.
#[derive(Debug, Serialize)]
struct Sliced {
    result: String,
    start: usize,
    end: usize,
    length: usize,
}

/// The input of `text-transform__split`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Split {
    /// The text to split.
    text: String,
    /// What is between the parts. Defaults to a line feed. If it is empty, each character is a part.
    #[serde(default = "line_feed")]
    delimiter: String,
    /// The most parts. The last one has the rest of the text.
    #[schemars(range(min = 1))]
    max_parts: Option<usize>,
}

/// The output of `text-transform__split`.
#[derive(Debug, Serialize)]
struct Parts {
    count: usize,
    parts: Vec<String>,
}

/// The input of `text-transform__join`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Join {
    /// The parts, in their order.
    parts: Vec<String>,
    /// What to put between them. Defaults to a line feed.
    #[serde(default = "line_feed")]
    delimiter: String,
}

/// The output of `text-transform__join`.
#[derive(Debug, Serialize)]
struct Joined {
    count: usize,
    result: String,
}

/// The input of `text-transform__trim`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Trim {
    /// The text to trim.
    text: String,
    /// Which side to trim. Defaults to both.
    #[serde(default)]
    mode: Side,
}

/// Which side of a text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Side {
    #[default]
    Both,
    Start,
    End,
}

/// The output of `text-transform__trim`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Trimmed {
    result: String,
    /// The number of characters that were removed.
    trimmed_length: usize,
}

/// The input of `text-transform__case`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChangeCase {
    /// The text to change.
    text: String,
    /// The case that it gets.
    to: Case,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Case {
    Upper,
    Lower,
}

/// A text.
#[derive(Debug, Serialize)]
struct Changed {
    result: String,
}

fn line_feed() -> String {
    "\n".to_owned()
}

/// The most bytes of a result.
const LONGEST: usize = 4 << 20;

/// The memory of a part of a text beside its text.
const PART: usize = 64;

/// Checks how many bytes a result will have, before it is made.
fn check(bytes: Option<usize>) -> Result<()> {
    if bytes.is_some_and(|bytes| bytes <= LONGEST) {
        return Ok(());
    }
    let message = format!("the result would have more than {} MB", LONGEST >> 20);
    Err(Error::msg(message).suggest("change less at once"))
}

/// Returns which of `length` characters `index` is. It is a boundary of the text if it is beyond that.
fn clamp(index: i64, length: usize) -> usize {
    let index_from = |index: u64| usize::try_from(index).unwrap_or(usize::MAX);
    match u64::try_from(index) {
        Ok(index) => index_from(index).min(length),
        Err(_) => length.saturating_sub(index_from(index.unsigned_abs())),
    }
}

/// Changes text exactly, where a model would have to count or copy.
#[goondan::extension(name = "text-transform")]
pub mod tools {
    use super::*;

    /// Replaces a text by another one, literally: there are no patterns.
    #[tool(effect = read)]
    async fn replace(input: Replace) -> Result<Replaced> {
        let Replace { text, search, replacement, all } = input;
        let limit = if all { usize::MAX } else { 1 };
        let replacements = text.matches(&search).take(limit).count();
        let kept = text.len() - replacements * search.len();
        check(replacement.len().checked_mul(replacements).and_then(|new| new.checked_add(kept)))?;
        Ok(Replaced { result: text.replacen(&search, &replacement, limit), replacements })
    }

    /// Returns a part of a text, by the indices of its characters.
    #[tool(effect = read)]
    async fn slice(input: Slice) -> Result<Sliced> {
        let length = input.text.chars().count();
        let start = clamp(input.start, length);
        let end = input.end.map_or(length, |end| clamp(end, length)).max(start);
        let result = input.text.chars().skip(start).take(end - start).collect();
        Ok(Sliced { result, start, end, length: end - start })
    }

    /// Splits a text into parts.
    #[tool(effect = read)]
    async fn split(input: Split) -> Result<Parts> {
        let Split { text, delimiter, max_parts } = input;
        let limit = max_parts.unwrap_or(usize::MAX);
        let most = if delimiter.is_empty() { text.len() } else { text.matches(&delimiter).count() };
        check(most.min(limit).checked_mul(PART).and_then(|parts| parts.checked_add(text.len())))?;
        let parts: Vec<String> = if delimiter.is_empty() {
            let (head, rest) = match text.char_indices().nth(limit.saturating_sub(1)) {
                Some((end, _)) => text.split_at(end),
                None => (text.as_str(), ""),
            };
            head.chars().map(String::from).chain((!rest.is_empty()).then(|| rest.to_owned())).collect()
        } else {
            text.splitn(limit, &delimiter).map(str::to_owned).collect()
        };
        Ok(Parts { count: parts.len(), parts })
    }

    /// Joins parts to one text.
    #[tool(effect = read)]
    async fn join(input: Join) -> Result<Joined> {
        let between = input.delimiter.len().checked_mul(input.parts.len());
        check(between.and_then(|between| between.checked_add(input.parts.iter().map(String::len).sum())))?;
        Ok(Joined { count: input.parts.len(), result: input.parts.join(&input.delimiter) })
    }

    /// Removes white space, line breaks among it, from the ends of a text.
    #[tool(effect = read)]
    async fn trim(input: Trim) -> Result<Trimmed> {
        let text = input.text.as_str();
        let result = match input.mode {
            Side::Both => text.trim(),
            Side::Start => text.trim_start(),
            Side::End => text.trim_end(),
        };
        let trimmed_length = text.chars().count() - result.chars().count();
        Ok(Trimmed { result: result.to_owned(), trimmed_length })
    }

    /// Changes a text to upper or lower case, in all scripts.
    #[tool(effect = read)]
    async fn case(input: ChangeCase) -> Result<Changed> {
        let result = match input.to {
            Case::Upper => input.text.to_uppercase(),
            Case::Lower => input.text.to_lowercase(),
        };
        Ok(Changed { result })
    }
}
