//! A program to try the extension: run `cargo run --example run` and type a line.
//!
//! Its model is scripted. To use a real model, implement `goondan::model::Model`.

use std::io::{self, BufRead, IsTerminal, Write};

use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, json};
use {{crate}}::{{type}};

/// Returns a model that calls the tool for every input and reports whether the call succeeded.
fn script() -> goondan::Result<ScriptedModel> {
    let greeted = ScriptItem::say("I greeted you.").when("^Hello, ")?;
    let rejected = ScriptItem::say("I may not greet you again.").when("E_TOOL_")?;
    let greet = ScriptItem::call("{{name}}__greet", json!({ "name": "you" }));
    let script = [greeted, rejected, greet];
    Ok(ScriptedModel::new(script.map(ScriptItem::repeat)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> goondan::Result<()> {
    let agent = Agent::builder("try")
        .model(script()?)
        .extension::<{{type}}>(json!({}))
        .build()?;
    let conversation = agent.instance("you").await?;
    prompt()?;
    for line in io::stdin().lock().lines() {
        let turn = conversation.run(line?).await?;
        for call in turn.tool_calls() {
            println!("[{}: {:?}]", call.name, call.status);
        }
        println!("{}", turn.text());
        prompt()?;
    }
    conversation.close().await
}

fn prompt() -> io::Result<()> {
    if io::stdin().is_terminal() {
        print!("> ");
    }
    io::stdout().flush()
}
