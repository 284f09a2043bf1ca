//! ORDER: the order of layers.

use goondan::agent::AgentBuilder;
use goondan::model::ScriptItem;
use goondan::{ErrorCode, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::{Log, agent, one_turn};

/// Runs a turn with one tool call, with an extension for each list of layers, and returns the log. A layer is a kind,
/// a name and a priority.
async fn log_of(extensions: &[&[(&str, &str, Option<i32>)]]) -> Vec<String> {
    let log = Log::new();
    let script = [ScriptItem::call("core__run", json!({})), ScriptItem::say("done")];
    let mut agent = agent(script);
    for (index, layers) in extensions.iter().enumerate() {
        agent = agent.with_named(format!("layers-{index}"), "layers", json!({ "log": log, "layers": layers }));
    }
    one_turn(agent).await.unwrap();
    log.take()
}

fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

#[both_linkages]
#[covers("ORDER-05", "ORDER-10", "ORDER-06", "PIPE-03")]
async fn b_is_outermost_then_a_then_c_for_each_kind() {
    for kind in ["turn", "step", "toolCall"] {
        let a: &[_] = &[(kind, "A", Some(10))];
        let b: &[_] = &[(kind, "B", Some(5))];
        let c: &[_] = &[(kind, "C", Some(10))];
        let log = log_of(&[a, b, c]).await;
        let expected = match kind {
            // The step chain runs twice: in the step that calls the tool, and in the one that answers.
            "step" => "B A C core C A B B A C C A B",
            _ => "B A C core C A B",
        };
        assert_eq!(log, words(expected), "{kind}");
    }
}

#[both_linkages]
#[covers("ORDER-01", "ORDER-02", "ORDER-03")]
async fn among_equals_the_first_registered_is_the_outermost() {
    let log = log_of(&[&[("turn", "first", None)], &[("turn", "second", None)]]).await;
    assert_eq!(log, words("first second core second first"));
}

#[both_linkages]
#[covers("ORDER-04")]
async fn swapping_the_extensions_swaps_the_layers() {
    let log = log_of(&[&[("turn", "second", None)], &[("turn", "first", None)]]).await;
    assert_eq!(log, words("second first core first second"));
}

#[both_linkages]
#[covers("ORDER-07", "API-09")]
async fn no_priority_is_zero() {
    let layers: &[_] =
        &[("turn", "one", Some(1)), ("turn", "none", None), ("turn", "minus", Some(-1)), ("turn", "zero", Some(0))];
    assert_eq!(log_of(&[layers]).await, words("minus none zero one core one zero none minus"));
}

#[both_linkages]
#[covers("ORDER-08")]
async fn each_kind_has_its_own_order() {
    let one: &[_] = &[("turn", "turn-1", Some(1)), ("toolCall", "call-1", Some(2))];
    let two: &[_] = &[("turn", "turn-2", Some(2)), ("toolCall", "call-2", Some(1))];
    let log = log_of(&[one, two]).await;
    assert_eq!(log, words("turn-1 turn-2 call-2 call-1 core call-1 call-2 turn-2 turn-1"));
}

#[both_linkages]
#[covers("ORDER-09", "API-08")]
async fn layers_of_one_extension_keep_the_order_of_their_registration() {
    let log = log_of(&[&[("step", "x", None), ("step", "y", None)]]).await;
    assert_eq!(log, words("x y core y x x y y x"));
}

#[both_linkages]
#[covers("PIPE-17", "PIPE-09")]
async fn the_same_input_gives_the_same_nested_order_every_time() {
    let one: &[_] = &[("toolCall", "call-1", None), ("step", "step-1", None), ("turn", "turn-1", None)];
    let two: &[_] = &[("turn", "turn-2", None), ("toolCall", "call-2", None), ("step", "step-2", None)];
    for _run in 0..20 {
        let log = log_of(&[one, two]).await;
        let step = "step-1 step-2 step-2 step-1";
        let call = "step-1 step-2 call-1 call-2 core call-2 call-1 step-2 step-1";
        assert_eq!(log, words(&format!("turn-1 turn-2 {call} {step} turn-2 turn-1")));
    }
}

/// Describes an agent with these extensions, in this order.
fn named(log: &Log, names: &[&str]) -> AgentBuilder {
    let agent = agent([ScriptItem::say("done")]);
    names.iter().fold(agent, |agent, name| agent.with_named(*name, name, log.config()))
}

#[both_linkages]
#[covers("ORDER-11")]
async fn names_beat_priorities_and_the_order_of_registration() {
    for names in [["midway", "nearer", "farther"], ["nearer", "farther", "midway"], ["farther", "midway", "nearer"]] {
        let log = Log::new();
        one_turn(named(&log, &names)).await.unwrap();
        assert_eq!(log.take(), ["farther", "midway", "nearer"], "{names:?}");
    }
}

#[both_linkages]
#[covers("ORDER-11")]
async fn only_an_extension_that_may_be_missing_may_be_missing() {
    let log = Log::new();
    one_turn(named(&log, &["nearer", "midway"])).await.unwrap();
    assert_eq!(log.take(), ["midway", "nearer"]);

    let error = one_turn(named(&log, &["farther"])).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EXT_ORDER);
    assert!(error.code().is_configuration());
    let report = error.report().to_string();
    assert!(report.contains("`before = \"midway\"`") && report.contains("farther"), "{report}");
    assert!(error.suggestion().unwrap().contains("\"midway?\""), "{report}");
}

#[both_linkages]
#[covers("ORDER-11", "LOAD-12")]
async fn extensions_that_depend_on_one_another_in_a_circle_are_refused_with_the_circle() {
    let log = Log::new();
    let error = one_turn(named(&log, &["midway", "third", "around", "within"])).await.unwrap_err();
    assert_eq!(*error.code(), ErrorCode::EXT_ORDER);
    let message = error.message();
    assert!(message.starts_with("the turn middlewares cannot be ordered: "), "{message}");
    let circle =
        ["around → within → third → around", "within → third → around → within", "third → around → within → third"];
    assert!(circle.iter().any(|circle| message.contains(circle)), "{message}");
    assert!(!message.contains("midway"), "it is no part of the circle: {message}");
    assert!(message.contains("`write` of `third` says `before = \"around\"`"), "{message}");
    assert_eq!(log.take(), [""; 0], "nothing ran");
}
