//! Test extension that records every event and tool result, and changes nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use goondan_core::host::ToolCallResultExt;
use goondan_core::{
    BoxFuture, Error, Event, EventPattern, Extension, ExtensionApi, ExtensionCleanup, ExtensionDescriptor, Middleware,
    MiddlewareOptions, Next, Result, Step, StepContext, StepResult, ToolCallId, ToolCallResult,
};
use goondan_lock::Lock;
use serde_json::{Value, json};

/// The extension. Its config holds the number of the [`ProbeHandle`] that it records for.
pub(super) struct Probe;

const NAME: &str = "goondan-testing";

impl Extension for Probe {
    const DESCRIPTOR: &'static ExtensionDescriptor =
        &ExtensionDescriptor::new(NAME, &|| json!({ "type": "object" }), &|api, config| {
            Box::pin(async move { register(&api, &config) })
        })
        .description("Records what happens, for tests.")
        .package(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
}

fn register(api: &ExtensionApi, config: &Value) -> Result<()> {
    let number = config["number"].as_u64().unwrap_or_default();
    let records = PROBES.lock().records.get(&number).and_then(Weak::upgrade);
    let records = records.ok_or_else(|| Error::msg("the chat that this extension records for was dropped"))?;
    // The outermost layer, so that it sees the results that the model is sent.
    api.pipeline().register(
        Step,
        RecordResults(Arc::clone(&records)),
        MiddlewareOptions::priority(i32::MIN).named("probe"),
    )?;
    let record = move |event: Event| {
        records.record_event(event);
        std::future::ready(Ok(()))
    };
    api.events().on("*", record)?.detach();
    Ok(())
}

/// The records of all chats, by number: an extension gets nothing but its config, so the config has the number.
static PROBES: Lock<Probes> = Lock::new(Probes { last: 0, records: BTreeMap::new() });

struct Probes {
    last: u64,
    records: BTreeMap<u64, Weak<ProbeRecords>>,
}

/// Owns the records of one chat. Dropping it removes them from the list.
pub(super) struct ProbeHandle {
    number: u64,
    records: Arc<ProbeRecords>,
}

/// The records so far.
#[derive(Default)]
pub(super) struct ProbeRecords {
    events: Lock<Vec<Event>>,
    results: Lock<Vec<ToolCallResult>>,
}

impl ProbeHandle {
    pub(super) fn new() -> Self {
        let records = Arc::default();
        let mut probes = PROBES.lock();
        probes.last += 1;
        let number = probes.last;
        probes.records.insert(number, Arc::downgrade(&records));
        Self { number, records }
    }

    pub(super) fn config(&self) -> Value {
        json!({ "number": self.number })
    }

    pub(super) fn records(&self) -> &ProbeRecords {
        &self.records
    }
}

impl Drop for ProbeHandle {
    fn drop(&mut self) {
        PROBES.lock().records.remove(&self.number);
    }
}

impl ProbeRecords {
    fn record_event(&self, event: Event) {
        let of_probe = |cleanup: ExtensionCleanup| cleanup.extension == *NAME;
        if event.name() != ExtensionCleanup::NAME || !event.payload().is_ok_and(of_probe) {
            self.events.lock().push(event);
        }
    }

    pub(super) fn events(&self, pattern: &EventPattern) -> Vec<Event> {
        self.events.lock().iter().filter(|event| pattern.matches(event.name())).cloned().collect()
    }

    pub(super) fn take_result(&self, call: &ToolCallId) -> Option<ToolCallResult> {
        let mut results = self.results.lock();
        let index = results.iter().position(|result| result.call_id() == call)?;
        Some(results.swap_remove(index))
    }
}

/// Records copies of the tool results of each step.
struct RecordResults(Arc<ProbeRecords>);

impl Middleware<Step> for RecordResults {
    fn handle<'a>(&'a self, ctx: &'a mut StepContext<'_>, next: Next<'a, Step>) -> BoxFuture<'a, Result<StepResult>> {
        Box::pin(async move {
            let step = next.run(ctx).await?;
            self.0.results.lock().extend(step.tool_results().iter().map(ToolCallResult::copy));
            Ok(step)
        })
    }
}
