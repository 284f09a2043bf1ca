//! The snippets of `docs/attributes.md` and `docs/writing-extensions.md` about `before` and `after`.

use goondan::json;
use goondan::model::ScriptItem;
use goondan::testing::Chat;

/// Logs the arguments of tool calls.
#[goondan::extension(name = "audit")]
pub mod audit {
    use goondan::prelude::*;

    /// Further in than the layers of `mask`, if the agent has it: passwords are gone by then.
    #[middleware(toolCall, priority = -100, after = "mask?")]
    async fn log(
        ctx: &mut ToolCallContext<'_>,
        next: Next<'_, ToolCall>,
        api: &ExtensionApi,
    ) -> Result<ToolCallResult> {
        api.logger().with("args", ctx.args()).info("a call");
        next.run(ctx).await
    }
}

/// Removes passwords from the arguments of tool calls.
#[goondan::extension(name = "mask")]
pub mod mask {
    use goondan::prelude::*;

    #[middleware(toolCall)]
    async fn mask(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        ctx.args_mut().remove("password");
        next.run(ctx).await
    }
}

#[tokio::test]
async fn audit_logs_what_mask_leaves() -> goondan::Result<()> {
    let script = || [ScriptItem::call("door__open", json!({ "password": "sesame" })), ScriptItem::say("done")];

    let both = Chat::with::<audit::Extension>(json!({})).with::<mask::Extension>(json!({}));
    let chat = both.script(script()).start().await?;
    chat.say("open the door").await?;
    let calls: Vec<_> = chat.logs().into_iter().filter(|line| line.text == "a call").collect();
    assert_eq!(calls[0].fields["args"], json!({}));

    let alone = Chat::with::<audit::Extension>(json!({})).script(script()).start().await?;
    alone.say("open the door").await?;
    let calls: Vec<_> = alone.logs().into_iter().filter(|line| line.text == "a call").collect();
    assert_eq!(calls[0].fields["args"], json!({ "password": "sesame" }));
    Ok(())
}
