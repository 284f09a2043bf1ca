//! Child process that is killed while the model answers a request that was edited.

use std::io::{Read, Write};
use std::path::Path;

use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::prelude::*;
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, json};

/// Runs one turn, and prints each request to the model. For the input `stall`, the request is edited, and the model
/// waits for its standard input.
pub(crate) async fn run(dir: &Path, input: &str) -> Result<()> {
    let agent = Agent::builder("projecting").model(Stalling).store(FileStore::open(dir)?);
    let instance = agent.extension::<Projecting>(json!({})).build()?.instance("one").await?;
    instance.run(input).await?;
    instance.close().await
}

/// A model that prints what it is sent.
struct Stalling;

impl Model for Stalling {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let texts: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
            // One write, so that the parent reads the whole line or nothing.
            std::io::stdout().write_all(format!("{}\n", texts.join(", ")).as_bytes())?;
            if texts.iter().any(|text| text == "projected") {
                std::io::stdin().read_to_end(&mut Vec::new())?;
            }
            Ok(ModelResponse::text("fine"))
        })
    }
}

/// Edits the request of the turn `stall`.
struct Projecting;

#[goondan::extension(name = "projecting")]
impl Projecting {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn edit(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if ctx.input().input.as_deref() == Some("stall") {
            let first = ctx.conversation().iter().next().map(|message| message.to_message());
            if let Some(first) = first {
                ctx.project(MessageEvent::replace(first.id().clone(), first.with_content("replaced")));
            }
            ctx.project(MessageEvent::append(Message::user("projected")));
        }
        next.run(ctx).await
    }
}
