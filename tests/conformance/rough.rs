//! Failures of extensions: whatever fails at whatever place, both linkages report the same, and the conversation goes
//! on.

use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::task::Poll;

use conformance_extensions::rough::{Place, Way};
use goondan::agent::Agent;
use goondan::extension::LogLevel;
use goondan::middleware::TurnResult;
use goondan::model::ScriptItem;
use goondan::testing::{Chat, LogLine};
use goondan::{Error, ErrorCode, Instance, Result, json};
use goondan_covers::{both_linkages, covers};
use tokio::runtime::Builder;

use crate::linkage::{Extended, Linkage};
use crate::support::{Log, agent};

const ERRORS: [Way; 3] = [Way::Error, Way::ErrorPanicsInDrop, Way::ErrorPanicsInDisplay];
const PANICS: [Way; 4] = [Way::PanicsWithStr, Way::PanicsWithString, Way::PanicsWithNumber, Way::PanicsWithBomb];
const HANGS: [Way; 2] = [Way::Hangs, Way::HangsAndPanics];
const BY_HAND: [Way; 2] = [Way::PanicsAtOnce, Way::FuturePanics];
const OUTPUTS: [Way; 2] = [Way::OutputPanics, Way::OutputPanicsInDrop];

/// Where a failure is reported.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reported {
    /// The conversation does not open.
    Open,
    /// The reload is refused.
    Reload,
    /// The first turn fails.
    Turn,
    /// The model reads it as the result of its call. A deadline is that of the turn for a layer, and that of the call
    /// for a handler.
    Layer,
    Handler,
    /// The log names the extension, because no caller waits for a result.
    Log,
}

/// All places, where failures in them are reported, and the ways that they can fail in.
fn places() -> Vec<(Place, Reported, Vec<Way>)> {
    use Place::*;

    let returning = [&ERRORS[..], &PANICS, &[Way::LocalPanics]].concat();
    let waiting = [&returning[..], &HANGS].concat();
    let cancelled = [&waiting[..], &[Way::CancelledAndPanics]].concat();
    let by_hand = [&cancelled[..], &BY_HAND].concat();
    let with = |ways: &[Way], more: &[Way]| [ways, more].concat();
    let mut places = vec![
        (Init, Reported::Open, returning.clone()),
        (InitAtReload, Reported::Reload, returning.clone()),
        (State, Reported::Turn, returning.clone()),
        (Tool, Reported::Handler, with(&cancelled, &OUTPUTS)),
        (RawTool, Reported::Handler, by_hand.clone()),
        (BlockingTool, Reported::Handler, with(&returning, &OUTPUTS)),
        (LateEvent, Reported::Log, with(&waiting, &BY_HAND)),
        (RegisteredBeforeFailure, Reported::Open, PANICS.to_vec()),
    ];
    places.push((AroundTurn, Reported::Turn, PANICS.to_vec()));
    let layers = [TurnBefore, TurnAfter, StepBefore, StepAfter];
    places.extend(layers.map(|place| (place, Reported::Turn, cancelled.clone())));
    places.extend([CallBefore, CallAfter].map(|place| (place, Reported::Layer, cancelled.clone())));
    places.extend([RawTurn, RawStep].map(|place| (place, Reported::Turn, by_hand.clone())));
    places.push((RawCall, Reported::Layer, by_hand));
    places.extend([Event, Cleanup, CleanupAtReload].map(|place| (place, Reported::Log, waiting.clone())));
    let drops = [Object, ObjectAtReload, Layer, ToolObject, Handler, Cancelled];
    places.extend(drops.map(|place| (place, Reported::Log, PANICS.to_vec())));
    places
}

/// What the program and the model see of a conversation whose extension fails in its first turn.
#[derive(Debug, Default, PartialEq)]
struct Story {
    opened: String,
    /// The outcome of a reload after the first turn, at the places that have one.
    reloaded: String,
    turns: Vec<String>,
    messages: Vec<String>,
    closed: String,
    /// A panic that reached the program.
    escaped: Option<String>,
    /// Whether a line of the log has the name of the extension and reports a failure.
    is_logged: bool,
}

fn outcome<T>(outcome: Result<T>, show: impl FnOnce(T) -> String) -> String {
    outcome.map_or_else(|error| report(&error), |value| format!("ok: {}", show(value)))
}

