//! Claims about the log of a test.

use serde_json::json;
use tracing::{info, info_span, trace, warn};

use super::Log;

fn texts(log: &Log) -> Vec<String> {
    log.lines().into_iter().map(|line| line.text).collect()
}

#[test]
fn a_line_has_the_values_of_the_spans_around_it() {
    let log = Log::keep();
    let turn = info_span!("turn", turn = 3, extension = "outer");
    let step = info_span!(parent: &turn, "step", step = 1, result = tracing::field::Empty);
    step.record("result", "fine");
    step.in_scope(|| info!(extension = "notes", big = u64::MAX, part = 0.5, ready = true, "inside {}", 1));
    info!("outside");
    trace!("too small");
    let lines = log.lines();
    assert_eq!(
        format!("{:?}", lines[0]),
        format!(r#"Info [notes] inside 1 turn=3 step=1 result="fine" big={} part=0.5 ready=true"#, u64::MAX)
    );
    assert_eq!(format!("{:?}", &lines[1..]), "[Info outside]");
}

#[test]
fn what_a_line_says_is_told_apart_from_what_is_around_it() {
    let log = Log::keep();
    info_span!("turn", turn = 3, agent = "assistant").in_scope(|| info!(turn = 4, "inside"));
    let line = &log.lines()[0];
    assert_eq!(json!(line.fields), json!({ "turn": 4 }));
    assert_eq!(json!(line.context), json!({ "turn": 3, "agent": "assistant" }));
    assert_eq!(format!("{line:?}"), r#"Info inside agent="assistant" turn=4"#);
}

#[test]
fn logs_of_a_thread_may_go_in_any_order() {
    let first = Log::keep();
    info!("one");
    let second = Log::keep();
    info!("two");
    drop(first);
    info!("three");
    assert_eq!(texts(&second), ["two", "three"]);
    drop(second);
    info!("unheard");
    assert_eq!(texts(&Log::keep()), [""; 0]);
}

#[test]
fn a_thread_that_does_not_listen_closes_no_place_for_those_that_do() {
    fn place() {
        warn!("heard");
    }
    let log = Log::keep();
    std::thread::spawn(place).join().unwrap();
    place();
    assert_eq!(texts(&log), ["heard"], "the other thread's line is not among them");
}

#[test]
fn a_value_may_log_while_it_is_rendered() {
    struct Talking;

    impl std::fmt::Debug for Talking {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            info!("rendering");
            f.write_str("Talking")
        }
    }

    let log = Log::keep();
    let span = info_span!("span", value = tracing::field::Empty);
    span.record("value", tracing::field::debug(Talking));
    span.in_scope(|| info!("done"));
    assert_eq!(format!("{:?}", log.lines()), r#"[Info rendering, Info done value="Talking"]"#);
}
