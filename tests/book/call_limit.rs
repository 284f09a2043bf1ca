//! The second extension of `docs/writing-extensions.md`.

use std::sync::atomic::{AtomicU32, Ordering};

use goondan::prelude::*;

/// The config: `spec.config` in a bundle.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// How many tool calls a turn may have.
    pub max_calls: u32,
}

/// The extension. Each conversation has its own value.
pub struct CallLimit {
    max: u32,
    calls: AtomicU32,
}

/// Limits the number of tool calls in a turn.
#[goondan::extension(name = "call-limit")]
impl CallLimit {
    #[init]
    fn new(config: Config) -> Self {
        Self { max: config.max_calls, calls: AtomicU32::new(0) }
    }

    #[middleware(turn)]
    async fn begin(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        self.calls.store(0, Ordering::Relaxed);
        next.run(ctx).await
    }

    #[middleware(toolCall, priority = -10)]
    async fn count(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if self.calls.fetch_add(1, Ordering::Relaxed) >= self.max {
            let problem = format!("no more than {} calls in a turn, so not `{}`", self.max, ctx.tool_name());
            return Err(Error::msg(problem).suggest("answer with what you know"));
        }
        next.run(ctx).await
    }
}

#[cfg(test)]
mod tests {
    use goondan::json;
    use goondan::model::ScriptItem;
    use goondan::testing::Chat;

    use super::CallLimit;
    use crate::first::notes;

    #[tokio::test]
    async fn the_second_call_is_refused() -> goondan::Result<()> {
        let list = ScriptItem::call("notes__list", json!({}));
        let script = [list.clone(), list, ScriptItem::say("done")];
        let chat = Chat::with::<CallLimit>(json!({ "maxCalls": 1 })).with::<notes::Extension>(json!({}));
        let chat = chat.script(script).start().await?;

        chat.say("list twice").await?;

        let transcript = chat.transcript().await;
        assert_eq!(transcript[2], "tool: []");
        assert!(transcript[4].contains("no more than 1 calls in a turn, so not `notes__list`"), "{}", transcript[4]);
        Ok(())
    }
}
