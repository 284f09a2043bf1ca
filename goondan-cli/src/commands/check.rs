//! `goondan check`: reports every mistake in a bundle.

use goondan::bundle::Diagnostic;
use goondan::{Bundle, Result, json};

use super::capabilities::Listed;
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
            let hints = [bundle.warnings().to_vec(), recorded_keys(&bundle)].concat();
            let listed = args.capabilities.then(|| Listed::of(&bundle, &*libraries)).transpose()?;
            if args.json {
                let mut object = json!({ "faults": [], "hints": hints, "graph": bundle.coverage() });
                if let Some(listed) = listed {
                    object["capabilities"] = json::to_value(listed)?;
                }
                output::print_data(object.to_string() + "\n")?;
            } else {
                let listed = listed.map(|listed| listed.to_string()).unwrap_or_default();
                output::print(&(summary(&bundle, &hints) + &listed))?;
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

/// Returns a hint for each line of a cassette of the bundle that has a likely key.
#[cfg(feature = "models")]
fn recorded_keys(bundle: &Bundle) -> Vec<Diagnostic> {
    let files = bundle.models().flat_map(|model| model.files.iter().chain(&model.recordings));
    let files: std::collections::BTreeSet<_> = files.collect();
    let found = files.into_iter().flat_map(|file| {
        let lines = goondan_models::Cassette::keys_in(file);
        lines.into_iter().map(|(line, found)| {
            let place = goondan::bundle::Place { line, column: 1 };
            let message = format!("the cassette has a secret: {found}");
            let remedy = "revoke the key, and record the conversation anew, with `redact` for what is not its own";
            Diagnostic::warning(file, place, message, remedy.to_owned())
        })
    });
    found.collect()
}

#[cfg(not(feature = "models"))]
fn recorded_keys(_: &Bundle) -> Vec<Diagnostic> {
    Vec::new()
}

fn summary(bundle: &Bundle, hints: &[Diagnostic]) -> String {
    let hints: String = hints.iter().map(|hint| format!("{}\n", hint.to_string().trim_end())).collect();
    let (agents, extensions, models) = (bundle.agents().len(), bundle.extensions().len(), bundle.models().len());
    format!("{hints}no faults: Agents {agents}, Extensions {extensions}, Models {models}\n")
}
