//! The commands that read a bundle without holding a conversation: `check`, `order` and `schema`.

use std::path::PathBuf;

use goondan::bundle::{Entry, LibraryEntry, Reader};
use goondan::{Bundle, Result};

use super::deadline::DeadlineArgs;

/// Which bundle to read, and which libraries it may name.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct BundleArgs {
    /// The bundle: a directory with a goondan.yaml, or a YAML file.
    #[arg(value_name = "BUNDLE", default_value = ".")]
    pub(crate) path: PathBuf,

    /// Allow the bundle to name libraries by absolute paths, not only files inside the bundle.
    #[arg(long)]
    pub(crate) allow_absolute_plugins: bool,
}

impl BundleArgs {
    pub(crate) fn reader<'a>(&self) -> Reader<'a> {
        Bundle::reader().allow_absolute(self.allow_absolute_plugins)
    }
}

/// A bundle, for a command that also works without one.
#[derive(Debug, clap::Args)]
pub(crate) struct OptionalBundleArgs {
    /// A bundle whose libraries are included: a directory with a goondan.yaml, or a YAML file.
    #[arg(value_name = "BUNDLE")]
    path: Option<PathBuf>,

    /// Allow the bundle to name libraries by absolute paths, not only files inside the bundle.
    #[arg(long, requires = "path")]
    allow_absolute_plugins: bool,
}

impl OptionalBundleArgs {
    /// Returns the arguments of a command that needs a bundle, if there is one.
    pub(crate) fn required(&self) -> Option<BundleArgs> {
        let path = self.path.clone()?;
        Some(BundleArgs { path, allow_absolute_plugins: self.allow_absolute_plugins })
    }

    /// Returns the entries of the bundle's extensions that are in libraries, and nothing without a bundle. Neither the
    /// libraries nor the configs are checked.
    pub(crate) fn libraries(&self) -> Result<Vec<LibraryEntry>> {
        let Some(path) = &self.path else { return Ok(Vec::new()) };
        let bundle = Bundle::reader().allow_absolute(self.allow_absolute_plugins).load(path)?;
        let entries = bundle.extensions().filter_map(|extension| match &extension.entry {
            Entry::Library(library) => Some(library.clone()),
            _ => None,
        });
        Ok(entries.collect())
    }
}

/// Report every mistake in a bundle without running anything.
///
/// Libraries are read, but not loaded. The config of an extension in a library is checked if the
/// library contains the schema of its config: see `goondan plugin pack`.
///
/// Each error is printed with its location, what was expected, and a remedy. Hints are about
/// things that are valid but may not be intended.
///
/// Exit status: 0 no errors, 2 errors.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct CheckArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// Run each library that contains no schemas in a separate process to get them.
    #[arg(long)]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: DeadlineArgs,

    /// List what the agents can do outside of their conversations: commands, shells, libraries, hosts, directories,
    /// variables and where they go, tools that act, and the variables that commands do not get.
    #[arg(long)]
    pub(crate) capabilities: bool,

    /// Print one JSON object: faults, hints, and with --capabilities capabilities.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show which extension wraps which, and why.
///
/// For each kind of middleware, the layers of an agent are listed, outermost first. To find them,
/// the extensions are initialized with an empty in-memory store; stored conversations are not used.
/// The libraries of the bundle are loaded, which needs the agreement that `goondan run` asks for.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct OrderArgs {
    #[command(flatten)]
    pub(crate) bundle: BundleArgs,

    /// The agent [default: the entry agent of the swarm, or the only agent].
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,

    /// Load the libraries of the bundle without asking: see `goondan check --capabilities`.
    #[arg(long)]
    pub(crate) trust: bool,

    /// Print one JSON object with a list for each kind.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Print the JSON Schema of bundles, for editors.
///
/// Editors use it to check and complete YAML files. It includes the configs of the extensions of
/// this program and, with BUNDLE, of the extensions in its libraries. Libraries are read, but not
/// loaded: they contain the schemas of their configs if `goondan plugin pack` added them.
#[derive(Debug, clap::Args)]
#[command(verbatim_doc_comment)]
pub(crate) struct SchemaArgs {
    #[command(flatten)]
    pub(crate) bundle: OptionalBundleArgs,

    /// Run each library that contains no schemas in a separate process to get them.
    #[arg(long, requires = "path")]
    pub(crate) describe: bool,

    #[command(flatten)]
    pub(crate) deadline: DeadlineArgs,
}
