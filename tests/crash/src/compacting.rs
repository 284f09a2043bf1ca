//! Child process that is killed after it has replaced messages by a summary.

use std::io::{Read, Write};
use std::path::Path;

use goondan::model::{Deltas, Model, ModelRequest, ModelResponse};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Result, json};
use message_compaction::MessageCompaction;

/// Runs one turn, and prints each request to the models. When the last message is `stall`, the model waits for its
/// standard input.
pub(crate) async fn run(dir: &Path, input: &str) -> Result<()> {
    let config = json!({
        "maxMessages": 4, "keepShare": 0, "retainLastMessages": 0, "summary": { "model": "small" }
    });
    let agent = Agent::builder("compacting").model(Printing("answer")).named_model("small", Printing("summary"));
    let agent = agent.store(FileStore::open(dir)?).extension::<MessageCompaction>(config);
    let instance = agent.build()?.instance("one").await?;
    instance.run(input).await?;
    instance.close().await
}

/// A model that prints what it is sent in one line, and answers with its name.
struct Printing(&'static str);

impl Model for Printing {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: Deltas<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let texts: Vec<_> = request.messages().map(|message| message.content.text().replace('\n', " ")).collect();
            // One write, so that the parent reads the whole line or nothing.
            std::io::stdout().write_all(format!("{}: {}\n", self.0, texts.join(", ")).as_bytes())?;
            if texts.last().is_some_and(|text| text == "stall") {
                std::io::stdin().read_to_end(&mut Vec::new())?;
            }
            Ok(ModelResponse::text(self.0))
        })
    }
}
