//! Delegation: `agent.delegate` on the bus starts a turn, and `agent.delegationResult` comes back.

use std::sync::Arc;

use conformance_extensions::agents::Asking;
use conformance_extensions::wake::Waking;
use goondan::agent::{AgentBuilder, BackgroundTurn, BackgroundTurns, BackgroundUpdate, LocalRouter, TurnUpdate};
use goondan::event::{AgentDelegate, AgentDelegationResult};
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::{Agent, Instance, json};
use goondan_covers::{both_linkages, covers};
use tokio::sync::Notify;

use crate::linkage::Extended;
use crate::support::{Log, SilentModel, agent};

fn waking(agent: AgentBuilder, log: &Log, from: &str, target: &str, times: usize) -> AgentBuilder {
    agent.with::<Waking>(json!({ "log": log, "from": from, "target": target, "times": times }))
}

/// Reads the log until it has `lines` lines. The extension writes from tasks of the runtime, which run meanwhile.
async fn lines(log: &Log, lines: usize) -> Vec<String> {
    let mut read = Vec::new();
    while read.len() < lines {
        read.extend(log.take());
        tokio::task::yield_now().await;
    }
    read
}

/// Waits until all delegated turns of the conversation have ended.
async fn settled(instance: &Instance, turns: usize) -> usize {
    let mut inputs = 0;
    while inputs < turns {
        inputs = instance.messages().await.unwrap().iter().filter(|message| message.text() == "woken").count();
        tokio::task::yield_now().await;
    }
    inputs
}

#[both_linkages]
#[covers("LEGACY-EVENTS-04")]
async fn a_delegation_from_anywhere_starts_a_turn_and_its_result_comes_back() {
    for from in ["init", "task", "turn", "tool"] {
        let log = Log::new();
        let script = [
            ScriptItem::call("waking__wake", json!({})).when("^hello$").unwrap(),
            ScriptItem::say("awake").when("^woken$").unwrap(),
            ScriptItem::say("done").repeat(),
        ];
        let agent = waking(agent(script), &log, from, "assistant", 1).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        assert_eq!(instance.run("hello").await.unwrap().text(), "done");
        let mut read = lines(&log, 3).await;
        read.sort();
        assert_eq!(read, ["turn hello", "turn woken", "wake-0 of assistant: \"awake\""], "{from}");
    }
}

#[both_linkages]
async fn another_agent_is_reached_through_the_router() {
    let (router, log) = (LocalRouter::new(), Log::new());
    let other = Agent::builder("librarian").model(ScriptedModel::new([ScriptItem::say("a book")]));
    let other = other.router(router.clone()).build().unwrap();
    router.add(&other);
    let agent = waking(agent([ScriptItem::say("done")]), &log, "turn", "librarian", 1).router(router.clone());
    agent.build().unwrap().instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!(lines(&log, 2).await, ["turn hello", "wake-0 of librarian: \"a book\""]);
    router.close().await.unwrap();
}

#[both_linkages]
async fn the_program_delegates_too() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("awake")]), &log, "nowhere", "assistant", 1).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut results = instance.events().subscribe(AgentDelegationResult::NAME).unwrap();
    let mut delegate = AgentDelegate::new("assistant".parse().unwrap(), "woken");
    delegate.id = "mine".to_owned();
    instance.events().delegate(delegate).await.unwrap();
    let result: AgentDelegationResult = results.next().await.unwrap().payload().unwrap();
    assert_eq!((result.id.as_str(), result.result, result.error_code), ("mine", Some(json!("awake")), None));
    assert_eq!(lines(&log, 2).await, ["turn woken", "mine of assistant: \"awake\""]);
}

#[both_linkages]
async fn an_unknown_agent_is_an_error_on_the_bus() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("done")]), &log, "turn", "nobody", 1).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    assert_eq!(lines(&log, 2).await, ["turn hello", "wake-0 of nobody: AGENT_NOT_FOUND"]);
}

#[both_linkages]
async fn a_handler_that_wakes_its_own_conversation_for_ever_is_stopped() {
    let log = Log::new();
    let agent = waking(agent([ScriptItem::say("done").repeat()]), &log, "completed", "assistant", 1);
    let agent = agent.build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.run("hello").await.unwrap();
    // The first turn, 32 delegated ones with their results, and the refusal of another.
    let read = lines(&log, 1 + 32 + 32 + 1).await;
    assert_eq!(settled(&instance, 32).await, 32);
    assert_eq!(read.iter().filter(|line| *line == "turn woken").count(), 32);
    assert_eq!(read.iter().filter(|line| line.contains("E_EVENT_LOOP")).count(), 1, "{read:?}");
    // An input of a person begins a new chain.
    instance.run("hello").await.unwrap();
    assert_eq!(settled(&instance, 64).await, 64);
}

