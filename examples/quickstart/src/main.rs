//! An agent to talk to: the bundle beside this program, and the extensions that it names.

use std::io::{self, BufRead, IsTerminal, Write};
use std::time::Duration;

use goondan::Result;
use goondan::host::Source;
use goondan::store::{FileStore, state_root};
// Nothing else names these crates, and the linker would leave them out.
use logging as _;
use message_window as _;

const BUNDLE: &str = env!("CARGO_MANIFEST_DIR");

fn main() -> Result<()> {
    tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(talk())
}

/// Answers each line of standard input. It continues the conversation of `goondan run examples/quickstart`.
async fn talk() -> Result<()> {
    let opening = Source::new(BUNDLE).read()?;
    let store = FileStore::in_workspace(&state_root(None)?, opening.bundle().workspace_name()?)?;
    let agent = opening.bundle().entry_agent()?.name.clone();
    let host = opening.open(store).await?;
    let conversation = host.instance(agent.as_str(), "default").await?;
    prompt()?;
    for line in io::stdin().lock().lines() {
        let line = line?;
        if !line.trim().is_empty() {
            match conversation.run(line).await {
                Ok(turn) => say(&turn.text())?,
                Err(error) => say(&format!("error: {}", error.report()))?,
            }
        }
        prompt()?;
    }
    _ = host.drain(Duration::from_secs(10)).await?;
    Ok(())
}

fn say(text: &str) -> io::Result<()> {
    writeln!(io::stdout(), "{text}")
}

fn prompt() -> io::Result<()> {
    if io::stdin().is_terminal() {
        write!(io::stdout(), "> ")?;
    }
    io::stdout().flush()
}
