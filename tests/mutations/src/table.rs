//! The table of breaks in `tests/covers/mutations.md`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::Result;

/// The environment variable that turns a break on: the id of its row.
pub const SWITCH: &str = "GOONDAN_MUTATION";

/// The table, from the root of the workspace.
const TABLE: &str = "tests/covers/mutations.md";

/// The break of one requirement.
#[derive(Debug)]
pub struct Mutation {
    /// The id of the row.
    pub id: String,
    /// The file, from the root of the workspace.
    pub file: String,
    /// The code that is replaced, with what is before and behind it: the three together are once in the file.
    before: String,
    old: String,
    behind: String,
    new: String,
}

/// Reads all breaks of the workspace in `root`: the rows with an id, a file, the old code and the new code.
///
/// # Errors
/// When the table cannot be read.
pub fn read(root: &Path) -> Result<Vec<Mutation>> {
    let text = fs::read_to_string(root.join(TABLE)).map_err(|error| format!("{TABLE}: {error}"))?;
    Ok(text.lines().filter_map(parse).collect())
}

fn parse(line: &str) -> Option<Mutation> {
    // A `|` within code is written as `\|`.
    let line = line.replace("\\|", "\u{1}");
    let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
    let [id, file, old, new] = cells[..] else { return None };
    let code = |cell: &str| Some(cell.strip_prefix('`')?.strip_suffix('`')?.replace('\u{1}', "|").replace("\\n", "\n"));
    let (file, place, new) = (code(file)?, code(old)?, code(new).unwrap_or_default());
    // Without the brackets, all of it is replaced.
    let (before, (old, behind)) = match place.split_once('⟦') {
        Some((before, rest)) => (before, rest.split_once('⟧')?),
        None => ("", (&*place, "")),
    };
    let [before, old, behind] = [before, old, behind].map(str::to_owned);
    Some(Mutation { id: id.to_owned(), file, before, old, behind, new })
}

/// Returns `text`, the content of a file, with the breaks of `here` behind their switches.
///
/// # Errors
/// When the code of a break is not there once, or overlaps that of another row.
pub fn apply(text: &str, here: &[&Mutation]) -> Result<String> {
    let mut places = BTreeMap::new();
    for mutation in here {
        let Mutation { id, file, before, old, behind, .. } = mutation;
        let place = format!("{before}{old}{behind}");
        match *text.match_indices(&place).map(|(at, _)| at + before.len()).collect::<Vec<_>>() {
            [at] => places.entry(at).or_insert_with(Vec::new).push(*mutation),
            ref found => return Err(format!("{id}: {file} has `{place}` {} times, not once", found.len()).into()),
        }
    }
    let (mut broken, mut rest) = (String::new(), 0);
    for (at, mutations) in places {
        let old = mutations[0].old.as_str();
        if at < rest || mutations.iter().any(|mutation| mutation.old != old) {
            let ids: Vec<_> = mutations.iter().map(|mutation| mutation.id.as_str()).collect();
            return Err(format!("{}: the old code overlaps that of another row", ids.join(", ")).into());
        }
        broken.push_str(&text[rest..at]);
        broken.push_str(&behind_switches(old, &mutations));
        rest = at + old.len();
    }
    broken.push_str(&text[rest..]);
    Ok(broken)
}

/// Returns an expression or statement that is `old`, unless the switch of one of `mutations` is on.
fn behind_switches(old: &str, mutations: &[&Mutation]) -> String {
    let mut code = String::new();
    for Mutation { id, new, .. } in mutations {
        let is_on = format!("::std::env::var_os(\"{SWITCH}\").is_some_and(|id| id == \"{id}\")");
        code.push_str(&format!("if {is_on} {{ {new} }} else "));
    }
    code.push_str(&format!("{{ {old} }}"));
    if old.ends_with(';') { code } else { format!("({code})") }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use std::collections::BTreeSet;

    use super::*;

    const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

    /// Returns the ids of requirements in a text, which may be lists of them.
    fn ids(text: &str) -> BTreeSet<&str> {
        let words = text.split([' ', ',', '|', '.', '\n']);
        let is_id = |word: &&str| {
            let number = word.rsplit_once('-').map(|(_, number)| number);
            word.starts_with(|first: char| first.is_ascii_uppercase())
                && number.is_some_and(|number| number.len() == 2 && number.bytes().all(|byte| byte.is_ascii_digit()))
        };
        words.filter(is_id).collect()
    }

    #[test]
    fn each_row_is_broken_or_listed_and_each_break_has_its_place() {
        let requirements = fs::read_to_string(format!("{ROOT}/docs/requirements.md")).unwrap();
        let (promised, not_offered) = requirements.split_once("## Not offered").unwrap();
        let cell = |line: &str| line.strip_prefix("| ").and_then(|line| line.split(" | ").next()).map(str::to_owned);
        let is_row = |line: &&str| ["MUST", "SHOULD", "MAY"].iter().any(|level| line.contains(&format!(" | {level}")));
        let promised: BTreeSet<_> = promised.lines().filter(is_row).filter_map(cell).collect();
        let not_offered: BTreeSet<_> = not_offered.lines().filter_map(cell).collect();

        let table = fs::read_to_string(format!("{ROOT}/{TABLE}")).unwrap();
        let (broken, others) = table.split_once("## Nothing to break").unwrap();
        let broken: BTreeSet<_> = broken.lines().filter_map(parse).map(|row| row.id).collect();
        let others: BTreeSet<_> = ids(others).into_iter().map(str::to_owned).collect();
        assert!(broken.is_disjoint(&others), "{:?}", broken.intersection(&others));
        let lost: Vec<_> =
            promised.difference(&not_offered).filter(|id| !broken.contains(*id) && !others.contains(*id)).collect();
        assert!(lost.is_empty(), "{TABLE} has nothing about {lost:?}");

        let all = read(Path::new(ROOT)).unwrap();
        let files: BTreeSet<_> = all.iter().map(|row| &row.file).collect();
        for file in files {
            let here: Vec<_> = all.iter().filter(|row| row.file == *file).collect();
            apply(&fs::read_to_string(format!("{ROOT}/{file}")).unwrap(), &here).unwrap();
        }
    }
}
