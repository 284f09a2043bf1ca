//! PIPE-20: a step middleware judges the result of a step.

use conformance_extensions::judged::Judging;
use goondan::json;
use goondan::model::{ModelFinish, ModelResponse, ScriptItem};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers("PIPE-20")]
async fn a_step_middleware_asks_for_a_retry_because_of_the_result() {
    let log = Log::new();
    let finished = |text, reason| ScriptItem::raw(ModelResponse::text(text).with_finish_reason(reason));
    let script = [
        ScriptItem::call("no__tool", json!({})),
        finished("the answer is", ModelFinish::Length),
        finished("it is 42", ModelFinish::Stop),
    ];
    let turn = one_turn(agent(script).with::<Judging>(log.config())).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("it is 42", 3));
    assert_eq!(log.take(), ["None [\"no__tool\"]", "Some(Length) []", "Some(Stop) []"]);
}
