//! The record in the binary, found in the file of this test program.
#![cfg(all(unix, not(target_vendor = "apple")))]

use goondan::prelude::*;
use serde_json::{Value, json};

struct Recorded;

/// Says "hi", \ and	tabs — in über Größe 🦀.
#[doc = "\u{1} { \"not\": json }"]
#[goondan::extension(name = "recorded", requires = ["a \"b\"", "c"])]
impl Recorded {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(toolCall, priority = -5, before = "skills?", after = ["logging", "a-b"])]
    async fn r#match(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        next.run(ctx).await
    }

    /// Finds "things".
    #[tool(effect = read, timeout = "5s")]
    async fn r#loop(&self) -> Result<()> {
        Ok(())
    }

    #[tool(name = "other__tool-2", blocking)]
    fn other(&self) -> Result<()> {
        Ok(())
    }

    #[on("turn.*")]
    async fn on(&self) -> Result<()> {
        Ok(())
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        next.run(ctx).await
    }
}

/// The record of the extension `name`: JSON after its length in four bytes.
fn record(name: &str) -> Value {
    let file = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    // The file also contains this constant, but no length before it and no JSON after it.
    let start = br#"{"apiVersion":"goondan.ai/v1","package":"#;
    let mut records =
        file.windows(start.len()).enumerate().filter(|(_, window)| window == start).filter_map(|(at, _)| {
            let length = u32::from_le_bytes(file[at - 4..at].try_into().unwrap());
            let json = file.get(at..at + usize::try_from(length).unwrap())?;
            serde_json::from_slice::<Value>(json).ok()
        });
    records.find(|record| record["name"] == name).expect("no record")
}

#[test]
fn record_equals_the_descriptor() {
    let descriptor = <Recorded as goondan::extension::Extension>::DESCRIPTOR;
    assert_eq!(descriptor.description, "Says \"hi\", \\ and\ttabs — in über Größe 🦀.\n\u{1} { \"not\": json }");
    let [guard, turn] = descriptor.middlewares else { panic!("two middlewares") };
    assert_eq!((guard.before, guard.after), (&["skills?"][..], &["logging", "a-b"][..]));
    assert_eq!((turn.before, turn.after), (&[][..], &[][..]));
    let middlewares = descriptor.middlewares.iter().map(|middleware| {
        let (kind, function, priority) = (middleware.kind, middleware.function, middleware.priority);
        let (before, after) = (middleware.before, middleware.after);
        json!({ "kind": kind, "function": function, "priority": priority, "before": before, "after": after })
    });
    let tools = descriptor.tools.iter().map(|tool| {
        let timeout = tool.timeout.map(|time| u64::try_from(time.as_millis()).unwrap());
        json!({ "name": tool.name, "description": tool.description, "effect": tool.effect, "timeoutMs": timeout })
    });
    assert_eq!(
        record("recorded"),
        json!({
            "apiVersion": goondan::extension::API_VERSION,
            "package": descriptor.package,
            "version": descriptor.version,
            "name": descriptor.name,
            "description": descriptor.description,
            "middlewares": middlewares.collect::<Vec<_>>(),
            "tools": tools.collect::<Vec<_>>(),
            "subscriptions": descriptor.subscriptions,
            "requires": descriptor.requires,
        })
    );
}

#[goondan::extension(name = "recorded-module")]
mod module {
    #[tool(effect = idempotent)]
    async fn touch() -> goondan::Result<()> {
        Ok(())
    }
}

#[test]
fn module_has_a_record() {
    let tools =
        json!([{ "name": "recorded-module__touch", "description": "", "effect": "idempotent", "timeoutMs": null }]);
    assert_eq!(record("recorded-module")["tools"], tools);
    assert_eq!(<module::Extension as goondan::extension::Extension>::DESCRIPTOR.tools.len(), 1);
}

#[test]
fn record_lists_functions_whose_cfg_holds() {
    let record = record("conditional");
    assert_eq!(
        record["middlewares"],
        json!([{ "kind": "step", "function": "step", "priority": 0, "before": [], "after": [] }])
    );
    let tool = &record["tools"][0];
    assert_eq!((&tool["description"], &tool["effect"]), (&json!("For us."), &json!("read")));
    assert_eq!(record["tools"].as_array().unwrap().len(), 1);
    assert_eq!(record["subscriptions"], json!(["c.d"]));
}