#[both_linkages]
async fn so_many_delegations_wait_and_more_are_refused() {
    let (log, asked) = (Log::new(), Arc::new(Notify::new()));
    let agent = Agent::builder("assistant").model(SilentModel(Arc::clone(&asked)));
    let agent = waking(agent, &log, "turn", "assistant", 70).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    instance.send("hello");
    asked.notified().await;
    // 64 wait behind the turn that runs.
    let read = lines(&log, 1 + 6).await;
    let refused: Vec<_> = (64..70).map(|number| format!("wake-{number} of assistant: E_EXT_RUNTIME")).collect();
    assert_eq!((read[0].as_str(), &read[1..]), ("turn hello", &refused[..]));
}

/// Waits for the next turn that is told.
async fn told(turns: &mut BackgroundTurns) -> Arc<BackgroundTurn> {
    match turns.next().await {
        Some(BackgroundUpdate::Ended(turn)) => turn,
        other => panic!("{other:?}"),
    }
}

fn text(turn: &BackgroundTurn) -> &str {
    turn.input.input.as_deref().unwrap_or_default()
}

#[both_linkages]
#[covers("WAKE-01")]
async fn turns_that_an_extension_starts_are_told_and_those_of_the_program_are_not() {
    for from in ["init", "task", "turn", "tool", "completed"] {
        let log = Log::new();
        let script = [
            ScriptItem::call("waking__wake", json!({})).when("^hello$").unwrap(),
            ScriptItem::say("awake").when("^woken$").unwrap().repeat(),
            ScriptItem::say("done").repeat(),
        ];
        let agent = waking(agent(script), &log, from, "assistant", 1).build().unwrap();
        let mut turns = agent.subscribe_turns();
        let instance = agent.instance("test").await.unwrap();
        instance.run("hello").await.unwrap();
        let turn = told(&mut turns).await;
        assert_eq!(
            (turn.agent.as_str(), turn.instance.as_str(), text(&turn)),
            ("assistant", "test", "woken"),
            "{from}"
        );
        assert_eq!((turn.input.source.kind.as_str(), turn.input.source.name.as_str()), ("agent", "assistant"));
        assert_eq!(turn.outcome.as_ref().unwrap().text(), "awake");
        // A chain of wakings ends, and its turns are waited for.
        let mut more = 0;
        while let Some(notice) = turns.next_pending().await {
            assert!(matches!(notice, BackgroundUpdate::Ended(turn) if text(&turn) == "woken"));
            more += 1;
        }
        assert_eq!(more, if from == "completed" { 31 } else { 0 }, "{from}");
    }
}

#[both_linkages]
async fn a_turn_that_failed_is_told_with_its_error() {
    let log = Log::new();
    let agent = waking(agent([]), &log, "task", "assistant", 1).build().unwrap();
    let mut turns = agent.subscribe_turns();
    let _instance = agent.instance("test").await.unwrap();
    let turn = told(&mut turns).await;
    let error = turn.outcome.as_ref().unwrap_err();
    assert_eq!((text(&turn), error.turn().map(|turn| turn.steps)), ("woken", Some(1)), "{error:?}");
    let code = error.code().to_string();
    assert_eq!(lines(&log, 2).await, ["turn woken".to_owned(), format!("wake-0 of assistant: {code}")]);
}

#[both_linkages]
async fn a_subscriber_follows_the_agents_that_delegate_to_one_another() {
    let (router, log) = (LocalRouter::new(), Log::new());
    let librarian = waking(Agent::builder("librarian"), &log, "completed", "assistant", 1);
    let librarian = librarian.model(ScriptedModel::new([ScriptItem::say("a book").repeat()])).router(router.clone());
    let assistant = waking(agent([ScriptItem::say("done").repeat()]), &log, "turn", "librarian", 1);
    let (librarian, assistant) = (librarian.build().unwrap(), assistant.router(router.clone()).build().unwrap());
    router.add(&librarian);
    router.add(&assistant);
    let mut turns = assistant.subscribe_turns();
    turns.follow(&librarian);
    turns.follow(&librarian);
    assistant.instance("test").await.unwrap().run("hello").await.unwrap();
    let mut told = Vec::new();
    while let Some(BackgroundUpdate::Ended(turn)) = turns.next_pending().await {
        told.push((turn.agent.to_string(), turn.outcome.as_ref().unwrap().text().into_owned()));
    }
    assert_eq!(told, [("librarian".to_owned(), "a book".to_owned()), ("assistant".to_owned(), "done".to_owned())]);
    router.close().await.unwrap();
}

#[tokio::test]
async fn turns_that_are_sent_are_told_and_a_slow_subscriber_learns_how_many_it_missed() {
    let agent = agent([ScriptItem::say("fine").repeat()]).build().unwrap();
    let (mut turns, dropped) = (agent.subscribe_turns(), agent.subscribe_turns());
    drop(dropped);
    let instance = agent.instance("test").await.unwrap();
    (0..300).for_each(|number| instance.send(format!("number {number}")));
    // It waits in the queue behind them.
    instance.messages().await.unwrap();
    assert!(matches!(turns.next().await, Some(BackgroundUpdate::Missed(44))));
    for number in 0..256 {
        let turn = told(&mut turns).await;
        assert_eq!(text(&turn), format!("number {number}"));
    }
    assert!(turns.next_pending().await.is_none());
    instance.close().await.unwrap();
    drop((instance, agent));
    assert!(turns.next().await.is_none(), "the agent is dropped");
}

