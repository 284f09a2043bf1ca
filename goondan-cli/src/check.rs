//! Owns `goondan check` and `goondan schema`: what is wrong with a bundle, and what a right one looks like.

use std::io;

use goondan::bundle::{Hint, Libraries, Plugins, schema as bundle_schema};
use goondan::{Bundle, Result, json, linked};

use crate::args::CheckArgs;
use crate::faults;
use crate::plugin::Describing;
use crate::run::Outcome;

/// Checks everything that can be checked without running anything. Faults go where the answer goes: they are what was asked
/// for.
pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let libraries: &dyn Libraries = match args.describe {
        true => &Describing::new(args.deadline.get()),
        false => &Plugins::new(),
    };
    let (text, outcome) = match faults::read(&args.bundle, libraries) {
        Ok(bundle) if args.json => (json!({ "faults": [], "hints": bundle.hints() }).to_string() + "\n", Outcome::Done),
        Ok(bundle) => (summary(&bundle), Outcome::Done),
        Err(found) if args.json => (faults::object(&found), Outcome::Misconfigured),
        Err(found) => (faults::page(&found, &io::stdout()), Outcome::Misconfigured),
    };
    crate::print(&text)?;
    Ok(outcome)
}

fn summary(bundle: &Bundle) -> String {
    let hints: String = bundle.hints().iter().map(|hint: &Hint| format!("{}\n", hint.to_string().trim_end())).collect();
    let (agents, extensions, models) = (bundle.agents().len(), bundle.extensions().len(), bundle.models().len());
    format!("{hints}no faults: Agents {agents}, Extensions {extensions}, Models {models}\n")
}

/// The JSON Schema of bundle documents, with the configs of the extensions of this program.
pub(crate) fn schema() -> Result<()> {
    let configs: Vec<_> =
        linked().into_iter().map(|descriptor| (descriptor.name, (descriptor.config_schema)())).collect();
    crate::print(&(serde_json::to_string_pretty(&bundle_schema(&configs))? + "\n"))
}
