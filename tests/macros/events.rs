//! Registrations of subscriptions and cleanups, and calls of their handlers.

use goondan::extension::{Extension, ExtensionHost};
use goondan::prelude::*;
use serde_json::json;

use crate::support::register;

#[derive(Deserialize, JsonSchema)]
struct Counts {
    step: u64,
}

#[goondan::extension(name = "counts", requires = ["workspace", "events"])]
impl Counts {
    #[init]
    fn new(config: Self) -> Self {
        config
    }

    #[cleanup]
    async fn close(&self, api: &ExtensionApi) -> Result<(), std::num::ParseIntError> {
        api.events().emit("counts.closed", (self.step,));
        "no number".parse::<u8>().map(|_| ())
    }

    #[on("turn.*")]
    async fn count(&self, api: &ExtensionApi, event: &Event) -> Result<()> {
        let by = self.step * event.payload::<u64>()?;
        api.state().update(|count: &mut u64| *count += by)
    }

    #[on("*")]
    async fn refuse(&self) -> Result<(), std::fmt::Error> {
        Err(std::fmt::Error)
    }

    #[middleware(turn)]
    async fn pass(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }
}

#[test]
fn everything_is_registered_in_source_order() {
    let counts = register::<Counts>(json!({ "step": 1 })).unwrap();
    assert_eq!(counts.names(), ["cleanup", "on turn.*", "on *", "middleware pass"]);
}

#[test]
fn descriptor_lists_subscriptions_and_requirements() {
    assert_eq!(Counts::DESCRIPTOR.subscriptions, ["turn.*", "*"]);
    assert_eq!(Counts::DESCRIPTOR.requires, ["workspace", "events"]);
}

#[test]
fn handlers_are_called_for_matching_events() {
    let counts = register::<Counts>(json!({ "step": 10 })).unwrap();
    let outcomes = counts.deliver(&Event::new("turn.completed", (3,)).unwrap());
    let errors: Vec<_> = outcomes.into_iter().map(|outcome| outcome.err().map(|error| error.to_string())).collect();
    assert_eq!(errors, [None, Some(std::fmt::Error.to_string())]);
    assert_eq!(counts.state(), Some(json!(30)));
    assert_eq!(counts.deliver(&Event::new("step.completed", ()).unwrap()).len(), 1);
}

#[test]
fn cleanup_runs_with_the_extension() {
    let counts = register::<Counts>(json!({ "step": 10 })).unwrap();
    let outcomes = counts.clean_up();
    assert_eq!(outcomes.len(), 1);
    assert!(outcomes[0].is_err());
    assert_eq!(counts.emitted(), ["counts.closed"]);
}

struct Quiet;

#[goondan::extension(name = "quiet")]
impl Quiet {
    #[init]
    fn new() -> Self {
        Self
    }

    #[cleanup]
    async fn close(&self) {}
}

#[test]
fn cleanup_may_take_and_return_nothing() {
    assert!(register::<Quiet>(json!({})).unwrap().clean_up()[0].is_ok());
    assert!(Quiet::DESCRIPTOR.subscriptions.is_empty() && Quiet::DESCRIPTOR.requires.is_empty());
}
