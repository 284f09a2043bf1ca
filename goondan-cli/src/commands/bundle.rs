//! The bundle that a command line names, checked for this program.

use goondan::bundle::{AgentResource, Diagnostics, KnownExtension, Libraries};
use goondan::model::CassetteMode;
use goondan::{Bundle, Result};

use crate::args::BundleArgs;

/// Reads and checks a bundle: every extension that it names is linked into this program or is in `libraries`, and
/// every config matches the schema of its extension.
pub(crate) fn read(bundle: &BundleArgs, libraries: &dyn Libraries) -> Result<Bundle, Diagnostics> {
    read_with(bundle, libraries, None)
}

/// As [`read`], in a program that decides what models do with their cassettes.
pub(crate) fn read_with(
    bundle: &BundleArgs,
    libraries: &dyn Libraries,
    cassettes: Option<CassetteMode>,
) -> Result<Bundle, Diagnostics> {
    let linked = KnownExtension::linked();
    let reader = bundle.reader().linked(&linked).libraries(libraries);
    let reader = cassettes.map_or(reader, |mode| reader.cassettes(mode));
    reader.check(&bundle.path)
}

/// Returns the agent called `name`; without a name, the entry agent.
pub(crate) fn agent<'a>(bundle: &'a Bundle, name: Option<&str>) -> Result<&'a AgentResource> {
    match name {
        Some(name) => bundle.agent(name),
        None => bundle.entry_agent(),
    }
}
