//! Child processes that are killed while, or after, they replace messages by a summary.

use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use fastrand::Rng;
use goondan::middleware::ToolRequest;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::name::ToolCallId;
use goondan::store::FileStore;
use goondan::{Agent, BoxFuture, Error, ErrorCode, Result, Value, json};
use goondan_lock::Lock;
use message_compaction::MessageCompaction;
use tokio::sync::Notify;

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
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let texts: Vec<_> = request.messages().map(|message| message.content.text().replace('\n', " ")).collect();
            print(&format!("{}: {}", self.0, texts.join(", ")))?;
            if texts.last().is_some_and(|text| text == "stall") {
                std::io::stdin().read_to_end(&mut Vec::new())?;
            }
            Ok(ModelResponse::text(self.0))
        })
    }
}

/// Plays some turns of the conversation that `seed` makes, and prints each request to the models, and `hang` when one
/// does not answer. If `cancel`, that turn is cancelled; otherwise the process waits to be killed.
pub(crate) async fn play(dir: &Path, seed: u64, turns: Range<u64>, cancel: bool) -> Result<()> {
    let random = Arc::new(Lock::new(Rng::with_seed(seed)));
    let config = config(&mut random.lock());
    let hangs = Arc::new(Notify::new());
    let model = |name| Random { name, random: Arc::clone(&random), hangs: cancel.then(|| Arc::clone(&hangs)) };
    let agent = Agent::builder("compacting").model(model("answer")).named_model("small", model("summary"));
    let agent = agent.store(FileStore::open(dir)?).extension::<MessageCompaction>(config).build()?;
    let instance = agent.instance("one").await?;
    for turn in turns {
        // What happens in a turn does not depend on the turns before it, which another process may have run.
        *random.lock() = Rng::with_seed(seed << 32 | turn);
        tokio::select! {
            // A turn that fails is a case too.
            _ = instance.run(format!("input {turn}")) => {}
            () = hangs.notified() => {}
        }
    }
    instance.close().await
}

fn config(random: &mut Rng) -> Value {
    json!({
        "candidates": "all",
        "maxMessages": random.usize(1..15),
        "maxCharacters": random.usize(50..800),
        "keepShare": random.choice([0.0, 0.3, 0.9]),
        "retainLastMessages": random.usize(..5),
        "onFailure": random.choice(["keep", "count", "fail"]),
        "place": random.choice(["first", "end"]),
        "summary": { "model": "small" },
    })
}

/// A model that prints what it is sent, and does something at random.
struct Random {
    name: &'static str,
    random: Arc<Lock<Rng>>,
    /// Told when a turn is to be cancelled.
    hangs: Option<Arc<Notify>>,
}

impl Model for Random {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            let line = |role: &str, text: &str| format!("{role} {}", text.replace('\n', " "));
            let lines: Vec<_> =
                request.messages().map(|message| line(message.role.as_str(), &message.content.text())).collect();
            print(&format!("{}: {}", self.name, lines.join(", ")))?;
            let (kind, length) = {
                let mut random = self.random.lock();
                (random.u8(..20), random.usize(1..150))
            };
            match kind {
                0..6 if self.name == "answer" => {
                    let call = |_| ToolRequest::new(ToolCallId::random(), "no__tool", json!({}));
                    Ok(ModelResponse::tool_calls((0..=length % 3).map(call)))
                }
                6 => Err(Error::msg("out of order")),
                7 => Err(Error::new(ErrorCode::MODEL_CONTEXT_OVERFLOW, "too long")),
                8..11 => {
                    print("hang")?;
                    match &self.hangs {
                        Some(hangs) => hangs.notify_one(),
                        None => drop(std::io::stdin().read_to_end(&mut Vec::new())?),
                    }
                    std::future::pending().await
                }
                _ => Ok(ModelResponse::text("a".repeat(length))),
            }
        })
    }
}

/// Prints a line in one write, so that the parent reads the whole line or nothing.
fn print(line: &str) -> Result<()> {
    std::io::stdout().write_all(format!("{line}\n").as_bytes())?;
    Ok(())
}
