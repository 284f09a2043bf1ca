//! The bundle that a command line names, checked for this program.

use goondan::bundle::{AgentResource, Diagnostics, KnownExtension, Libraries};
use goondan::{Bundle, Result};

use crate::args::BundleArgs;

/// Reads and checks a bundle: every extension that it names is linked into this program or is in `libraries`, and
/// every config matches the schema of its extension.
pub(crate) fn read(bundle: &BundleArgs, libraries: &dyn Libraries) -> Result<Bundle, Diagnostics> {
    let linked = KnownExtension::linked();
    bundle.reader().linked(&linked).libraries(libraries).check(&bundle.path)
}

/// Returns the agent called `name`; without a name, the entry agent.
pub(crate) fn agent<'a>(bundle: &'a Bundle, name: Option<&str>) -> Result<&'a AgentResource> {
    match name {
        Some(name) => bundle.agent(name),
        None => bundle.entry_agent(),
    }
}