fn report(error: &Error) -> String {
    format!("{} of {:?}: {}", error.code(), error.extension().map(ToString::to_string), error.report())
}

/// An agent whose extension fails at `place`.
fn failing(place: Option<Place>, way: Way, log: &Log) -> Agent {
    let tool = match place {
        Some(Place::RawTool) => "rough__raw",
        Some(Place::BlockingTool) => "rough__answer_slowly",
        _ => "rough__answer",
    };
    let script =
        [ScriptItem::call(tool, json!({})).when("^hello$").unwrap().repeat(), ScriptItem::say("done").repeat()];
    let config = json!({ "place": place, "way": way, "log": log });
    agent(script).with_named("rough", "rough", config).build().unwrap()
}

async fn conversation(place: Place, way: Way, story: &mut Story) {
    let log = Log::new();
    let at_reload = [Place::InitAtReload, Place::CleanupAtReload, Place::ObjectAtReload].contains(&place);
    let first = Some(place).filter(|place| *place != Place::InitAtReload);
    let agent = failing(first, way, &log);
    let opened = agent.instance("one").await;
    let instance = match &opened {
        Ok(instance) => instance,
        Err(error) => return story.opened = report(error),
    };
    for _ in 0..2 {
        match first_or_cancelled(instance, way, &log).await {
            Some(turn) => story.turns.push(outcome(turn, |turn| turn.text().into_owned())),
            None => story.turns.push("cancelled".to_owned()),
        }
        if at_reload && story.reloaded.is_empty() {
            let second = Some(place).filter(|place| *place == Place::InitAtReload);
            let reloaded = agent.reload(&failing(second, way, &log)).await;
            story.reloaded = outcome(reloaded, |reloaded| format!("{reloaded:?}"));
        }
    }
    let messages = instance.messages().await.unwrap();
    story.messages = messages.iter().map(|message| format!("{:?}: {}", message.role(), message.text())).collect();
    story.closed = outcome(instance.close().await, |()| String::new());
}

/// Runs a turn. Once the extension hangs, it is cancelled if that is the way to fail.
async fn first_or_cancelled(instance: &Instance, way: Way, log: &Log) -> Option<Result<TurnResult>> {
    if way != Way::CancelledAndPanics {
        return Some(instance.run("hello").await);
    }
    let mut turn = pin!(instance.run("hello"));
    loop {
        let polled = poll_fn(|cx| Poll::Ready(turn.as_mut().poll(cx))).await;
        match polled {
            Poll::Ready(turn) => return Some(turn),
            Poll::Pending if !log.take().is_empty() => return None,
            Poll::Pending => tokio::task::yield_now().await,
        }
    }
}

/// Whether a line reports a failure of `extension`.
fn blames(line: &LogLine, extension: &str) -> bool {
    let owner = line.fields.get("owner").and_then(|owner| owner.as_str());
    line.level == LogLevel::Error && [line.extension.as_deref(), owner].contains(&Some(extension))
}

fn story(linkage: Linkage, place: Place, way: Way) -> Story {
    let mut story = Story::default();
    // A paused clock would not wait for a thread.
    let paused = place != Place::BlockingTool;
    let runtime = Builder::new_current_thread().enable_time().start_paused(paused).build().unwrap();
    let listener = runtime.block_on(Chat::builder().start()).unwrap();
    let told = catch_unwind(AssertUnwindSafe(|| {
        runtime.block_on(linkage.run(conversation(place, way, &mut story)));
        // Drops the handlers that still hang.
        drop(runtime);
    }));
    story.escaped = told.err().map(|panic| {
        let text = panic.downcast_ref::<String>().cloned().or(panic.downcast_ref::<&str>().map(ToString::to_string));
        // Its drop may panic.
        std::mem::forget(panic);
        text.unwrap_or_default()
    });
    story.is_logged = listener.logs().iter().any(|line| blames(line, "rough"));
    story
}

