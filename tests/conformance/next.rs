//! NEXT: `next` runs exactly once, and its result is the result of the chain.

use conformance_extensions::next::{
    Changing, Hoarding, Impatient, Panicking, Persistent, Reached, Recovering, Refusing, Stashing, Stopping, Timeline,
};
use goondan::middleware::{FinishReason, ToolCallStatus};
use goondan::model::ScriptItem;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

#[both_linkages]
#[covers("NEXT-02", "PIPE-24")]
async fn without_next_nothing_inside_runs() {
    let log = Log::new();
    let agent = agent([ScriptItem::say("hi")]).with::<Stopping>(json!({})).with::<Reached>(log.config());
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), "E_CLOSED");
    assert_eq!(error.extension().unwrap(), "stopping");
    assert_eq!(error.part(), Some("turn middleware `stop`"));
    assert_eq!(log.take(), [""; 0]);
}

#[both_linkages]
#[covers("NEXT-01")]
async fn a_result_of_an_earlier_run_is_refused() {
    let agent = agent([ScriptItem::say("hi").repeat()]).with::<Stashing>(json!({}));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_NEXT);
    assert_eq!(error.extension().unwrap(), "stashing");
    assert_eq!(error.part(), Some("step middleware `stash`"));
}

#[both_linkages]
async fn a_result_of_an_earlier_turn_is_refused() {
    let agent = agent([ScriptItem::say("hi").repeat()]).with::<Hoarding>(json!({})).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    assert_eq!(instance.run("one").await.unwrap_err().message(), "kept");
    let error = instance.run("two").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_NEXT);
    assert_eq!(error.extension().unwrap(), "hoarding");
    assert_eq!(error.part(), Some("turn middleware `keep`"));
}

#[both_linkages]
async fn a_dropped_next_gives_the_run_back_to_the_layer_that_dropped_it() {
    let agent = agent([ScriptItem::say("hi")]).with::<Impatient>(json!({}));
    let agent = agent.build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let error = instance.run("hello").await.unwrap_err();
    assert_eq!((error.extension().unwrap().as_str(), &*error.message()), ("impatient", "too slow"));
    let messages = instance.messages().await.unwrap();
    assert_eq!(messages.last().unwrap().text(), "too slow");
}

#[both_linkages]
#[covers("PIPE-05", "NEXT-04")]
async fn a_result_may_be_changed_on_its_way_out() {
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("fine").when("^replaced$").unwrap()];
    let turn = one_turn(agent(script).with::<Changing>(json!({}))).await.unwrap();
    assert_eq!(turn.text(), "fine!");
    assert_eq!(turn.tool_calls()[0].status, ToolCallStatus::Ok);
}

#[both_linkages]
#[covers("NEXT-06", "PIPE-22", "LEGACY-POINTS-05")]
async fn an_outer_layer_may_recover_from_a_failure_inside() {
    let turn = one_turn(agent([ScriptItem::fail("overloaded", true)]).with::<Recovering>(json!({})));
    let turn = turn.await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.finish_reason()), ("sorry: overloaded", FinishReason::Error));
    assert_eq!(turn.error().unwrap().code(), &ErrorCode::MODEL);
    assert_eq!(turn.steps(), 1);
}

#[both_linkages]
#[covers("LEGACY-POINTS-06")]
async fn a_refused_call_is_an_error_for_the_model_and_the_turn_goes_on() {
    let script = [
        ScriptItem::call("any__tool", json!({})),
        ScriptItem::say("understood").when("E_POLICY: not allowed\nsuggestion: ask a person").unwrap(),
    ];
    let turn = one_turn(agent(script).with::<Refusing>(json!({}))).await.unwrap();
    assert_eq!(turn.text(), "understood");
    assert_eq!(turn.tool_calls()[0].status, ToolCallStatus::Error);
}

#[both_linkages]
async fn steps_and_calls_recover_too() {
    let log = Log::new();
    let script = [
        ScriptItem::fail("first", false),
        ScriptItem::call("any__tool", json!({})),
        ScriptItem::say("all right").when("^recovered$").unwrap(),
    ];
    let agent = agent(script).with::<Persistent>(log.config()).with::<Refusing>(json!({}));
    let turn = one_turn(agent).await.unwrap();
    assert_eq!((turn.text().as_ref(), turn.steps()), ("all right", 3));
    assert_eq!(log.take(), ["\"first\""]);
}

#[both_linkages]
async fn a_panic_becomes_an_error_that_names_the_layer_even_behind_other_layers() {
    for (place, part) in [("turn", "turn middleware `turn`"), ("step", "step middleware `step`")] {
        let log = Log::new();
        let agent = agent([ScriptItem::say("hi").repeat()])
            .with::<Reached>(log.config())
            .with::<Panicking>(json!({ "place": place }));
        let agent = agent.build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let error = instance.run("hello").await.unwrap_err();
        assert_eq!(error.code(), &ErrorCode::EXT_PANIC);
        assert_eq!((error.extension().unwrap().as_str(), error.part()), ("panicking", Some(part)));
        assert!(error.message().contains("boom"), "{error}");
        // D-16: the failed turn was folded, and the conversation goes on.
        assert_eq!(instance.run("again").await.unwrap_err().code(), &ErrorCode::EXT_PANIC);
        assert!(instance.messages().await.unwrap().iter().any(|message| message.text() == "again"));
    }
}

#[both_linkages]
async fn a_panic_in_a_tool_call_is_an_error_for_the_model() {
    let script = [ScriptItem::call("any__tool", json!({})), ScriptItem::say("noted").when("E_EXT_PANIC").unwrap()];
    let turn = one_turn(agent(script).with::<Panicking>(json!({ "place": "toolCall" }))).await.unwrap();
    assert_eq!(turn.text(), "noted");
}

#[both_linkages]
async fn a_panic_in_init_fails_the_start() {
    let agent = agent([]).with::<Panicking>(json!({ "place": "init" }));
    let error = one_turn(agent).await.unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_INIT, "panicking"));
    assert!(format!("{:?}", error).contains("boom in init"), "{error:?}");
}

#[both_linkages]
#[covers("NEXT-05", "PIPE-04", "PIPE-06")]
async fn next_ends_when_everything_inside_has_ended() {
    let log = Log::new();
    let script = [ScriptItem::call("no__tool", json!({})), ScriptItem::say("done")];
    one_turn(agent(script).with::<Timeline>(log.config())).await.unwrap();
    // Before: the input. After: the call, the result and the answer, too.
    assert_eq!(log.take(), ["1 before, 4 after"]);
}
