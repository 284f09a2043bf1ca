//! Owns `goondan check` and `goondan schema`: what is wrong with a bundle, and what a right one looks like.

use std::io::{self, IsTerminal};

use goondan::bundle::{Faults, Hint, Libraries, Plugins, schema as bundle_schema};
use goondan::{Bundle, Result, Value, json, linked};

use crate::args::CheckArgs;
use crate::excerpt;
use crate::plugin::Describing;
use crate::run::Outcome;

/// Checks everything that can be checked without running anything. Faults go where the answer goes: they are what was asked
/// for.
pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let libraries: &dyn Libraries = match args.describe {
        true => &Describing::new(args.deadline.get()),
        false => &Plugins::new(),
    };
    let known = extensions();
    let reader = args.bundle.reader().linked(&known).libraries(libraries);
    let (text, outcome) = match reader.check(&args.bundle.path) {
        Ok(bundle) if args.json => (json!({ "faults": [], "hints": bundle.hints() }).to_string() + "\n", Outcome::Done),
        Ok(bundle) => (summary(&bundle), Outcome::Done),
        Err(faults) if args.json => {
            (json!({ "faults": faults, "hints": [] }).to_string() + "\n", Outcome::Misconfigured)
        }
        Err(faults) => {
            let count = faults.len();
            let what = if count == 1 { "fault" } else { "faults" };
            (format!("{}\n{count} {what}\n", told(&faults).trim_end()), Outcome::Misconfigured)
        }
    };
    crate::print(&text)?;
    Ok(outcome)
}

/// People see the lines that are meant; programs read one line a fault.
fn told(faults: &Faults) -> String {
    let out = io::stdout();
    if out.is_terminal() { excerpt::page(faults, crate::in_colour(&out)) } else { faults.to_string() }
}

fn summary(bundle: &Bundle) -> String {
    let hints: String = bundle.hints().iter().map(|hint: &Hint| format!("{}\n", hint.to_string().trim_end())).collect();
    let (agents, extensions, models) = (bundle.agents().len(), bundle.extensions().len(), bundle.models().len());
    format!("{hints}no faults: Agents {agents}, Extensions {extensions}, Models {models}\n")
}

/// The JSON Schema of bundle documents, with the configs of the extensions of this program.
pub(crate) fn schema() -> Result<()> {
    crate::print(&(serde_json::to_string_pretty(&bundle_schema(&extensions()))? + "\n"))
}

/// The extensions of this program, and the schemas of their configs.
fn extensions() -> Vec<(&'static str, Value)> {
    linked().into_iter().map(|descriptor| (descriptor.name, (descriptor.config_schema)())).collect()
}
