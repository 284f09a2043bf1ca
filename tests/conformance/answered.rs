//! The answer of a turn follows the conversation: what middlewares have made of its message.

use conformance_extensions::hold::{Amending, Guarding};
use goondan::conversation::{Part, TextPart};
use goondan::middleware::ToolRequest;
use goondan::model::{ModelResponse, ScriptItem};
use goondan::{Value, json};
use goondan_covers::{both_linkages, interruptible};

use crate::linkage::Extended;
use crate::support::{Log, agent};

/// Runs a turn in which an inner turn layer does `then`. Returns what an outer layer saw, what the caller got, and the
/// messages of the conversation.
#[interruptible]
async fn amended(then: Value) -> (String, String, Vec<String>) {
    let (outer, inner) = (Log::new(), Log::new());
    let agent = agent([ScriptItem::say("original")])
        .with_named("outer", "amending", outer.config())
        .with_named("inner", "amending", json!({ "log": inner, "then": then }))
        .build()
        .unwrap();
    let instance = agent.instance("test").await.unwrap();
    let turn = instance.run("hello").await.unwrap();
    assert_eq!(inner.take(), ["original"]);
    let texts = instance.messages().await.unwrap().iter().map(|message| message.text().into_owned()).collect();
    (outer.take().remove(0), turn.text().into_owned(), texts)
}

#[both_linkages]
async fn a_replaced_message_is_the_answer_for_outer_layers_and_the_caller() {
    let same = |seen: &str, messages: &[&str]| {
        (seen.to_owned(), seen.to_owned(), messages.iter().copied().map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(amended(json!({ "replace": "better" })).await, same("better", &["hello", "better"]));
    assert_eq!(amended(json!("remove")).await, same("", &["hello"]));
    assert_eq!(amended(json!("truncate")).await, same("", &[]));
    assert_eq!(amended(json!({ "removeAndAppend": "no" })).await, same("no", &["hello", "no"]));
    // What is added to an answer does not take its place.
    assert_eq!(amended(json!({ "append": "P.S." })).await, same("original", &["hello", "original", "P.S."]));
    assert_eq!(amended(json!({ "set": "set" })).await, same("set", &["hello", "original"]));
}

#[both_linkages]
async fn a_text_that_was_set_stays_when_the_message_is_replaced() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("original").repeat()])
        .with_named("outer", "amending", json!({ "log": log, "then": { "replace": "kept" } }))
        .with_named("inner", "amending", json!({ "log": log, "then": { "set": "set" } }))
        .build()
        .unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap().text(), "set");
    assert_eq!(instance.messages().await.unwrap()[1].text(), "kept");
}

#[both_linkages]
async fn a_message_that_a_step_replaced_or_removed_is_followed_too() {
    let log = Log::new();
    let guarded = |then: Value| {
        let mut talking = ModelResponse::tool_calls([ToolRequest::new("c1".into(), "a__b", json!({}))]);
        talking.content.insert(0, Part::Text(TextPart::new("let me see")));
        let script = [ScriptItem::raw(talking), ScriptItem::say("original")];
        agent(script).with::<Guarding>(json!({ "log": log, "then": then }))
    };
    let text = async |then| {
        guarded(then).build()?.instance("test").await?.run("hello").await.map(|turn| turn.text().into_owned())
    };
    assert_eq!(text(json!({ "replace": "better" })).await.unwrap(), "better");
    assert_eq!(text(json!("remove")).await.unwrap(), "");
    assert_eq!(text(json!({ "append": "P.S." })).await.unwrap(), "P.S.");
    // Two layers of both kinds.
    let outer = json!({ "log": log, "then": { "replace": "best" } });
    log.take();
    let agent = guarded(json!({ "replace": "better" })).with::<Amending>(outer).build().unwrap();
    let turn = agent.instance("test").await.unwrap().run("hello").await.unwrap();
    assert_eq!((turn.text().as_ref(), log.take().last().unwrap().as_str()), ("best", "better"));
}
