//! `goondan plugin pack`: adds the schemas of a library to its file, so that reading them does not require running it.

use goondan::Result;
use goondan::plugin::Library;

use super::child;
use crate::args::PluginPackArgs;
use crate::output;

pub(crate) fn pack(args: &PluginPackArgs) -> Result<()> {
    let inspected = Library::inspect(&args.file)?;
    let schemas = child::schemas(&args.file, args.deadline.timeout())?;
    inspected.pack(&schemas)?;
    let extensions = if schemas.len() == 1 { "extension" } else { "extensions" };
    let names: Vec<_> = schemas.iter().map(|schemas| schemas.name.as_str()).collect();
    output::print(&format!("packed the schemas of the {extensions} {}\n", names.join(", ")))
}
