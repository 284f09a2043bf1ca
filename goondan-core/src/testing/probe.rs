//! Owns the ears of a chat: an extension that hears every event and every tool result, and changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};

use serde_json::{Value, json};

use super::lock;
use crate::BoxFuture;
use crate::error::{Error, Result};
use crate::event::{Event, EventPattern, ExtensionCleanup};
use crate::extension::{API_VERSION, Extension, ExtensionApi, ExtensionDescriptor};
use crate::name::ToolCallId;
use crate::pipeline::StepContext;
use crate::pipeline::{Middleware, Next, Options, Step, StepResult, ToolCallResult};

/// The extension. Its config is the number of the [`Listener`] that it hears for.
pub(super) struct Probe;

const NAME: &str = "goondan-testing";

impl Extension for Probe {
    const DESCRIPTOR: &'static ExtensionDescriptor = &ExtensionDescriptor {
        name: NAME,
        description: "Hears what happens, for tests.",
        package: env!("CARGO_PKG_NAME"),
        version: env!("CARGO_PKG_VERSION"),
        api_version: API_VERSION,
        middlewares: &[],
        tools: &[],
        subscriptions: &[],
        requires: &[],
        config_schema: &|| json!({ "type": "integer" }),
        register: &|api, config| Box::pin(async move { register(&api, &config) }),
    };
}

fn register(api: &ExtensionApi, config: &Value) -> Result<()> {
    let number = config.as_u64().unwrap_or_default();
    let heard = lock(&LISTENERS).heard.get(&number).and_then(Weak::upgrade);
    let heard = heard.ok_or_else(|| Error::msg("the chat that this extension hears for is gone"))?;
    // The outermost layer: what it sees is what the model gets.
    api.pipeline().register(Step, KeepResults(Arc::clone(&heard)), Options::priority(i32::MIN).named("probe"))?;
    let keep = move |event: Event| {
        heard.keep_event(event);
        std::future::ready(Ok(()))
    };
    api.events().on("*", keep)?.detach();
    Ok(())
}

/// Who listens. An extension is made from its config, so a listener goes by a number.
static LISTENERS: Mutex<Listeners> = Mutex::new(Listeners { last: 0, heard: BTreeMap::new() });

struct Listeners {
    last: u64,
    heard: BTreeMap<u64, Weak<Heard>>,
}

/// What one chat hears; the list forgets it when this is dropped.
pub(super) struct Listener {
    number: u64,
    heard: Arc<Heard>,
}

/// What was heard so far.
#[derive(Default)]
pub(super) struct Heard {
    events: Mutex<Vec<Event>>,
    results: Mutex<Vec<ToolCallResult>>,
}

impl Listener {
    pub(super) fn new() -> Self {
        let heard = Arc::default();
        let mut listeners = lock(&LISTENERS);
        listeners.last += 1;
        let number = listeners.last;
        listeners.heard.insert(number, Arc::downgrade(&heard));
        Self { number, heard }
    }

    pub(super) fn config(&self) -> Value {
        self.number.into()
    }

    pub(super) fn heard(&self) -> &Heard {
        &self.heard
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        lock(&LISTENERS).heard.remove(&self.number);
    }
}

impl Heard {
    fn keep_event(&self, event: Event) {
        let of_probe = |cleanup: ExtensionCleanup| cleanup.extension == *NAME;
        if event.name() != ExtensionCleanup::NAME || !event.payload().is_ok_and(of_probe) {
            lock(&self.events).push(event);
        }
    }

    pub(super) fn events(&self, pattern: &EventPattern) -> Vec<Event> {
        lock(&self.events).iter().filter(|event| pattern.matches(event.name())).cloned().collect()
    }

    pub(super) fn take_result(&self, call: &ToolCallId) -> Option<ToolCallResult> {
        let mut results = lock(&self.results);
        let place = results.iter().position(|result| result.call_id() == call)?;
        Some(results.swap_remove(place))
    }
}

/// Keeps copies of the results that a step gives the model.
struct KeepResults(Arc<Heard>);

impl Middleware<Step> for KeepResults {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        Box::pin(async move {
            let step = next.run(ctx).await?;
            lock(&self.0.results).extend(step.tool_results().iter().map(copy));
            Ok(step)
        })
    }
}

fn copy(result: &ToolCallResult) -> ToolCallResult {
    let outcome = match result.error() {
        Some(error) => Err(error.clone()),
        None => Ok(result.output().cloned().unwrap_or_default()),
    };
    ToolCallResult::new(result.call_id().clone(), result.tool_name().to_owned(), outcome)
}