#[both_linkages]
async fn turns_that_another_agent_requests_are_told() {
    let (router, log) = (LocalRouter::new(), Log::new());
    let asking = json!({ "log": log, "target": "librarian", "from": "turn" });
    let assistant = agent([ScriptItem::say("done")]).with::<Asking>(asking).router(router.clone()).build().unwrap();
    let librarian = Agent::builder("librarian").model(ScriptedModel::new([ScriptItem::say("a book")])).build().unwrap();
    router.add(&librarian);
    let (mut turns, mut own) = (librarian.subscribe_turns(), assistant.subscribe_turns());
    assistant.instance("test").await.unwrap().run("hello").await.unwrap();
    let turn = told(&mut turns).await;
    assert_eq!((text(&turn), &*turn.outcome.as_ref().unwrap().text()), ("question", "a book"));
    assert!(turn.input.reply_to.is_some() && own.next_pending().await.is_none());
    router.close().await.unwrap();
}

/// Returns the agents below the turn of a stream that lead to an update, and the update of the last of them.
fn innermost(update: &TurnUpdate) -> (Vec<&str>, &TurnUpdate) {
    let (mut agents, mut update) = (Vec::new(), update);
    while let TurnUpdate::Child { agent, update: inner, .. } = update {
        agents.push(agent.as_str());
        update = inner;
    }
    (agents, update)
}

#[both_linkages]
#[covers("WAKE-01", "D-40")]
async fn updates_of_background_turns_are_told_to_who_wants_them_and_to_the_stream_above() {
    let mut kinds = Vec::new();
    for is_wanted in [false, true] {
        let (router, log) = (LocalRouter::new(), Log::new());
        let asks = |target: &str| json!({ "log": log, "target": target, "from": "turn" });
        let assistant = agent([ScriptItem::say("done")]).with::<Asking>(asks("librarian")).router(router.clone());
        let model = || ScriptedModel::new([ScriptItem::say("a whole book").pieces(3.try_into().unwrap())]);
        let librarian = Agent::builder("librarian").model(model()).with::<Asking>(asks("archivist"));
        let librarian = librarian.router(router.clone()).build().unwrap();
        let archivist = Agent::builder("archivist").model(model()).build().unwrap();
        let assistant = assistant.build().unwrap();
        [&assistant, &librarian, &archivist].iter().for_each(|agent| router.add(agent));
        let mut turns = librarian.subscribe_turns();
        turns.follow(&archivist);
        if is_wanted {
            turns = turns.with_updates();
        }
        let instance = assistant.instance("test").await.unwrap();
        let (mut stream, mut streamed) = (instance.run_stream("hello").with_children(), Vec::new());
        while let Some(update) = stream.next().await {
            streamed.push(update);
        }
        stream.finish().await.unwrap();
        let (mut told, mut ended) = (Vec::new(), Vec::new());
        while let Some(notice) = turns.next_pending().await {
            match notice {
                BackgroundUpdate::Running(running) => {
                    assert!(!ended.contains(&running.agent), "its end is its last update");
                    told.push((running.agent.to_string(), running.update.clone()));
                }
                BackgroundUpdate::Ended(turn) => ended.push(turn.agent.clone()),
                other => panic!("{other:?}"),
            }
        }
        assert_eq!(ended, ["archivist", "librarian"]);
        let of_children = streamed.iter().map(innermost).filter_map(|(agents, update)| Some((*agents.last()?, update)));
        let of_children: Vec<_> = of_children.map(|(agent, update)| (agent.to_owned(), update.clone())).collect();
        assert_eq!(told, if is_wanted { of_children } else { Vec::new() });
        let kind = |update| {
            let (agents, update) = innermost(update);
            (agents.join(" "), std::mem::discriminant(update))
        };
        kinds.push(streamed.iter().map(kind).collect::<Vec<_>>());
        router.close().await.unwrap();
    }
    assert_eq!(kinds[0], kinds[1], "the stream is told the same");
    assert!(kinds[0].iter().any(|(agents, _)| agents == "librarian archivist"));
}

#[tokio::test]
async fn what_is_delegated_between_turns_begins_a_chain_of_its_own() {
    let agent = agent([ScriptItem::say("awake").repeat()]).build().unwrap();
    let mut turns = agent.subscribe_turns();
    let instance = agent.instance("test").await.unwrap();
    // As a timer does it, and more often than delegations may lead to one another.
    for _ in 0..40 {
        let delegate = AgentDelegate::new(agent.name().clone(), "woken");
        instance.events().delegate(delegate).await.unwrap();
        let turn = told(&mut turns).await;
        assert_eq!((turn.input.wakings, turn.outcome.is_ok()), (1, true));
    }
}
