//! `goondan check`: reports every mistake in a bundle.

use goondan::bundle::Diagnostic;
use goondan::{Bundle, Result, json};

use super::{bundle, plugin};
use crate::args::CheckArgs;
use crate::outcome::Outcome;
use crate::output::{self, Stream, diagnostics};

/// Checks a bundle. No extension is initialized, and without `--describe` no library is run. The diagnostics are the
/// result of this command, so they go to standard output.
pub(crate) fn check(args: &CheckArgs) -> Result<Outcome> {
    let libraries = plugin::libraries(args.describe.then_some(&args.deadline));
    match bundle::read(&args.bundle, &*libraries) {
        Ok(bundle) => {
            if args.json {
                output::print_data(json!({ "faults": [], "hints": bundle.warnings() }).to_string() + "\n")?;
            } else {
                output::print(&summary(&bundle))?;
            }
            Ok(Outcome::Done)
        }
        Err(found) => {
            if args.json {
                output::print_data(diagnostics::object(&found))?;
            } else {
                output::print_styled(&diagnostics::page(&found, Stream::Out))?;
            }
            Ok(Outcome::Misconfigured)
        }
    }
}

fn summary(bundle: &Bundle) -> String {
    let hints: String =
        bundle.warnings().iter().map(|hint: &Diagnostic| format!("{}\n", hint.to_string().trim_end())).collect();
    let (agents, extensions, models) = (bundle.agents().len(), bundle.extensions().len(), bundle.models().len());
    format!("{hints}no faults: Agents {agents}, Extensions {extensions}, Models {models}\n")
}
