//! SHOW-01: what extensions show to the person.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use conformance_extensions::shown::Showing;
use goondan::agent::{EventStream, Observer, Told, TurnUpdate, Wants};
use goondan::event::{EventScope, ExtensionShown, ItemState, Shown};
use goondan::model::ScriptItem;
use goondan::{Instance, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

/// Writes down what is shown.
#[derive(Clone, Default)]
struct Watching(Arc<Mutex<Vec<ExtensionShown>>>);

impl Observer for Watching {
    fn wants(&self) -> Wants {
        Wants::PIECES
    }

    fn told(&self, _: &EventScope, what: &Told<'_>) {
        if let Told::Shown(shown) = what {
            self.0.lock().unwrap().push((*shown).clone());
        }
    }
}

async fn opened() -> Instance {
    let script = [ScriptItem::call("showing__all", json!({})), ScriptItem::say("done")];
    agent(script).with::<Showing>(json!({})).build().unwrap().instance("test").await.unwrap()
}

async fn next(events: &mut EventStream) -> ExtensionShown {
    let event = tokio::time::timeout(Duration::from_secs(60), events.next()).await.unwrap().unwrap();
    event.payload().unwrap()
}

#[both_linkages]
#[covers("SHOW-01", "D-41")]
async fn it_is_told_to_stream_observer_and_bus_in_order_and_is_no_message() {
    let script = [ScriptItem::call("showing__all", json!({})), ScriptItem::say("done")];
    let watching = Watching::default();
    let agent = agent(script).with::<Showing>(json!({})).observer(watching.clone()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut bus = instance.events().subscribe(ExtensionShown::NAME).unwrap();
    let (mut turn, mut told, mut ids) = (instance.run_stream("hello"), Vec::new(), Vec::new());
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Shown(shown) => told.push(shown),
            TurnUpdate::Event(event) => ids.push(event.scope().turn_id.clone()),
            _ => {}
        }
    }
    turn.finish().await.unwrap();

    assert!(told.iter().all(|shown| shown.extension == "showing" && shown.turn_id == Some(ids[0].clone())));
    let texts: Vec<_> = told.iter().map(|shown| shown.shown.to_string()).collect();
    let expected = [
        "in step of showing__all\u{fffd}[2J",
        "half way",
        "Work\n[x] part 0\n[>] part 1",
        "Work\n[x] part 0\n[x] part 1",
        "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b\n",
    ];
    assert_eq!(texts, expected);
    assert!(told[3].shown.replaces(&told[2].shown) && !told[3].shown.replaces(&told[1].shown));
    assert_eq!(*watching.0.lock().unwrap(), told);
    for shown in &told {
        assert_eq!(next(&mut bus).await, *shown);
    }
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages.len(), 4);
    assert!(!serde_json::to_string(&messages).unwrap().contains("part 0"));
}

#[both_linkages]
#[covers("SHOW-01")]
async fn a_flood_between_turns_is_bounded_and_told_in_order() {
    let instance = opened().await;
    let mut shown = instance.events().subscribe(ExtensionShown::NAME).unwrap();
    let flood = json!({ "notes": 10_000, "bytes": 10, "lists": 100 });
    instance.events().emit("show.flood", (flood,)).await.unwrap();
    let (mut told, mut left_out, mut newest) = (Vec::new(), 0, None);
    while told.len() + left_out < 10_000 || newest != Some(ItemState::Done) {
        let ExtensionShown { extension, turn_id, shown, .. } = next(&mut shown).await;
        assert_eq!((extension.as_str(), turn_id), ("showing", None));
        match shown {
            Shown::Note { text } => match text.strip_prefix("… ").and_then(|rest| rest.split_once(" more")) {
                Some((count, _)) => left_out += count.parse::<usize>().unwrap(),
                None => told.push(text.split_once(' ').unwrap().0.parse::<usize>().unwrap()),
            },
            Shown::List { items, .. } => newest = Some(items[1].state),
            other => panic!("{other:?}"),
        }
    }
    assert!(told.is_sorted() && told.first() == Some(&0) && left_out > 0, "{} told, {left_out} left out", told.len());
}

#[both_linkages]
#[covers("SHOW-01")]
async fn long_texts_are_shortened_and_have_no_control_characters() {
    let instance = opened().await;
    let mut shown = instance.events().subscribe(ExtensionShown::NAME).unwrap();
    let flood = json!({ "notes": 3, "bytes": 1_000_000, "lists": 0 });
    instance.events().emit("show.flood", (flood,)).await.unwrap();
    for number in 0..3 {
        let text = next(&mut shown).await.shown.to_string();
        assert_eq!(text.chars().count(), 2_000);
        assert!(text.starts_with(&format!("{number} \u{fffd}\u{fffd}")) && text.ends_with('…'));
    }
}

#[both_linkages]
#[covers("SHOW-01")]
async fn a_handler_that_shows_what_is_shown_comes_to_an_end() {
    let instance = opened().await;
    instance.events().emit("show.echo", ()).await.unwrap();
    // As many as may lead to one another, 80 in each interval.
    while !instance.events().settle(Duration::from_secs(60)).await.unwrap() {}
    let mut shown = instance.events().subscribe(ExtensionShown::NAME).unwrap();
    let flood = json!({ "notes": 1, "bytes": 0, "lists": 0 });
    instance.events().emit("show.flood", (flood,)).await.unwrap();
    while next(&mut shown).await.shown.to_string() != "0 " {}
}
