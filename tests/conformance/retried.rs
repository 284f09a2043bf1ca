//! A model that asks its provider again tells watchers and extensions so, in the same step.

use std::sync::Arc;
use std::time::Duration;

use conformance_extensions::events::Watching;
use conformance_extensions::hold::Guarding;
use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::{Agent, BoxFuture, Result, json};
use goondan_covers::{both_linkages, covers};

use crate::linkage::Extended;
use crate::support::Log;

const WAIT: Duration = Duration::from_secs(2);

/// A model that is cut off, asks again, and whose provider then begins the answer anew.
struct Asking;

impl Model for Asking {
    fn generate<'a>(&'a self, _: ModelRequest<'a>, deltas: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        deltas.send(ModelDelta::Text { part: 0, text: "half" });
        deltas.send(ModelDelta::Restart { reason: "status 529: Overloaded", wait: Some(WAIT) });
        deltas.send(ModelDelta::Text { part: 0, text: "more" });
        deltas.send(ModelDelta::Restart { reason: "another model answers", wait: None });
        deltas.send(ModelDelta::Text { part: 0, text: "whole" });
        Box::pin(async { Ok(ModelResponse::text("whole")) })
    }
}

#[both_linkages]
#[covers("MODEL-02")]
async fn a_request_that_is_repeated_is_a_runtime_event_and_no_step() {
    for held in [false, true] {
        let (log, other) = (Log::new(), Log::new());
        let agent = Agent::builder("assistant").model(Asking).with::<Watching>(log.config());
        let hold = if held { json!("before") } else { json!(null) };
        let agent = agent.with::<Guarding>(json!({ "log": other, "hold": hold })).build().unwrap();
        let instance = agent.instance("test").await.unwrap();
        let mut turn = instance.run_stream("hello");
        let (mut pieces, mut retried) = (Vec::new(), Vec::new());
        while let Some(update) = turn.next().await {
            match update {
                TurnUpdate::Text { text, .. } => pieces.push(text),
                TurnUpdate::Restart { step: 0, reason, wait } => pieces.push(format!("{reason}, {wait:?}")),
                TurnUpdate::Event(event) if event.name() == "model.retried" => {
                    retried.push(Arc::unwrap_or_clone(event))
                }
                TurnUpdate::Event(_) | TurnUpdate::Message(_) => {}
                other => panic!("{other:?}"),
            }
        }
        let turn = turn.finish().await.unwrap();
        assert_eq!((&*turn.text(), turn.steps()), ("whole", 1));
        let all = ["half", "status 529: Overloaded, Some(2s)", "more", "another model answers, None", "whole"];
        assert_eq!(pieces, if held { &all[4..] } else { &all }, "held: {held}");

        let events: Vec<RuntimeEvent> = log.take().iter().map(|event| serde_json::from_str(event).unwrap()).collect();
        let names: Vec<_> = events.iter().map(RuntimeEvent::name).collect();
        assert_eq!(names, ["turn.started", "step.started", "model.retried", "step.completed", "turn.completed"]);
        assert_eq!(events[2..3], retried);
        let RuntimeEvent::ModelRetried { scope, step, reason, wait, .. } = &events[2] else { panic!("{events:?}") };
        assert_eq!((&**reason, *wait, step.step_index), ("status 529: Overloaded", WAIT, 0));
        assert_eq!(scope.span, events[1].scope().span);
        let messages = instance.messages().await.unwrap();
        assert_eq!(messages.iter().map(|message| message.text()).collect::<Vec<_>>(), ["hello", "whole"]);
    }
}
