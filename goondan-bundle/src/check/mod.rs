//! Checks of a bundle whose documents are read: whether its extensions exist, whether their configs fit, whether they
//! can be ordered, and things that its author probably does not want.

mod extensions;
pub(crate) use extensions::Extensions;

mod configs;
pub(crate) use configs::describe;

mod coverage;
mod guards;
mod order;
mod records;
mod warnings;

use std::path::Path;

use crate::coverage::Coverage;
use crate::diagnostic::Diagnostic;
use crate::read::{Document, Names};
use crate::resource::{Resources, ToCheck};

/// Reports all errors to the sinks of the documents, which are in `files` below `root`. Returns the warnings, which
/// mean something only without errors, and which agents reach one another.
pub(crate) fn check(
    documents: &[Document<'_>],
    names: &Names<'_>,
    resources: &Resources,
    to_check: &ToCheck<'_>,
    mut extensions: Extensions<'_>,
    root: &Path,
    files: &[&Path],
) -> (Vec<Diagnostic>, Coverage) {
    records::check(to_check, resources, root, files);
    for (entry, cursor) in &to_check.entries {
        extensions.check_entry(entry, cursor);
    }
    configs::check(to_check, resources, names, &extensions);
    for agent in to_check.agents.iter().filter(|agent| agent.complete) {
        order::check(&agent.uses, &extensions);
    }
    for agent in &to_check.agents {
        guards::check(&agent.uses, &extensions);
    }
    let coverage = coverage::coverage(resources, &extensions);
    let uncovered = coverage::check(&coverage, resources, to_check);
    (warnings::warnings(documents, resources, to_check, &extensions, uncovered), coverage)
}
