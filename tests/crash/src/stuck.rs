//! Child process that is killed during a tool call: it reports that the tool is running, and waits.

use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::{Agent, json};

/// Runs one turn. For the input `act`, the model calls a tool that writes a line to the file `ledger` in `dir` and
/// then waits for its standard input. The requests to the model are recorded in `requests.jsonl`.
pub(crate) async fn run(dir: &Path, input: &str) -> Result<()> {
    let script = [ScriptItem::call("stuck__act", json!({})).when("^act$")?, ScriptItem::say("I see").repeat()];
    let agent = Agent::builder("stuck")
        .model(ScriptedModel::new(script).record(dir.join("requests.jsonl")))
        .store(FileStore::open(dir.join("store"))?)
        .extension::<Stuck>(json!({ "ledger": dir.join("ledger") }));
    let instance = agent.build()?.instance("one").await?;
    instance.run(input).await?;
    instance.close().await
}

/// Extension with the tool.
struct Stuck {
    ledger: PathBuf,
}

#[derive(Deserialize, JsonSchema)]
struct Config {
    ledger: PathBuf,
}

#[goondan::extension(name = "stuck")]
impl Stuck {
    #[init]
    fn new(config: Config) -> Self {
        Self { ledger: config.ledger }
    }

    /// Acts, and then waits until it is killed.
    #[tool(effect = once)]
    async fn act(&self) -> Result<()> {
        let mut ledger = std::fs::File::options().append(true).create(true).open(&self.ledger)?;
        ledger.write_all(b"acted\n")?;
        std::io::stdout().write_all(b"in the tool\n")?;
        std::io::stdin().read_to_end(&mut Vec::new())?;
        Ok(())
    }
}
