//! Tests of the captured log.

use serde_json::json;
use tracing::{info, info_span, trace, warn};

use super::LogCapture;

fn texts(log: &LogCapture) -> Vec<String> {
    log.lines().into_iter().map(|line| line.text).collect()
}

#[test]
fn a_line_has_the_values_of_the_spans_around_it() {
    let log = LogCapture::start();
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
fn the_fields_of_a_line_are_separate_from_its_context() {
    let log = LogCapture::start();
    info_span!("turn", turn = 3, agent = "assistant").in_scope(|| info!(turn = 4, "inside"));
    let line = &log.lines()[0];
    assert_eq!(json!(line.fields), json!({ "turn": 4 }));
    assert_eq!(json!(line.context), json!({ "turn": 3, "agent": "assistant" }));
    assert_eq!(format!("{line:?}"), r#"Info inside agent="assistant" turn=4"#);
}

#[test]
fn captures_of_a_thread_may_be_dropped_in_any_order() {
    let first = LogCapture::start();
    info!("one");
    let second = LogCapture::start();
    info!("two");
    drop(first);
    info!("three");
    assert_eq!(texts(&second), ["two", "three"]);
    drop(second);
    info!("not captured");
    assert_eq!(texts(&LogCapture::start()), [""; 0]);
}

#[test]
fn a_thread_without_a_capture_disables_no_callsite() {
    fn callsite() {
        warn!("heard");
    }
    let log = LogCapture::start();
    std::thread::spawn(callsite).join().unwrap();
    callsite();
    assert_eq!(texts(&log), ["heard"], "the other thread's line is not among them");
}

#[test]
fn a_value_may_log_while_it_is_formatted() {
    struct Talking;

    impl std::fmt::Debug for Talking {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            info!("rendering");
            f.write_str("Talking")
        }
    }

    let log = LogCapture::start();
    let span = info_span!("span", value = tracing::field::Empty);
    span.record("value", tracing::field::debug(Talking));
    span.in_scope(|| info!("done"));
    assert_eq!(format!("{:?}", log.lines()), r#"[Info rendering, Info done value="Talking"]"#);
}
