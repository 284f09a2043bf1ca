//! An agent that asks a model of this program: `cargo run --example own_model`.

use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::{Agent, BoxFuture, Result};

/// Says what it was told backwards, and streams it word by word.
struct Backwards;

impl Model for Backwards {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let told = request.messages().last().map(|message| message.content.text().into_owned()).unwrap_or_default();
            let words: Vec<_> = told.split_whitespace().rev().map(|word| format!("{word} ")).collect();
            words.iter().for_each(|word| deltas.send(ModelDelta::Text { part: 0, text: word }));
            Ok(ModelResponse::text(words.concat().trim_end()))
        })
    }
}

/// Returns the answer to `input`.
pub(crate) async fn ask(input: &str) -> Result<String> {
    let agent = Agent::builder("assistant").model(Backwards).build()?;
    Ok(agent.instance("user:42").await?.run(input).await?.text().into_owned())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    println!("{}", ask("of goondan, a model is a trait").await?);
    Ok(())
}
