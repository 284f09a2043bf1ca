//! `goondan schema`: the JSON Schema of bundles, for editors.

use goondan::Result;
use goondan::bundle::schema_with;
use goondan::extension::linked;

use super::plugin;
use crate::args::SchemaArgs;
use crate::output;

/// Prints the JSON Schema of bundle documents, which includes the configs of the extensions of this program and of
/// libraries.
pub(crate) fn schema(args: &SchemaArgs) -> Result<()> {
    let linked: Vec<_> =
        linked().into_iter().map(|descriptor| (descriptor.name, (descriptor.config_schema)())).collect();
    let libraries = plugin::libraries(args.describe.then_some(&args.deadline));
    let entries = args.bundle.libraries()?;
    let mut loaded = Vec::new();
    for entry in &entries {
        match libraries.declared(entry)?.config_schema {
            Some(config) => loaded.push((entry, config)),
            None => output::eprint(&format!(
                "hint: the config of the extension `{}` is not in the schema: its library does not contain it; \
                 add it with `goondan plugin pack {}`, or use --describe\n",
                entry.name,
                entry.file.display()
            )),
        }
    }
    output::print_data(serde_json::to_string_pretty(&schema_with(&linked, &loaded))? + "\n")
}
