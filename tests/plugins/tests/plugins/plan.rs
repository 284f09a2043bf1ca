//! SHOW-01: the plan that the model writes, reads, and shows to the person.

use goondan::event::ExtensionShown;
use goondan::model::ScriptItem;
use goondan::testing::{Chat, ChatBuilder};
use goondan::{Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::WithPlugin;

fn items(states: &[&str]) -> Value {
    let item = |(number, state): (usize, &&str)| json!({ "text": format!("part {number}"), "state": state });
    json!({ "items": states.iter().enumerate().map(item).collect::<Vec<_>>() })
}

fn writes(states: &[&str]) -> ScriptItem {
    ScriptItem::call("plan__write", items(states))
}

fn builder(script: impl IntoIterator<Item = ScriptItem>) -> ChatBuilder {
    Chat::builder().agent(|agent| agent.plugin("plan", "plan", json!({}))).script(script)
}

/// Returns what the model reads of the plan in a request, which stands at its end.
fn read(transcript: &[String]) -> Option<&str> {
    assert!(transcript.iter().rev().skip(1).all(|message| !message.contains("<plan>")), "{transcript:?}");
    transcript.last()?.strip_prefix("user: <plan>\n")?.split_once("\n</plan>").map(|(plan, _)| plan)
}

fn shown(chat: &Chat) -> Vec<String> {
    let events = chat.events(ExtensionShown::NAME);
    events.iter().map(|event| event.payload::<ExtensionShown>().unwrap().shown.to_string()).collect()
}

#[both_linkages]
#[covers("SHOW-01")]
async fn the_model_reads_its_plan_behind_everything_else_and_the_person_sees_it() {
    let script = [writes(&["active", "open"]), writes(&["done", "active"]), writes(&["done", "failed"])];
    let chat = builder(script.into_iter().chain([ScriptItem::say("done")])).start().await.unwrap();
    chat.say("work").await.unwrap();

    let requests: Vec<_> = chat.requests().iter().map(|request| request.transcript()).collect();
    let plans: Vec<_> = requests.iter().map(|transcript| read(transcript)).collect();
    let expected = [None, Some("[>] part 0\n[ ] part 1"), Some("[x] part 0\n[>] part 1"), None];
    assert_eq!(plans, expected, "one that is done needs no reading");
    for pair in requests.windows(2) {
        let before = pair[0].len() - usize::from(read(&pair[0]).is_some());
        assert_eq!(pair[1][..before], pair[0][..before], "a cache keeps what stood before the plan");
    }
    assert_eq!(
        shown(&chat),
        ["Plan\n[>] part 0\n[ ] part 1", "Plan\n[x] part 0\n[>] part 1", "Plan\n[x] part 0\n[!] part 1"]
    );
    let transcript = chat.transcript().await;
    assert!(transcript.iter().all(|message| !message.contains("<plan>")), "{transcript:?}");
    assert_eq!(transcript[2], r#"tool: {"done":0,"of":2}"#);
}

#[both_linkages]
#[covers("SHOW-01")]
async fn a_plan_outlasts_the_window_and_a_restart() {
    let script = [writes(&["active"]), ScriptItem::say("begun"), ScriptItem::say("on it"), ScriptItem::say("still")];
    let window = |agent: goondan::agent::AgentBuilder| {
        let agent = agent.plugin("plan", "plan", json!({}));
        agent.plugin("message-window", "message-window", json!({ "maxMessages": 1 }))
    };
    let mut chat = Chat::builder().agent(window).script(script).start().await.unwrap();
    chat.say("work").await.unwrap();
    chat.restart().await.unwrap();
    chat.say("go on").await.unwrap();
    let transcript = chat.last_request().transcript();
    assert_eq!((transcript.len(), read(&transcript)), (2, Some("[>] part 0")));
    assert_eq!(shown(&chat).last().unwrap(), "Plan\n[>] part 0", "a turn begins with it");
}

#[both_linkages]
#[covers("SHOW-01")]
async fn an_empty_plan_takes_it_away_and_a_wrong_one_changes_nothing() {
    let wrong = [json!({ "items": vec![json!({ "text": "a", "state": "open" }); 51] }), items(&["begun"]), json!({})];
    let script = [writes(&["open"])].into_iter().chain(wrong.map(|wrong| ScriptItem::call("plan__write", wrong)));
    let script = script.chain([writes(&[]), ScriptItem::say("done")]);
    let chat = builder(script).start().await.unwrap();
    chat.say("work").await.unwrap();
    let plans: Vec<_> = chat.requests().iter().map(|request| read(&request.transcript()).map(str::to_owned)).collect();
    let kept = Some("[ ] part 0".to_owned());
    assert_eq!(plans, [None, kept.clone(), kept.clone(), kept.clone(), kept, None]);
    assert_eq!(shown(&chat), ["Plan\n[ ] part 0", "Plan"]);
}

#[both_linkages]
#[covers("BACK-01")]
async fn a_plan_is_forgotten_with_its_turn() {
    let script = [writes(&["open"]), ScriptItem::say("begun"), ScriptItem::say("fine")];
    let chat = builder(script).start().await.unwrap();
    chat.say("work").await.unwrap();
    chat.instance().undo().await.unwrap();
    assert_eq!(shown(&chat).last().unwrap(), "Plan");
    chat.say("hello").await.unwrap();
    assert_eq!(chat.last_request().transcript(), ["user: hello"]);
}
