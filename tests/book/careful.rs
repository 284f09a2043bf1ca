//! The layer of `docs/writing-extensions.md` that asks before a call runs.

use std::time::Duration;

use goondan::decision::Question;
use goondan::extension::ExtensionApi;
use goondan::prelude::*;
use goondan::tool::ToolReply;

/// What a person is asked for.
#[derive(Debug, Deserialize, JsonSchema)]
struct Approval {
    /// Who pays.
    account: String,
}

/// Pays money back, if a person has approved that.
pub struct Shop {
    api: ExtensionApi,
}

#[goondan::extension(name = "shop")]
impl Shop {
    #[init]
    fn new(api: ExtensionApi) -> Self {
        Self { api }
    }

    /// Asks before money is paid back.
    #[middleware(toolCall, priority = 1000)]
    async fn approve(&self, ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        if ctx.tool_name() != "shop__refund" {
            return next.run(ctx).await;
        }
        match ctx.decision::<Approval>()? {
            None => {
                let text = format!("Refund {}?", ctx.args()["sum"]);
                let week = Duration::from_secs(7 * 86_400);
                ctx.ask(Question::new(text).expecting::<Approval>().expires_after(week));
            }
            Some(approval) => self.api.logger().info(format!("paid from {}", approval.account)),
        }
        next.run(ctx).await
    }

    /// Sends the parcel of an order.
    #[tool(asks, effect = once)]
    async fn send(&self, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        let Some(carrier) = ctx.decision::<String>()? else {
            return Ok(ToolReply::ask(Question::choose("Which carrier?", ["Post", "Express"])));
        };
        Ok(ToolReply::text(format!("sent with {carrier}")))
    }

    /// Pays money back.
    #[tool(effect = once)]
    async fn refund(&self, refund: Refund) -> Result<String> {
        Ok(format!("{} paid back", refund.sum))
    }
}

/// A refund.
#[derive(Debug, Deserialize, JsonSchema)]
struct Refund {
    sum: f64,
}

#[cfg(test)]
mod tests {
    use goondan::decision::Decision;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::{Agent, json};

    use super::Shop;

    #[tokio::test]
    async fn a_refund_waits_for_a_person() -> goondan::Result<()> {
        let script = [ScriptItem::call("shop__refund", json!({ "sum": 49.5 })), ScriptItem::say("done")];
        let agent = Agent::builder("clerk").model(ScriptedModel::new(script)).extension::<Shop>(json!({})).build()?;
        let clerk = agent.instance("order:1183").await?;

        let turn = clerk.run("Refund it.").await?;
        let wait = &turn.waits()[0];
        assert_eq!(wait.questions[0].question.text, "Refund 49.5?");

        let decision = Decision::new(wait.call.clone(), json!({ "account": "shop" }));
        assert_eq!(clerk.decide([decision]).await?.text(), "done");
        clerk.close().await
    }

    #[tokio::test]
    async fn a_parcel_waits_for_its_carrier() -> goondan::Result<()> {
        let script = [ScriptItem::call("shop__send", json!({})), ScriptItem::say("done")];
        let agent = Agent::builder("clerk").model(ScriptedModel::new(script)).extension::<Shop>(json!({})).build()?;
        let clerk = agent.instance("order:1183").await?;
        let call = clerk.run("Send it.").await?.waits()[0].call.clone();
        assert_eq!(clerk.decide([Decision::new(call, "Post")]).await?.text(), "done");
        clerk.close().await
    }
}
