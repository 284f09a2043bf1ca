//! What a turn costs that replaces nearly all of 10,000 messages, linked and loaded, beside a turn that changes one of
//! them, after which the conversation is written anew too.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark")]

use std::time::{Duration, Instant};

use goondan::agent::AgentBuilder;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::plugin::Library;
use goondan::store::FileStore;
use goondan::{Agent, json};
use goondan_libraries::Build;
use message_compaction as _;

const NAME: &str = "message-compaction";
const ROUNDS: usize = 9;

/// Appends 10,000 messages at the input `fill`, and replaces the first one at the input `replace`.
#[goondan::extension(name = "filling")]
mod filling {
    use goondan::prelude::*;

    // Further in than the layer of compaction, so that it does not act in the same turn.
    #[middleware(turn, priority = 10)]
    async fn fill(ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match ctx.input().input.as_deref() {
            Some("fill") => {
                for number in 0..10_000 {
                    let text = format!("message {number}, with a text of about as many characters as people write");
                    ctx.emit(MessageEvent::append(Message::user(text)));
                }
            }
            Some("replace") => {
                let first = ctx.conversation().iter().next().map(|message| message.to_message());
                if let Some(first) = first {
                    ctx.emit(MessageEvent::replace(first.id().clone(), first.with_content("replaced")));
                }
            }
            _ => {}
        }
        next.run(ctx).await
    }
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let library = Build::ready_made(NAME).profile("release").run(env!("CARGO_TARGET_TMPDIR"));
    let library = Library::inspect(library).unwrap().load().unwrap();
    let time = |input, add: &dyn Fn(AgentBuilder) -> AgentBuilder| runtime.block_on(turns(input, add));
    for _ in 0..3 {
        let rewrite = time("replace", &|agent| agent);
        let linked = time("go", &|agent| agent.linked_extension(NAME, NAME, json!({})));
        let loaded = time("go", &|agent| agent.described_extension(NAME, library.extension(None).unwrap(), json!({})));
        let ratio = |time: Duration| time.as_secs_f64() / rewrite.as_secs_f64();
        println!(
            "rewrite {rewrite:?}, linked {linked:?} ({:.2}), loaded {loaded:?} ({:.2})",
            ratio(linked),
            ratio(loaded)
        );
    }
}

/// Returns the median time of the turn `input` in a stored conversation with 10,000 messages.
async fn turns(input: &str, add: &dyn Fn(AgentBuilder) -> AgentBuilder) -> Duration {
    let mut times = Vec::new();
    for _ in 0..ROUNDS {
        let dir = tempfile::tempdir().unwrap();
        let model = ScriptedModel::new([ScriptItem::say("ok").repeat()]);
        let agent = Agent::builder("bench").model(model).store(FileStore::open(dir.path()).unwrap());
        let agent = add(agent.extension::<filling::Extension>(json!({}))).build().unwrap();
        let instance = agent.instance("bench").await.unwrap();
        instance.run("fill").await.unwrap();
        let start = Instant::now();
        instance.run(input).await.unwrap();
        times.push(start.elapsed());
        let left = instance.messages().await.unwrap().len();
        assert_eq!(left > 10_000, input == "replace", "{left} messages");
        instance.close().await.unwrap();
    }
    times.sort();
    times[times.len() / 2]
}