/// Returns what is wrong about a story, if anything.
fn fault(place: Place, reported: Reported, way: Way, story: &Story) -> Option<String> {
    let code = match way {
        Way::Error => "E_ROUGH",
        Way::ErrorPanicsInDrop | Way::ErrorPanicsInDisplay => "E_EXT_RUNTIME",
        Way::Hangs | Way::HangsAndPanics if reported == Reported::Handler => "E_TOOL_TIMEOUT",
        Way::Hangs | Way::HangsAndPanics => "E_TURN_TIMEOUT",
        _ => "E_EXT_PANIC",
    };
    let of_rough = format!("{code} of Some(\"rough\")");
    let mut faults = Vec::new();
    let mut expect = |holds: bool, what: &str| {
        if !holds {
            faults.push(what.to_owned());
        }
    };
    expect(story.escaped.is_none(), "no panic reaches the program");
    if reported == Reported::Open {
        expect(story.opened.starts_with("E_EXT_INIT of Some(\"rough\")"), "opening names the extension");
        return (!faults.is_empty()).then(|| faults.join(", "));
    }
    let [first, second] = &story.turns[..] else { return Some("there are two turns".to_owned()) };
    let first_ok = match reported {
        _ if way == Way::CancelledAndPanics => first == "cancelled",
        Reported::Turn | Reported::Layer if code == "E_TURN_TIMEOUT" => first.starts_with(code),
        Reported::Turn => first.starts_with(&of_rough),
        Reported::Open | Reported::Reload | Reported::Layer | Reported::Handler | Reported::Log => first == "ok: done",
    };
    expect(first_ok, "the first turn ends as it should");
    expect(second == "ok: done", "the conversation goes on");
    let model_reads = |text: &str| story.messages.iter().any(|message| message.contains(text));
    if [Reported::Layer, Reported::Handler].contains(&reported) && first == "ok: done" {
        expect(model_reads(&format!("error {code}")), "the model reads the code");
    }
    expect(story.closed == "ok: ", "the conversation closes");
    if reported == Reported::Reload {
        expect(story.reloaded.starts_with("E_EXT_INIT of Some(\"rough\")"), "the reload is refused");
    } else if [Place::CleanupAtReload, Place::ObjectAtReload].contains(&place) {
        expect(story.reloaded.contains("refused: []"), "the reload is accepted");
    }
    let dropped = [Way::HangsAndPanics, Way::CancelledAndPanics].contains(&way);
    if dropped || reported == Reported::Log && way != Way::Hangs {
        expect(story.is_logged, "the log names the extension");
    }
    (!faults.is_empty()).then(|| faults.join(", "))
}

#[test]
#[covers("LINK-04", "D-10")]
fn every_failure_at_every_place_is_reported_the_same_in_both_linkages() {
    let (mut pairs, mut wrong) = (0, Vec::new());
    for (place, reported, ways) in places() {
        for way in ways {
            pairs += 1;
            let [linked, loaded] = Linkage::BOTH.map(|linkage| story(linkage, place, way));
            for (linkage, story) in [("linked", &linked), ("loaded", &loaded)] {
                if let Some(fault) = fault(place, reported, way, story) {
                    wrong.push(format!("{place:?}, {way:?}, {linkage}: {fault}: {story:#?}"));
                }
            }
            if linked != loaded {
                wrong.push(format!("{place:?}, {way:?}: linked {linked:#?}\nloaded {loaded:#?}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} faults in {pairs} pairs:\n{}", wrong.len(), wrong.join("\n"));
}

#[both_linkages(start_paused = true)]
async fn a_deadline_drops_several_layers_that_panic() {
    let (log, listener) = (Log::new(), Chat::builder().start().await.unwrap());
    let config = |place, way| json!({ "place": place, "way": way, "log": log });
    let agent = agent([ScriptItem::say("done").repeat()])
        .with_named("outer", "rough", config(Place::AroundTurn, Way::PanicsWithStr))
        .with_named("middle", "rough", config(Place::AroundTurn, Way::PanicsWithBomb))
        .with_named("inner", "rough", config(Place::StepBefore, Way::HangsAndPanics))
        .build()
        .unwrap();
    let instance = agent.instance("one").await.unwrap();
    assert_eq!(instance.run("hello").await.unwrap_err().code(), &ErrorCode::TURN_TIMEOUT);
    for extension in ["outer", "middle", "inner"] {
        assert!(listener.logs().iter().any(|line| blames(line, extension)), "{extension}");
    }
    assert_eq!(instance.run("hello").await.unwrap().text(), "done");
    instance.close().await.unwrap();
}
