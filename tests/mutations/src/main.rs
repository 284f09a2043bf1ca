//! Breaks the code of each requirement, one at a time, and runs the tests that are marked as its proof: at least one
//! must fail. `tests/covers/mutations.md` has the breaks.
//!
//! All breaks are built at once, each behind a switch that the environment variable `GOONDAN_MUTATION` turns on, so
//! that the workspace is built once and not once per row.
//!
//! ```console
//! $ cargo run -p goondan-mutations            # every row
//! $ cargo run -p goondan-mutations -- PIPE-03 NEXT-
//! ```

mod tests;
mod tree;

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use goondan_mutations::Result;
use goondan_mutations::marks::Marks;
use goondan_mutations::table::{self, Mutation};
use tests::Tests;

fn main() -> ExitCode {
    match run(&env::args().skip(1).collect::<Vec<_>>()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// Breaks the rows whose ids begin with one of `wanted`, or all. Returns whether a marked test fell for each.
fn run(wanted: &[String]) -> Result<bool> {
    let all = table::read(Path::new("."))?;
    let is_wanted = |row: &&Mutation| wanted.is_empty() || wanted.iter().any(|id| row.id.starts_with(id.as_str()));
    let chosen: Vec<_> = all.iter().filter(is_wanted).collect();
    let marks = Marks::read()?;
    let tree = tree::create(&all)?;
    let tests = Tests::build(&tree)?;
    let (mut missed, mut times) = (Vec::new(), BTreeMap::new());
    for row in &chosen {
        let marked = tests.marked(&marks, &row.id);
        let mut fallen = Vec::new();
        for test in &marked {
            let name = test.name.as_str();
            let time = match times.get(name) {
                Some(time) => *time,
                None => *times.entry(name).or_insert(tests.run(test, None, tests::LONGEST)?),
            };
            // What is broken may be what ends the test.
            if let Some(time) = time
                && tests.run(test, Some(&row.id), 10 * time + Duration::from_secs(10))?.is_none()
            {
                fallen.push(name);
            }
        }
        println!("{}: {} of {} tests fall: {}", row.id, fallen.len(), marked.len(), fallen.join(", "));
        if fallen.is_empty() {
            missed.push(row.id.as_str());
        }
    }
    let failing: Vec<_> = times.iter().filter(|(_, time)| time.is_none()).map(|(name, _)| *name).collect();
    for test in &failing {
        eprintln!("`{test}` fails although nothing is broken");
    }
    println!("{} rows broken, {} not noticed: {}", chosen.len(), missed.len(), missed.join(", "));
    Ok(missed.is_empty() && failing.is_empty())
}
