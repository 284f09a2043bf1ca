//! A program with an agent, whose answer is printed as it is streamed: `cargo run --example embed_minimal`.

use std::io::{self, Write};

use goondan::agent::TurnUpdate;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::store::MemoryStore;
use goondan::{Agent, Result, json};
use message_window::MessageWindow;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let agent = Agent::builder("assistant")
        .model(ScriptedModel::new([ScriptItem::say("Hello! To use a real model, implement `goondan::model::Model`.")]))
        .extension::<MessageWindow>(json!({ "maxMessages": 20 }))
        .store(MemoryStore::new())
        .build()?;
    let mut turn = agent.instance("user:42").await?.run_stream("hi");
    while let Some(update) = turn.next().await {
        if let TurnUpdate::Text { text, .. } = update {
            print!("{text}");
            io::stdout().flush()?;
        }
    }
    println!("\n({:?})", turn.finish().await?.finish_reason());
    Ok(())
}
