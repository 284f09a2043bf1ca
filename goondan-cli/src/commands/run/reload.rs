//! The lines about a reload.

use goondan::agent::{Change, ExtensionChange, Reloaded};
use goondan::bundle::{Entry, Plugins};
use goondan::host::{HostReload, OpenError};
use goondan::name::{AgentName, ExtensionName};
use goondan::{Bundle, Result};

use crate::output::diagnostics::reason;
use crate::output::{Style, Styled, error_text};

/// Returns `page` with errors and, as the last line, the outcome in words. It is a failure if the agent `own` was not
/// reloaded; other agents that were not are errors only.
pub(super) fn describe(outcome: Result<HostReload, OpenError>, own: &AgentName, page: Styled) -> Styled {
    let (mut problems, mut changes) = (String::new(), Vec::new());
    let outcome = outcome.and_then(|HostReload { bundle, agents, .. }| {
        let mut of_own = Ok(());
        for (agent, outcome) in agents {
            match outcome {
                Ok(Reloaded { changes: some, refused, .. }) => {
                    changes.extend(some.iter().map(|change| in_words(change, &bundle)));
                    problems.extend(refused.iter().map(|(_, error)| error_text(error)));
                }
                Err(error) if agent == *own => of_own = Err(error.into()),
                Err(error) => {
                    problems.push_str(&format!("the agent `{agent}` was not reloaded\n"));
                    problems.push_str(&error_text(&error));
                }
            }
        }
        of_own
    });
    let page = page.text(&problems);
    match outcome {
        Ok(()) if changes.is_empty() => page.paint(Style::Dim, "reloaded"),
        Ok(()) => page.paint(Style::Dim, &format!("reloaded: {}", changes.join(", "))),
        Err(error) => page.append(&reason(error)).paint(Style::Dim, "not reloaded; the conversation goes on as it was"),
    }
    .text("\n")
}

/// Returns the text for a terminal, where a person can accept the additions of a reload.
// TREE-01
pub(super) fn describe_to_person(outcome: Result<HostReload, OpenError>, own: &AgentName, page: Styled) -> Styled {
    match outcome {
        Err(OpenError::Adds(added)) => page.paint(Style::Yellow, &format!("reload adds: {added}; /accept")).text("\n"),
        outcome => describe(outcome, own, page),
    }
}

/// Describes a change. Code from a library has the start of the digest of its file, which tells two builds of one
/// version apart.
fn in_words(change: &ExtensionChange, bundle: &Bundle) -> String {
    let build = match change.change {
        Change::Added { .. } | Change::Replaced { .. } => digest(&change.extension, bundle),
        _ => None,
    };
    build.map_or_else(|| change.to_string(), |digest| format!("{change} (build {digest:.8})"))
}

/// Returns the digest of the library that has an extension, if it is in one.
fn digest(extension: &ExtensionName, bundle: &Bundle) -> Option<String> {
    let resource = bundle.extensions().find(|resource| resource.name == *extension)?;
    let Entry::Library(library) = &resource.entry else { return None };
    // It was loaded a moment ago. If it is gone by now, the change is described without it.
    Plugins::new().inspect(library).and_then(|inspected| inspected.sha256()).ok()
}
