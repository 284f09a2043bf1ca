//! A turn of each of 1,000 conversations on two threads: unwatched, with one observer of all of them, and with a stream
//! each.
#![allow(clippy::expect_used, reason = "a bench stops at the first error")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use goondan::agent::AgentBuilder;
use goondan::{Agent, Instance};
use goondan_benches::instances::{self, INPUT, key};
use goondan_benches::watching::{Counting, EVERYTHING};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const CONVERSATIONS: usize = 1_000;
/// The number of turns of each conversation in a round.
const TURNS: usize = 10;
const ROUNDS: usize = 7;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_time().build();
    let runtime = runtime.expect("a runtime");
    let (nothing, all) = (Arc::new(Counting::new([])), Arc::new(Counting::new(EVERYTHING)));
    let builder = || instances::builder(Duration::ZERO);
    let [unwatched, asked, watched, streamed] =
        [builder(), builder().observer(Arc::clone(&nothing)), builder().observer(Arc::clone(&all)), builder()]
            .map(|agent| runtime.block_on(filled(agent)));
    // In turn, so that what else the machine does hits all of them.
    let mut fastest = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        for (fastest, (instances, is_streamed)) in
            fastest.iter_mut().zip([(&unwatched, false), (&asked, false), (&watched, false), (&streamed, true)])
        {
            *fastest = (*fastest).min(round(&runtime, instances, is_streamed));
        }
    }
    println!("\nA turn of each of {CONVERSATIONS} conversations on two threads");
    let names = ["unwatched", "beside an observer that wants nothing", "one observer of everything", "a stream each"];
    for (name, took) in names.into_iter().zip(fastest) {
        println!("{name:<52} {:>12.2} µs", took.as_secs_f64() * 1e6 / (CONVERSATIONS * TURNS) as f64);
    }
    let turns = CONVERSATIONS * (TURNS * ROUNDS + instances::HISTORY / 2);
    println!("{:<52} {:>12.1}", "what the observer is told of a turn", all.told() as f64 / turns as f64);
    assert_eq!(nothing.told(), 0, "it wants nothing");
}

/// Opens all conversations in memory, each with a history.
async fn filled(agent: AgentBuilder) -> Vec<Instance> {
    let agent: Agent = agent.build().expect("the agent is complete");
    let mut all = Vec::with_capacity(CONVERSATIONS);
    for number in 0..CONVERSATIONS {
        all.push(instances::with_history(&agent, &key(number)).await.expect("an instance"));
    }
    all
}

/// Runs turns of all conversations at the same time, and returns how long they took.
fn round(runtime: &Runtime, instances: &[Instance], is_streamed: bool) -> Duration {
    runtime.block_on(async {
        let start = Instant::now();
        let mut running = JoinSet::new();
        for instance in instances {
            let instance = instance.clone();
            running.spawn(async move {
                for _ in 0..TURNS {
                    if is_streamed {
                        instance.run_stream(INPUT).finish().await.expect("a turn");
                    } else {
                        instance.run(INPUT).await.expect("a turn");
                    }
                }
            });
        }
        running.join_all().await;
        start.elapsed()
    })
}
