//! `goondan check`: reports every mistake in a bundle.

use std::io;

use goondan::bundle::Diagnostic;
use goondan::{Bundle, Result, json};

use super::{bundle, plugin};
use crate::args::CheckArgs;
use crate::outcome::Outcome;
use crate::output::{self, diagnostics};

/// Checks a bundle. No extension is initialized, and without `--describe` no library is run. The diagnostics are the
/// result of this command, so they go to standard output.
pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let libraries = plugin::libraries(args.describe.then_some(&args.deadline));
    let (text, outcome) = match bundle::read(&args.bundle, &*libraries) {
        Ok(bundle) if args.json => {
            (json!({ "faults": [], "hints": bundle.warnings() }).to_string() + "\n", Outcome::Done)
        }
        Ok(bundle) => (summary(&bundle), Outcome::Done),
        Err(found) if args.json => (diagnostics::object(&found), Outcome::Misconfigured),
        Err(found) => (diagnostics::page(&found, &io::stdout()), Outcome::Misconfigured),
    };
    output::print(&text)?;
    Ok(outcome)
}

fn summary(bundle: &Bundle) -> String {
    let hints: String =
        bundle.warnings().iter().map(|hint: &Diagnostic| format!("{}\n", hint.to_string().trim_end())).collect();
    let (agents, extensions, models) = (bundle.agents().len(), bundle.extensions().len(), bundle.models().len());
    format!("{hints}no faults: Agents {agents}, Extensions {extensions}, Models {models}\n")
}
