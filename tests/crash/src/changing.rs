//! Child process: an agent that makes one call of a tool of `changesets`, during which git may kill it.

use std::path::Path;

// Nothing else names the crate, and the linker would leave it out.
use changesets as _;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::{Agent, Value, json};

/// Calls `tool` with the JSON text `args`, and prints the result. The repository is `repository` in `dir`.
pub(crate) async fn run(dir: &Path, tool: &str, args: &str) -> Result<()> {
    let args: Value = serde_json::from_str(args)?;
    let agent = Agent::builder("changer")
        .model(ScriptedModel::new([ScriptItem::call(tool, args), ScriptItem::say("done")]))
        .store(FileStore::open(dir.join("store"))?)
        .bundle_root(dir.join("repository"))
        .linked_extension("changesets", "changesets", json!({}))
        .build()?;
    let instance = agent.instance("killed").await?;
    instance.run("go").await?;
    let messages = instance.messages().await?;
    let result = messages.iter().rfind(|message| message.role() == Role::Tool);
    println!("{}", result.ok_or_else(|| Error::msg("there is no result"))?.text());
    instance.close().await
}
