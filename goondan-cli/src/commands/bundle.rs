//! The bundle that a command line names, checked for this program.

use goondan::bundle::{AgentResource, Diagnostics, KnownExtension, Libraries};
use goondan::model::CassetteMode;
use goondan::{Bundle, Result};

use crate::args::{BundleArgs, CassettesArg, RunArgs};

/// Reads and checks a bundle: every extension that it names is linked into this program or is in `libraries`, and
/// every config matches the schema of its extension.
pub(crate) fn read(bundle: &BundleArgs, libraries: &dyn Libraries) -> Result<Bundle, Diagnostics> {
    bundle.reader().linked(&KnownExtension::linked()).libraries(libraries).check(&bundle.path)
}

/// As [`read`], for a run.
pub(crate) fn read_to_run(args: &RunArgs, libraries: &dyn Libraries) -> Result<Bundle, Diagnostics> {
    let linked = KnownExtension::linked();
    let reader = args.bundle.reader().linked(&linked).libraries(libraries);
    match args.cassettes {
        Some(mode) => reader.cassettes(mode.into()),
        None => reader,
    }
    .check(&args.bundle.path)
}

impl From<CassettesArg> for CassetteMode {
    fn from(mode: CassettesArg) -> Self {
        match mode {
            CassettesArg::Off => Self::Off,
            CassettesArg::Record => Self::Record,
            CassettesArg::Replay => Self::Replay,
            CassettesArg::Auto => Self::Auto,
        }
    }
}

/// Returns the agent called `name`; without a name, the entry agent.
pub(crate) fn agent<'a>(bundle: &'a Bundle, name: Option<&str>) -> Result<&'a AgentResource> {
    match name {
        Some(name) => bundle.agent(name),
        None => bundle.entry_agent(),
    }
}
