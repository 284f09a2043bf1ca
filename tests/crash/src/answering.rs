//! Child process that is killed while the model answers: it reports that half of the answer has arrived, and waits.

use std::io::{Read, Write};
use std::path::Path;

use goondan::agent::TurnUpdate;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Error, Result};

/// The number of pieces that arrive of the answer to `stall`.
const PIECES: usize = 5_000;

/// Runs one turn, and prints each request to the model. For the input `stall`, half of an answer arrives.
pub(crate) async fn run(dir: &Path, input: &str) -> Result<()> {
    let agent = Agent::builder("answering").model(Stalling).store(FileStore::open(dir)?).build()?;
    let instance = agent.instance("one").await?;
    let (mut turn, mut pieces) = (instance.run_stream(input), 0);
    while let Some(update) = turn.next().await {
        pieces += usize::from(matches!(update, TurnUpdate::Text { .. }));
        if pieces == PIECES {
            std::io::stdout().write_all(b"half an answer\n")?;
            std::io::stdin().read_to_end(&mut Vec::new())?;
            return Err(Error::msg("nothing killed this process"));
        }
    }
    turn.finish().await?;
    instance.close().await
}

/// A model that stalls in the middle of some answers.
struct Stalling;

impl Model for Stalling {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let texts: Vec<_> = request.messages().map(|message| message.content.text().into_owned()).collect();
            writeln!(std::io::stdout(), "{}", texts.join(", "))?;
            if texts.last().is_some_and(|text| text == "stall") {
                (0..PIECES).for_each(|_| deltas.send(ModelDelta::Text { part: 0, text: "half " }));
                std::future::pending::<()>().await;
            }
            Ok(ModelResponse::text("fine"))
        })
    }
}
