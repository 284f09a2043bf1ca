//! The program's end of a conversation's bus.

use std::time::Duration;

use conformance_extensions::program_events::{Answer, Approval};
use goondan::agent::{EventStream, Instance, TurnUpdate};
use goondan::event::{Event, RuntimeEvent};
use goondan::model::ScriptItem;
use goondan::{ErrorCode, json};
use goondan_covers::both_linkages;
use tokio::time::sleep;

use crate::linkage::Extended;
use crate::support::agent;

fn tell(events: u32) -> ScriptItem {
    ScriptItem::call("approval__tell", json!({ "events": events }))
}

async fn answer(instance: &Instance, question: &Event, allowed: bool) {
    for (call_id, allowed) in [("another".to_owned(), !allowed), (question.payload().unwrap(), allowed)] {
        instance.events().emit("approval.answer", (Answer { call_id, allowed },)).await.unwrap();
    }
}

/// Returns the results of the tool calls so far.
async fn results(instance: &Instance) -> Vec<String> {
    let messages = instance.messages().await.unwrap();
    let results = messages.iter().filter(|message| message.role().as_str() == "tool");
    results.map(|message| message.text().into_owned()).collect()
}

#[both_linkages]
async fn a_program_answers_an_extension_that_waits_in_the_loop_of_the_turn() {
    let agent = agent([tell(2), tell(0), ScriptItem::say("done")]).with::<Approval>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let events = ["approval.question", "approval.number"].map(|name| instance.events().subscribe(name).unwrap());
    let mut turn = events.into_iter().fold(instance.run_stream("hello"), |turn, events| turn.with_events(events));
    let mut told = Vec::new();
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Emitted(event) => {
                told.push(event.name().to_owned());
                if event.name() == "approval.question" {
                    answer(&instance, &event, event.args()[1]["events"] == 2).await;
                }
            }
            TurnUpdate::Event(event) if event.name().starts_with("tool.") => {
                let has_code = matches!(&*event, RuntimeEvent::ToolFailed { error_code: Some(_), .. });
                assert_eq!(has_code, event.name() == "tool.failed", "{event:?}");
                told.push(event.name().to_owned());
            }
            TurnUpdate::Text { text, .. } => told.push(text),
            _ => {}
        }
    }
    assert_eq!(turn.finish().await.unwrap().text(), "done");
    // Each where it happened, although the model answers without waiting.
    let (called, asked, number) = ("tool.called", "approval.question", "approval.number");
    let expected = [asked, called, number, number, "tool.completed", asked, "tool.failed", "done"];
    assert_eq!(told, expected);
    let results = results(&instance).await;
    assert_eq!(results[0], "2");
    assert!(results[1].contains("not allowed"), "{results:?}");
}

#[both_linkages]
async fn a_program_answers_from_a_task_of_its_own_while_the_turn_runs() {
    let agent = agent([tell(0), ScriptItem::say("done")]).with::<Approval>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut questions = instance.events().subscribe("approval.q*").unwrap();
    let asked = instance.clone();
    let person = tokio::spawn(async move { answer(&asked, &questions.next().await.unwrap(), true).await });
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    person.await.unwrap();
    assert_eq!(results(&instance).await, ["0"]);
}

async fn ping(instance: &Instance, pongs: &mut EventStream, number: u32) {
    instance.events().emit("approval.ping", (number,)).await.unwrap();
    assert_eq!(pongs.next().await.unwrap().payload::<u32>().unwrap(), number + 1);
}

#[both_linkages(start_paused = true)]
async fn a_subscription_lasts_while_the_conversation_is_idle_and_an_event_opens_it() {
    let idle = Duration::from_secs(60);
    let agent = agent([ScriptItem::say("done")]).with::<Approval>(json!({})).idle_after(idle).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut pongs = instance.events().subscribe("approval.pong").unwrap();
    let mut cleanups = instance.events().subscribe("extension.cleanup").unwrap();
    ping(&instance, &mut pongs, 1).await;
    for number in 2..4 {
        sleep(2 * idle).await;
        cleanups.next().await.unwrap();
        ping(&instance, &mut pongs, number).await;
    }
    drop(cleanups);
    let mut later = instance.events().subscribe("approval.pong").unwrap();
    ping(&instance, &mut pongs, 4).await;
    assert_eq!(later.next().await.unwrap().payload::<u32>().unwrap(), 5);
}

#[both_linkages]
async fn subscriptions_end_with_the_instance() {
    let agent = agent([ScriptItem::say("done")]).with::<Approval>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut pongs = instance.events().subscribe("approval.pong").unwrap();
    instance.close().await.unwrap();
    assert!(pongs.next().await.is_none());
    assert!(instance.events().subscribe("approval.pong").unwrap().next().await.is_none());
    let closed = instance.events().emit("approval.ping", (1,)).await.unwrap_err();
    assert_eq!(*closed.code(), ErrorCode::INSTANCE_CLOSED);

    let instance = agent.instance("test").await.unwrap();
    let mut pongs = instance.events().subscribe("approval.pong").unwrap();
    ping(&instance, &mut pongs, 1).await;
    for (name, pattern) in [("", ""), ("a b", "a b"), ("a.*", "a.*!")] {
        let refused = instance.events().emit(name, ()).await.unwrap_err();
        assert_eq!(*refused.code(), ErrorCode::EVENT_NAME, "{name}");
        assert_eq!(*instance.events().subscribe(pattern).unwrap_err().code(), ErrorCode::EVENT_NAME, "{pattern}");
    }
    drop(instance);
    assert!(pongs.next().await.is_none(), "the last handle was dropped");
}

#[both_linkages]
async fn a_program_that_does_not_read_loses_what_its_queue_cannot_hold() {
    let script = (0..3).flat_map(|_| [tell(200), ScriptItem::say("done")]);
    let agent = agent(script).with::<Approval>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut numbers = instance.events().subscribe("approval.number").unwrap();
    let turn = async || {
        let mut turn = instance.run_stream("hello").with_events(instance.events().subscribe("*.question").unwrap());
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Emitted(question) = update {
                answer(&instance, &question, true).await;
            }
        }
        turn.finish().await.unwrap();
    };
    turn().await;
    turn().await;
    let mut read = Vec::new();
    for _ in 0..256 {
        read.push(numbers.next().await.unwrap().payload::<u32>().unwrap());
    }
    assert!(read.iter().copied().eq((0..200).chain(0..56)), "{read:?}");
    // It goes on with what comes then.
    turn().await;
    assert_eq!(numbers.next().await.unwrap().payload::<u32>().unwrap(), 0);
}

#[both_linkages]
async fn a_program_that_asks_all_extensions_knows_when_it_has_the_answers() {
    let agent = agent([]).with::<Approval>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut pongs = instance.events().subscribe("approval.pong").unwrap();
    instance.events().emit("approval.ping", (1,)).await.unwrap();
    assert!(instance.events().settle(Duration::from_secs(60)).await.unwrap());
    // It is there: nothing is waited for.
    let pong = tokio::time::timeout(Duration::ZERO, pongs.next()).await.unwrap().unwrap();
    assert_eq!(pong.payload::<u32>().unwrap(), 2);
}
