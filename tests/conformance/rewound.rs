//! BACK-01: a conversation is taken back to an earlier turn.

use std::sync::Arc;

use conformance_extensions::rewound::{Noting, Summing};
use goondan::agent::{AgentBuilder, Rewound};
use goondan::event::AgentEvent;
use goondan::model::ScriptItem;
use goondan::name::TurnId;
use goondan::store::{FileStore, InstanceId, MemoryStore, Store, TurnOutcome};
use goondan::{ErrorCode, Instance, Result, json};
use goondan_breaking::{Break, Breaking, Plan};
use goondan_covers::{both_linkages, covers, interruptible};
use tempfile::TempDir;

use crate::linkage::Extended;
use crate::observed::Folding;
use crate::support::{Log, agent};

/// Models that say the number of the answer: one that does nothing else, and one that calls a tool in its second turn.
fn counting() -> AgentBuilder {
    agent((1..20).map(|number| ScriptItem::say(format!("answer {number}"))))
}

fn noting() -> AgentBuilder {
    let say = |number: usize| ScriptItem::say(format!("answer {number}"));
    let note = ScriptItem::call("noting__note", json!({ "text": "it" }));
    agent([say(1), note].into_iter().chain((2..20).map(say)))
}

async fn texts(instance: &Instance) -> Vec<String> {
    instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect()
}

/// Runs these inputs, and returns their turns.
#[interruptible]
async fn run(instance: &Instance, inputs: &[&str]) -> Vec<TurnId> {
    let mut turns = Vec::new();
    for input in inputs {
        let event = AgentEvent::input(*input).with_id(*input);
        turns.push(instance.run(event).await.unwrap().turn_id().clone());
    }
    turns
}

/// Both stores, each with how to open it again.
fn stores(dir: &TempDir) -> [Arc<dyn Store>; 2] {
    [Arc::new(MemoryStore::new()), Arc::new(FileStore::open(dir.path()).unwrap())]
}

fn earliest<T: std::fmt::Debug>(refused: Result<T>) -> Option<String> {
    let error = refused.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::REWIND, "{error:?}");
    error.details().get("earliest").map(|turn| turn.as_str().unwrap().to_owned())
}

#[both_linkages]
#[covers("BACK-01")]
async fn later_turns_are_gone_and_what_they_did_stays() {
    let dir = TempDir::new().unwrap();
    for store in stores(&dir) {
        let (log, folding) = (Log::new(), Folding::default());
        let described = || noting().with::<Noting>(log.config()).store(Arc::clone(&store)).observer(folding.clone());
        let agent = described().build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let turns = run(&instance, &["one", "note two", "three"]).await;
        assert_eq!(instance.states().await.unwrap().len(), 1);

        let Rewound { turns: gone, messages, .. } = instance.rewind(&turns[0]).await.unwrap();
        assert_eq!(gone, turns[1..]);
        assert_eq!((messages.len(), &*messages[0].text()), (6, "note two"));
        assert_eq!(texts(&instance).await, ["one", "answer 1"]);
        assert_eq!(log.take(), ["note it", "2 gone"]);
        let state = instance.states().await.unwrap();
        assert_eq!(state.values().next().unwrap(), &json!([]), "the extension has forgotten it");
        folding.check(&instance.messages().await.unwrap(), false);
        assert_eq!(instance.rewind(&turns[0]).await.unwrap(), Rewound::default(), "there is nothing to take back");
        assert_eq!(earliest(instance.rewind(&turns[2]).await), Some(turns[0].to_string()));

        // The events stay answered.
        for input in ["note two", "three"] {
            let again = instance.run(AgentEvent::input(input).with_id(input)).await.unwrap_err();
            assert_eq!(*again.code(), ErrorCode::TURN_REWOUND, "{again:?}");
            let id = InstanceId { agent: "assistant".parse().unwrap(), key: "test".parse().unwrap() };
            let ended = store.outcome(&id, &input.into()).await.unwrap().unwrap();
            assert!(matches!(ended.outcome, TurnOutcome::Rewound { .. }), "{ended:?}");
        }
        assert_eq!(run(&instance, &["one"]).await, turns[..1], "this one is as it was");

        // It is told again when the conversation is opened before another turn.
        instance.close().await.unwrap();
        let instance = described().build().unwrap().instance("test").await.unwrap();
        assert_eq!(texts(&instance).await, ["one", "answer 1"]);
        assert!(instance.events().settle(std::time::Duration::from_secs(60)).await.unwrap());
        assert_eq!(log.take(), ["2 gone"]);
        run(&instance, &["four"]).await;
        instance.close().await.unwrap();
        let instance = described().build().unwrap().instance("test").await.unwrap();
        assert!(instance.events().settle(std::time::Duration::from_secs(60)).await.unwrap());
        assert_eq!(log.take(), [""; 0]);

        assert_eq!(instance.undo().await.unwrap().messages[0].text(), "four");
        assert_eq!(instance.undo().await.unwrap().turns, turns[..1]);
        assert_eq!(instance.undo().await.unwrap(), Rewound::default());
        assert!(instance.messages().await.unwrap().is_empty());
    }
}

