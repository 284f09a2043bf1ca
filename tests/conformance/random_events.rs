//! CONV: random programs of message events, compared with a list that is changed as literally as the requirement reads:
//! `base + Σ events`.

mod programs;

use std::cell::Cell;
use std::num::NonZeroU32;

use conformance_extensions::hold::Guarding;
use conformance_extensions::random_events::{Random, Run, TurnProgram};
use goondan::json;
use goondan::model::ScriptItem;
use goondan::store::{FileStore, MemoryStore, Store};
use goondan::testing::Chat;
use goondan_covers::covers;
use goondan_libraries::runs;
use proptest::arbitrary::any;
use proptest::test_runner::{Config, TestRunner};

use crate::linkage::{Extended, Linkage};
use crate::observed::Folding;
use crate::support::Log;
use programs::programs;

/// Runs `program`, turn by turn, and compares the requests to the model, the stored messages, and those after a
/// restart. Returns how many answers were compared with the pieces that an observer was told.
async fn run(program: &[TurnProgram], is_held: bool, store: impl Store) -> usize {
    let (directory, folding) = (tempfile::tempdir().unwrap(), Folding::default());
    let log = Log::new();
    let path = directory.path().join("run.json");
    let script = program.iter().flat_map(|turn| {
        let calls = turn.steps[1..].iter().map(|_| ScriptItem::call("no__tool", json!({})));
        calls.chain([ScriptItem::say("answer").pieces(NonZeroU32::MIN.saturating_add(2))])
    });
    let script: Vec<_> = script.collect();
    let mut chat = Chat::builder()
        .script(script)
        .agent(|agent| {
            let agent = agent.with::<Guarding>(json!({ "log": log, "hold": is_held.then_some("before") }));
            agent.with::<Random>(json!({ "run": path })).store(store).observer(folding.clone())
        })
        .start()
        .await
        .unwrap();
    for turn in program {
        Run::change(&path, |run| {
            run.program = turn.clone();
            run.naive.begin_turn();
        });
        let outcome = chat.say("input").await;
        // A panic of the extension is an error too.
        let error = outcome.err().map(|error| error.message().into_owned());
        assert_eq!(error.as_deref(), turn.fails.then_some("the program ends so"));
        let stored = chat.messages().await;
        folding.check(&stored, false);
        Run::change(&path, |run| run.naive.end_turn(&stored));
        if turn.restarts {
            chat.restart().await.unwrap();
            Run::change(&path, |run| run.naive.reopen());
            assert_eq!(chat.messages().await, stored);
        }
    }
    let sent: Vec<_> = chat.requests().into_iter().map(|request| request.messages).collect();
    let orphans: Vec<_> = chat.logs().iter().filter_map(|line| line.fields.get("orphans")?.as_u64()).collect();
    let misses = chat.logs().iter().filter(|line| line.fields.contains_key("target_id")).count();
    let naive = Run::read(&path).naive;
    assert_eq!(sent, naive.requests());
    assert_eq!(orphans, naive.orphans(), "what is left out of requests is reported once");
    assert_eq!(misses, naive.misses(), "every event without a target is reported, and no other");
    folding.answers()
}

fn check<S: Store>(linkage: Linkage, cases: u32, store: impl Fn() -> (S, Option<tempfile::TempDir>)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let answers = Cell::new(0);
    let outcome = TestRunner::new(config).run(&(programs(), any::<bool>()), |(program, is_held)| {
        let (store, _dir) = store();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        answers.set(answers.get() + runtime.block_on(linkage.run(run(&program, is_held, store))));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    assert!(answers.get() > 0, "no answer was compared with its pieces");
}

#[test]
#[covers("CONV-01", "CONV-02", "CONV-03", "CONV-04", "CONV-06", "CONV-07", "CONV-11", "PAIR-01", "OBSERVE-01")]
fn the_conversation_is_the_fold_of_its_events_whatever_they_are() {
    for linkage in Linkage::BOTH {
        check(linkage, runs(50), || (MemoryStore::new(), None));
    }
}

#[test]
#[covers("CONV-04", "CONV-07")]
fn the_fold_is_what_the_files_hold() {
    for linkage in Linkage::BOTH {
        check(linkage, runs(10), || {
            let dir = tempfile::tempdir().unwrap();
            (FileStore::open(dir.path()).unwrap(), Some(dir))
        });
    }
}
