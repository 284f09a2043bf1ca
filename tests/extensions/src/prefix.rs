//! An extension that changes the beginning of requests.

use goondan::prelude::*;
use goondan::tool::ToolItem;

use crate::{Log, LogConfig};

/// Changes what the input names, and logs the events of it.
pub struct Breaking {
    log: Log,
}

#[goondan::extension(name = "breaking")]
impl Breaking {
    #[init]
    fn new(config: LogConfig) -> Self {
        Self { log: config.log }
    }

    /// Says nothing.
    #[tool(name = "breaking__first", effect = read)]
    async fn first(&self) -> Result<()> {
        Ok(())
    }

    /// Says nothing.
    #[tool(name = "breaking__second", effect = read)]
    async fn second(&self) -> Result<()> {
        Ok(())
    }

    #[middleware(step)]
    async fn change(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        let input = ctx.conversation().iter().next_back().map(|message| message.text().into_owned());
        let oldest = ctx.conversation().iter().next().map(|message| message.to_id()).unwrap();
        let (change, ids) = (input.unwrap(), |text: &str| Message::user(text).with_id(oldest.clone()));
        match change.as_str() {
            "remove" => ctx.emit(MessageEvent::remove(oldest)),
            "replace" => {
                let message = ids("another text");
                ctx.emit(MessageEvent::replace(oldest, message));
            }
            "same" => {
                let oldest = ctx.conversation().iter().next().unwrap().to_message();
                ctx.emit(MessageEvent::replace(oldest.id().clone(), oldest));
            }
            "truncate" => ctx.emit(MessageEvent::truncate()),
            "edit" => {
                let message = ids("another text for this step");
                ctx.project(MessageEvent::replace(oldest, message));
            }
            "hint" => ctx.project(MessageEvent::append(Message::system("a hint").with_id("hint"))),
            "hide" => ctx.tool_catalog_mut().retain(|tool| tool.name.as_str() != "breaking__second"),
            "grow" => ctx.tool_catalog_mut().insert(ToolItem::new("breaking__third")?),
            "look" => ctx.tool_catalog_mut().retain(|_| true),
            _ => {}
        }
        next.run(ctx).await
    }

    #[on("model.prefixBroken")]
    async fn broken(&self, event: &Event) -> Result<()> {
        self.log.write(format!("kept {} of {}", event.args()[0]["kept"], event.args()[0]["of"]));
        Ok(())
    }
}
