//! The observer in `docs/watching.md`.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use goondan::Agent;
use goondan::ErrorCode;
use goondan::agent::{Observer, Told, Wants};
use goondan::event::{EventScope, RuntimeEvent};
use goondan::model::{ScriptItem, ScriptedModel};

/// Counts how the turns of all conversations end.
#[derive(Clone, Default)]
pub struct Turns(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    answered: u64,
    /// By the code of the error.
    failed: BTreeMap<ErrorCode, u64>,
}

impl Observer for Turns {
    fn wants(&self) -> Wants {
        Wants::EVENTS
    }

    fn told(&self, _: &EventScope, what: &Told<'_>) {
        let Told::Event(event) = what else { return };
        let mut counts = self.0.lock().unwrap();
        match &***event {
            RuntimeEvent::TurnCompleted { .. } => counts.answered += 1,
            RuntimeEvent::TurnFailed { error_code: Some(code), .. } => {
                *counts.failed.entry(code.clone()).or_default() += 1;
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn turns_are_counted() {
    let turns = Turns::default();
    let model = ScriptedModel::new([ScriptItem::say("hi")]);
    let agent = Agent::builder("assistant").model(model).observer(turns.clone()).build().unwrap();
    let instance = agent.instance("user:42").await.unwrap();
    instance.run("hello").await.unwrap();
    let error = instance.run("again").await.unwrap_err();
    let counts = turns.0.lock().unwrap();
    assert_eq!((counts.answered, counts.failed.get(error.code())), (1, Some(&1)));
}
