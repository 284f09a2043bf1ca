//! What a person reads of tool calls: the same in events, in the stream and in what is stored.

use std::sync::{Arc, Mutex};

use conformance_extensions::presented::{Misnamed, Presented};
use goondan::agent::{Observer, Told, TurnUpdate, Wants};
use goondan::conversation::Role;
use goondan::event::{EventScope, RuntimeEvent};
use goondan::middleware::ToolCallStatus;
use goondan::model::ScriptItem;
use goondan::tool::Presentation;
use goondan::{ErrorCode, Value, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::agent;

/// What is told of one call.
#[derive(Debug, PartialEq)]
struct Call {
    before: String,
    after: String,
    failed: bool,
    /// With whether the presenter made it.
    output: (String, bool),
    /// In the metadata of the message of the result.
    stored: Option<Presentation>,
    status: ToolCallStatus,
}

/// An observer that keeps the outputs of calls.
#[derive(Clone, Default)]
struct Outputs(Arc<Mutex<Vec<(String, bool)>>>);

impl Observer for Outputs {
    fn wants(&self) -> Wants {
        Wants::PIECES
    }

    fn told(&self, _: &EventScope, what: &Told<'_>) {
        if let Told::Output { text, by_presenter, .. } = what {
            self.0.lock().unwrap().push(((*text).to_owned(), *by_presenter));
        }
    }
}

/// Calls tools one after another, and returns what is told of each.
async fn told(calls: &[(&str, Value)]) -> Vec<Call> {
    let script = calls.iter().map(|(tool, args)| ScriptItem::call(format!("presented__{tool}"), args.clone()));
    let outputs = Outputs::default();
    let agent = agent(script.chain([ScriptItem::say("done")])).with::<Presented>(json!({}));
    let agent = agent.observer(outputs.clone()).build().unwrap();
    let instance = agent.instance("test").await.unwrap();
    let mut turn = instance.run_stream("go");
    let (mut told, mut before, mut output) = (Vec::new(), String::new(), None);
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Output { text, by_presenter, .. } => output = Some((text, by_presenter)),
            TurnUpdate::Event(event) => match &*event {
                RuntimeEvent::ToolCalled { presentation, .. } => {
                    assert_eq!(presentation.outcome, None);
                    before = presentation.to_string();
                }
                RuntimeEvent::ToolCompleted { presentation, status, .. } => {
                    assert_eq!(presentation.output, None);
                    let failed = presentation.outcome.as_ref().unwrap().failed;
                    let (after, output) = (presentation.to_string(), output.take().unwrap());
                    told.push(Call { before: before.clone(), after, failed, output, stored: None, status: *status });
                }
                _ => {}
            },
            _ => {}
        }
    }
    turn.finish().await.unwrap();
    assert!(told.iter().map(|told| &told.output).eq(outputs.0.lock().unwrap().iter()));
    let messages = instance.messages().await.unwrap();
    let results = messages.iter().filter(|message| message.role() == Role::Tool);
    for (told, result) in told.iter_mut().zip(results) {
        let stored = result.metadata().get("presentation");
        told.stored = stored.map(|stored| serde_json::from_value(stored.clone()).unwrap());
    }
    told
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_line_shows_arguments_within_a_text() {
    let told = told(&[
        ("line", json!({ "from": "a", "to": "b" })),
        ("line", json!({ "from": "a" })),
        ("line", json!({ "from": "a", "fails": true })),
    ])
    .await;
    let [both, one, fails] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&*both.before, &*both.after, both.failed), ("a → b", "a → b", false));
    assert_eq!(both.output, ("moved".to_owned(), false));
    assert_eq!(both.stored.as_ref().unwrap().line, "a → b");
    assert_eq!((&*one.before, &*one.after), ("a →", "a →"));
    assert_eq!((&*fails.before, &*fails.after, fails.failed), ("a →", "a → · there is no room", true));
    assert_eq!(fails.stored.as_ref().unwrap().to_string(), fails.after);
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_function_says_what_came_of_a_call_and_what_it_returned() {
    let told = told(&[
        ("function", json!({ "from": "abc" })),
        ("function", json!({ "from": "" })),
        ("function", json!({ "from": "a", "fails": true })),
    ])
    .await;
    let [moved, nothing, fails] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&*moved.before, &*moved.after, moved.failed), ("abc", "abc · 3 files", false));
    assert_eq!(moved.output, ("a\nb".to_owned(), true));
    let stored = moved.stored.as_ref().unwrap();
    assert_eq!((stored.to_string(), &stored.output), (moved.after.clone(), &None));
    // What the model reads is no error.
    assert_eq!((&*nothing.after, nothing.failed, nothing.status), ("nothing moved", true, ToolCallStatus::Ok));
    assert_eq!((&*fails.after, fails.failed), ("a · there is no room", true));
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_tool_that_says_nothing_is_shown_with_its_arguments() {
    let told = told(&[("nothing", json!({ "from": "a" })), ("nothing", json!({ "from": "a", "fails": true }))]).await;
    let [moved, fails] = told.as_slice() else { panic!("{told:?}") };
    assert_eq!((&*moved.before, &*moved.after, moved.failed, &moved.stored), ("a", "a", false, &None));
    assert_eq!(fails.after, "from: a, fails: true · there is no room");
    assert!(fails.output.0.contains("there is no room\nat all") && !fails.output.1, "{fails:?}");
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn what_is_shown_is_short_and_harmless() {
    let told = told(&[("own", json!({ "from": "a" }))]).await;
    let shown = &told[0].before;
    assert!(shown.starts_with("\u{fffd}[2Ja xxx") && shown.ends_with("x…"), "{shown}");
    assert_eq!((shown.chars().count(), &told[0].after), (200, shown));
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_presenter_that_panics_or_takes_long_is_one_that_says_nothing() {
    for tool in ["panics", "slow"] {
        let told = told(&[(tool, json!({ "from": "a" })), (tool, json!({ "from": "b" }))]).await;
        let shown: Vec<_> =
            told.iter().map(|told| (&*told.before, &*told.after, &*told.output.0, &told.stored)).collect();
        assert_eq!(shown, [("a", "a", "moved", &None), ("b", "b", "moved", &None)], "{tool}");
    }
}

#[both_linkages]
#[covers("PRESENT-01")]
async fn a_line_names_only_arguments_that_there_are() {
    let agent = agent([ScriptItem::say("hi")]).with::<Misnamed>(json!({})).build().unwrap();
    let error = agent.instance("test").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_INIT);
    let report = error.report().to_string();
    assert!(report.contains("shows `{source}`, which is none of its arguments"), "{report}");
    assert_eq!(error.suggestion(), Some("write one of `{from}`, `{to}`, `{fails}`"));
}
