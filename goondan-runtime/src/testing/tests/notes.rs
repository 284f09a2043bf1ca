//! An extension that takes notes: tools, state, events and log lines, written by hand.

use goondan_core::{
    BoxFuture, Error, Event, Extension, ExtensionApi, ExtensionDescriptor, Result, ToolContext, ToolHandler, ToolItem,
    ToolReply,
};
use serde_json::{Value, json};

pub(super) struct Notes;

impl Extension for Notes {
    const DESCRIPTOR: &'static ExtensionDescriptor = &ExtensionDescriptor::new(
        "notes",
        &|| json!({ "type": "object", "properties": { "limit": { "type": "integer" } } }),
        &|api, _| Box::pin(async move { register(&api) }),
    );
}

fn register(api: &ExtensionApi) -> Result<()> {
    let text = json!({ "type": "object", "properties": { "text": { "type": "string" } }, "required": ["text"] });
    api.tools().register(ToolItem::new("notes__add")?.parameters(text), Add(api.clone()))?;
    api.tools().register(ToolItem::new("notes__wait")?, Wait)?;
    let own = api.clone();
    let dropped = move |event: Event| {
        own.logger().with("note", &event.args()[0]).warn("a note was dropped");
        std::future::ready(Ok(()))
    };
    api.events().on("note.dropped", dropped)?.detach();
    api.events().emit("note.ready", ());
    Ok(())
}

/// Adds a note.
struct Add(ExtensionApi);

impl ToolHandler for Add {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, input: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(async move {
            let text = input["text"].as_str().unwrap_or_default();
            if text.is_empty() {
                return Err(Error::new("E_NOTE_EMPTY", "a note has a text"));
            }
            self.0.state().update(|count: &mut u32| *count += 1)?;
            let count: u32 = self.0.state().get()?.unwrap_or_default();
            self.0.events().emit("note.added", (text, count));
            self.0.logger().with("count", count).info("added a note");
            Ok(json!({ "count": count }).into())
        })
    }
}

/// Never answers.
struct Wait;

impl ToolHandler for Wait {
    fn call<'a>(&'a self, _: &'a ToolContext<'_>, _: Value) -> BoxFuture<'a, Result<ToolReply>> {
        Box::pin(std::future::pending())
    }
}