#[both_linkages]
#[covers("BACK-01")]
async fn a_message_that_stands_for_others_stays_and_is_a_limit() {
    let instance = counting().with::<Summing>(json!({})).build().unwrap().instance("test").await.unwrap();
    let turns = run(&instance, &["one", "two", "sum at the end", "three", "four"]).await;
    let summed = ["sum at the end", "a summary", "answer 3"];
    // Of the first two turns nothing is left: the earliest is the one that has them summed up.
    assert_eq!(earliest(instance.rewind(&turns[0]).await), Some(turns[2].to_string()));
    assert_eq!(earliest(instance.rewind(&turns[1]).await), Some(turns[2].to_string()));
    instance.rewind(&turns[3]).await.unwrap();
    instance.undo().await.unwrap();
    assert_eq!(texts(&instance).await, summed);
    instance.undo().await.unwrap();
    assert_eq!(texts(&instance).await, ["a summary"]);

    // One that has replaced another is marked by the runtime.
    let turns = run(&instance, &["five", "replace", "six"]).await;
    assert_eq!(texts(&instance).await[..3], ["was a summary", "was five", "was answer 6"]);
    assert_eq!(earliest(instance.rewind(&turns[0]).await), Some(turns[1].to_string()));
    instance.rewind(&turns[1]).await.unwrap();
    instance.undo().await.unwrap();
    assert_eq!(texts(&instance).await, ["was a summary", "was five", "was answer 6"]);
}

#[both_linkages]
#[covers("BACK-01")]
async fn an_interrupted_turn_is_closed_first() {
    let opened = async |plan: &Arc<Plan>| {
        let store = Breaking::new(MemoryStore::new(), Arc::clone(plan));
        let agent = counting().with::<Noting>(Log::new().config()).store(store).build().unwrap();
        agent.instance("test").await.unwrap()
    };
    let unbroken = Plan::new([]);
    run(&opened(&unbroken).await, &["one"]).await;
    let plan = Plan::new([(unbroken.writes() + 2, Break::Before)]);
    let instance = opened(&plan).await;
    let turns = run(&instance, &["one"]).await;
    tokio::select! {
        _ = instance.run("two") => panic!("it is interrupted"),
        () = plan.broken() => {}
    }
    assert!(instance.interrupted().await.unwrap().is_some());
    let rewound = instance.undo().await.unwrap();
    assert_eq!(rewound.messages[0].text(), "two");
    assert_eq!(instance.interrupted().await.unwrap(), None);
    assert_eq!(texts(&instance).await, ["one", "answer 1"]);
    assert_eq!(instance.rewind(&turns[0]).await.unwrap(), Rewound::default());
}

#[tokio::test]
#[covers("BACK-01")]
async fn it_is_taken_back_as_a_whole_or_not_at_all() {
    let kinds = [Break::Before, Break::After, Break::Away, Break::AwayAfter, Break::Lost];
    let (mut before, mut after) = (0, 0);
    for in_files in [false, true] {
        for kind in kinds {
            for number in 1.. {
                let dir = TempDir::new().unwrap();
                let store: Arc<dyn Store> = if in_files {
                    Arc::new(FileStore::open(dir.path()).unwrap())
                } else {
                    Arc::new(MemoryStore::new())
                };
                let calls = Plan::of_calls([]);
                let counted = counting().store(Breaking::new(Arc::clone(&store), Arc::clone(&calls))).build().unwrap();
                let instance = counted.instance("test").await.unwrap();
                let turns = run(&instance, &["one", "two", "three"]).await;
                instance.close().await.unwrap();

                let is_of_calls = kind == Break::Away;
                let plan = if is_of_calls { Plan::of_calls([(number, kind)]) } else { Plan::new([(number, kind)]) };
                let breaking = Breaking::new(Arc::clone(&store), Arc::clone(&plan));
                let broken = counting().store(breaking).build().unwrap();
                let rewind = async { broken.instance("test").await?.rewind(&turns[0]).await };
                let outcome = tokio::select! {
                    outcome = rewind => Some(outcome),
                    () = plan.broken() => None,
                };
                let is_done = outcome.as_ref().is_some_and(Result::is_ok);
                drop(broken);
                if plan.writes() < number {
                    assert!(is_done);
                    break;
                }

                let again = loop {
                    let agent = counting().store(Arc::clone(&store)).build().unwrap();
                    match agent.instance("test").await {
                        Ok(instance) => break instance,
                        Err(error) => assert_eq!(*error.code(), ErrorCode::STORE_LOCKED),
                    }
                    tokio::task::yield_now().await;
                };
                assert_eq!(again.interrupted().await.unwrap(), None, "the person has nothing to go on with");
                again.abandon().await.unwrap();
                let left = texts(&again).await;
                match left.len() {
                    2 => after += 1,
                    6 if !is_done => before += 1,
                    _ => panic!("{kind:?} at {number}: {left:?}"),
                }
                again.rewind(&turns[0]).await.unwrap();
                assert_eq!(texts(&again).await, ["one", "answer 1"]);
                run(&again, &["four"]).await;
                assert_eq!(texts(&again).await.len(), 4);
            }
        }
    }
    assert!(before > 10 && after > 5, "{before} before, {after} after");
}
