//! LEGACY-POINTS: the work of `turn.pre`, `turn.post`, `step.pre` and `step.post` is done before and after `next`.

use conformance_extensions::points::Points;
use goondan::model::ScriptItem;
use goondan::testing::Chat;
use goondan::{json, testing};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

async fn chat(log: &Log, script: impl IntoIterator<Item = ScriptItem>) -> Chat {
    let chat = Chat::builder().agent(|agent| agent.with::<Points>(log.config()));
    chat.script(script).start().await.unwrap()
}

/// Returns the messages of each request as lines.
fn transcripts(requests: &[testing::RecordedRequest]) -> Vec<Vec<String>> {
    requests.iter().map(testing::RecordedRequest::transcript).collect()
}

#[both_linkages]
#[covers("LEGACY-POINTS-01")]
async fn a_turn_middleware_works_before_and_after_the_turn() {
    let log = Log::new();
    let chat = chat(&log, [ScriptItem::say("one"), ScriptItem::say("two")]).await;
    let turn = chat.say("hello").await.unwrap();
    assert_eq!(turn.text(), "one, by turn.post", "it changes the result");
    assert_eq!(log.take(), ["turn.pre hello", "step.pre 0", "step.post 0 Completed calls=0", "turn.post one"]);
    chat.say("again").await.unwrap();
    let requests = transcripts(&chat.requests());
    assert_eq!(requests[0], ["user: hello", "system: turn.pre", "system: step.pre 0"], "it prepares the turn");
    assert_eq!(requests[1][3..5], ["assistant: one", "system: turn.post"], "it adds to the conversation");
}

#[both_linkages]
#[covers("LEGACY-POINTS-02")]
async fn a_step_middleware_works_before_and_after_every_step() {
    let log = Log::new();
    let script = [ScriptItem::call("points__run", json!({})), ScriptItem::say("unheard"), ScriptItem::say("heard")];
    let chat = chat(&log, script).await;
    assert_eq!(chat.say("go on once").await.unwrap().text(), "heard, by turn.post", "step.post went on");
    let steps: Vec<_> = log.take().into_iter().filter(|line| line.starts_with("step.")).collect();
    let expected = [
        "step.pre 0",
        "step.post 0 Completed calls=1",
        "step.pre 1",
        "step.post 1 Completed calls=0",
        "step.pre 2",
        "step.post 2 Completed calls=0",
    ];
    assert_eq!(steps, expected);
    let requests = chat.requests();
    for (step, request) in requests.iter().enumerate() {
        assert_eq!(request.transcript().last().unwrap(), &format!("system: step.pre {step}"));
        // step.pre offers the tool in the first step alone.
        assert_eq!(request.tool_names().contains(&"points__run"), step == 0);
    }
}
