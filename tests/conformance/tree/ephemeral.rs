//! D-40: conversations for one request alone.

use std::path::Path;
use std::sync::Arc;

use goondan::agent::BackgroundUpdate;
use goondan::json;
use goondan::store::{FileStore, Fsync, MemoryStore};
use goondan_breaking::{Break, Breaking, Plan};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::is_long_run;
use tokio::task::yield_now;

use super::{From, Leaf, Tower, dropped_after, event, kept};
use crate::stored::copy;

#[both_linkages(start_paused = true)]
#[covers("D-40")]
async fn a_conversation_for_one_request_is_there_while_the_turn_is_and_then_gone() {
    for (depth, from) in [(1, From::Tool), (2, From::Layer), (3, From::Tool)] {
        let mut rounds = 0;
        loop {
            let why = format!("{depth} {from:?} {rounds}");
            let store = Arc::new(MemoryStore::new());
            let tower = Tower::ephemeral(&store, depth, from, Leaf::Works(3));
            let instance = tower.conversation(0).await;
            let has_ended = dropped_after(&instance, rounds, depth).await;
            match rounds % 4 {
                // It goes on, with the same conversations.
                0 => assert_eq!(instance.run(event()).await.unwrap().text(), "done", "{why}"),
                1 => _ = instance.cancel(&event().id).await.unwrap(),
                2 => instance.abandon().await.unwrap(),
                // It has ended, and this is what its program does next.
                _ if has_ended => _ = instance.messages().await.unwrap(),
                // As after a crash: another process closes the turn.
                _ => {
                    for agent in tower.agents.iter().rev() {
                        agent.close().await.unwrap();
                    }
                    let next = Tower::ephemeral(&store, depth, from, Leaf::Works(3));
                    next.conversation(0).await.abandon().await.unwrap();
                }
            }
            // What is deleted meanwhile is deleted to the end.
            for _ in 0..20 {
                yield_now().await;
            }
            assert_eq!(kept(&store).await, Vec::<String>::new(), "{why}");
            if has_ended {
                break;
            }
            rounds += 1;
        }
    }
}

/// The process ends at each write of each of the conversations. The next one goes on with the turn, or only opens the
/// conversation if the turn has ended.
#[both_linkages(start_paused = true)]
#[covers("D-40")]
async fn a_conversation_for_one_request_is_deleted_by_the_next_process() {
    for (depth, from) in [(1, From::Tool), (2, From::Layer)] {
        for kind in [Break::Before, Break::After] {
            let (mut deleted, mut number) = (0, 1);
            loop {
                let why = format!("{depth} {from:?} {kind:?} {number}");
                let (disk, later) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
                let store = |directory: &Path| Arc::new(FileStore::open(directory).unwrap().fsync(Fsync::Never));
                let plan = Plan::new([(number, kind)]);
                let breaking = Arc::new(Breaking::new(store(disk.path()), Arc::clone(&plan)));
                let tower = Tower::ephemeral(&breaking, depth, from, Leaf::Works(3));
                let instance = tower.conversation(0).await;
                let is_broken = tokio::select! {
                    turn = instance.run(event()) => turn.map(|_| false).unwrap(),
                    () = plan.broken() => true,
                };
                copy(disk.path(), later.path());
                let store = store(later.path());
                let next = Tower::ephemeral(&store, depth, from, Leaf::Works(3));
                let left = kept(&*store).await.len();
                let instance = next.conversation(0).await;
                match instance.interrupted().await.unwrap() {
                    Some(_) => assert_eq!(instance.run(event()).await.unwrap().text(), "done", "{why}"),
                    None => deleted += left,
                }
                assert_eq!(kept(&*store).await, Vec::<String>::new(), "{why}");
                if !is_broken {
                    break;
                }
                number += 1;
            }
            // At the least, after the commit, and at the deletion of each.
            assert!(deleted > 0, "{depth} {from:?} {kind:?}");
        }
    }
}

/// Of many agents that work, one answers first.
#[both_linkages]
#[covers("WORK-01")]
async fn many_requests_end_with_the_first_answer() {
    let count = if is_long_run() { 1_000 } else { 200 };
    let store = Arc::new(MemoryStore::new());
    let tower = Tower::over(&store, 1, From::Tool, Leaf::Works(1), |at, config| {
        config["ephemeral"] = json!(true);
        if at == 0 {
            config["targets"] = json!(vec!["a1"; count]);
        }
    });
    assert_eq!(tower.conversation(0).await.run(event()).await.unwrap().text(), "done");
    tower.assert_still("the turn has ended");
    assert_eq!(kept(&store).await, Vec::<String>::new());
}

#[both_linkages]
#[covers("D-40")]
async fn each_request_has_a_conversation_of_its_own() {
    let store = Arc::new(MemoryStore::new());
    let tower = Tower::over(&store, 1, From::Tool, Leaf::Works(1), |at, config| {
        config["ephemeral"] = json!(true);
        if at == 0 {
            config["targets"] = json!(["a1", "a1", "a1"]);
        }
    });
    let mut turns = tower.agents[1].subscribe_turns();
    tower.conversation(0).await.run(event()).await.unwrap();
    assert_eq!(kept(&store).await, Vec::<String>::new());
    let mut keys = std::collections::BTreeSet::new();
    while let Some(update) = turns.next_pending().await {
        let BackgroundUpdate::Ended(turn) = update else { panic!("{update:?}") };
        keys.insert(turn.instance.to_string());
    }
    assert_eq!(keys.len(), 3, "{keys:?}");
}
