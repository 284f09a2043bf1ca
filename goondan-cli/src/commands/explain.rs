//! `goondan explain`: the page of an error code, which is in the program.

use goondan::bundle::nearest;
use goondan::{Error, ErrorCode, Result, errors};

use crate::args::ExplainArgs;
use crate::output;

pub(crate) fn explain(args: &ExplainArgs) -> Result<()> {
    output::print(&match &args.code {
        Some(word) => page(word)?,
        None => list(),
    })
}

fn page(word: &str) -> Result<String> {
    let code = ErrorCode::ALL.iter().find(|code| code.as_str().eq_ignore_ascii_case(word));
    let Some(code) = code else { return Err(unknown(word)) };
    let section = errors::explain(code).unwrap_or_default();
    Ok(format!("{code}\n\n{}\n", section.replace("**", "")))
}

fn unknown(word: &str) -> Error {
    let known = || ErrorCode::ALL.iter().map(ErrorCode::as_str);
    let mut near: Vec<_> = known().filter(|code| code.contains(&word.to_ascii_uppercase())).collect();
    if near.is_empty() || word.is_empty() {
        near = nearest(word, known()).into_iter().collect();
    }
    let all = "`goondan explain` lists the codes of goondan; an extension documents its own";
    Error::new(ErrorCode::USAGE, format!("goondan has no error code `{word}`")).suggest(match near.as_slice() {
        [] => all.to_owned(),
        near => format!("did you mean {}? {all}", near.join(" or ")),
    })
}

/// Returns each code with the first sentence of its section.
fn list() -> String {
    let width = ErrorCode::ALL.iter().map(|code| code.as_str().len()).max().unwrap_or(0);
    let line = |code: &ErrorCode| {
        let section = errors::explain(code).unwrap_or_default();
        let paragraph = section.split("\n\n").next().unwrap_or_default().replace('\n', " ");
        let sentence = paragraph.split_inclusive(". ").next().unwrap_or_default();
        format!("{:<width$}  {}\n", code.as_str(), sentence.trim_end())
    };
    ErrorCode::ALL.iter().map(line).collect()
}
