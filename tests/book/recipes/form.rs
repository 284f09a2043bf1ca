//! A form before a call runs, and a program that decides from a queue.

/// Asks for the reason and the account before money is paid back.
#[goondan::extension(name = "refund-form", guard)]
pub mod refund_form {
    use std::time::Duration;

    use goondan::decision::Question;
    use goondan::prelude::*;

    /// The form that a clerk fills in.
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Form {
        /// Why the money is paid back.
        #[schemars(length(min = 1))]
        reason: String,
        /// The account that it is paid from.
        account: Account,
    }

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    enum Account {
        Shop,
        Insurance,
    }

    #[middleware(toolCall, priority = 1000)]
    async fn ask(
        ctx: &mut ToolCallContext<'_>,
        next: Next<'_, ToolCall>,
        api: &ExtensionApi,
    ) -> Result<ToolCallResult> {
        if ctx.tool_name() != "shop__refund" {
            return next.run(ctx).await;
        }
        let Some(Form { reason, account }) = ctx.decision()? else {
            let question = Question::new(format!("Pay back {}?", ctx.args()["sum"]));
            ctx.ask(question.expecting::<Form>().expires_after(Duration::from_secs(7 * 86_400)));
            return next.run(ctx).await;
        };
        let mut result = next.run(ctx).await?;
        if !result.is_waiting() {
            api.logger().info(format!("paid back from {account:?}: {reason}"));
            result.map_text(|text| format!("{text}, because: {reason}").into());
        }
        Ok(result)
    }
}

pub mod program {
    use goondan::decision::{Decision, Wait};
    use goondan::middleware::TurnResult;
    use goondan::{Agent, ErrorCode, Result};
    use tokio::sync::mpsc::UnboundedSender;

    /// A call that waits for a decision, with the key of its conversation.
    pub type Case = (String, Wait);

    /// Answers an input. Returns `None` if the answer has to wait: then the calls are in the queue.
    pub async fn handle(
        agent: &Agent,
        key: &str,
        input: &str,
        cases: &UnboundedSender<Case>,
    ) -> Result<Option<String>> {
        Ok(answer(key, agent.instance(key).await?.run(input).await?, cases))
    }

    /// Takes a decision, which may come days later, and in another process.
    pub async fn decided(
        agent: &Agent,
        key: &str,
        decision: Decision,
        cases: &UnboundedSender<Case>,
    ) -> Result<Option<String>> {
        match agent.instance(key).await?.decide([decision]).await {
            Ok(turn) => Ok(answer(key, turn, cases)),
            // Another decision was there first, or this one is too late.
            Err(error) if [ErrorCode::DECISION_TAKEN, ErrorCode::NOT_WAITING].contains(error.code()) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn answer(key: &str, turn: TurnResult, cases: &UnboundedSender<Case>) -> Option<String> {
        for wait in turn.waits() {
            _ = cases.send((key.to_owned(), wait.clone()));
        }
        turn.waits().is_empty().then(|| turn.text().into_owned())
    }
}

/// What must not run unasked.
#[goondan::extension(name = "shop")]
pub mod shop {
    use goondan::prelude::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    struct Refund {
        sum: f64,
    }

    /// Pays money back.
    #[tool(effect = once)]
    async fn refund(refund: Refund) -> Result<String> {
        Ok(format!("{} paid back", refund.sum))
    }
}

#[cfg(test)]
mod tests {
    use goondan::decision::Decision;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::{Agent, json};
    use tokio::sync::mpsc::unbounded_channel;

    use super::{program, refund_form, shop};

    #[tokio::test]
    async fn a_refund_waits_in_the_queue_until_the_form_is_filled_in() -> goondan::Result<()> {
        let script = [ScriptItem::call("shop__refund", json!({ "sum": 49.5 })), ScriptItem::say("done")];
        let agent = Agent::builder("clerk").model(ScriptedModel::new(script));
        let agent = agent.extension::<refund_form::Extension>(json!({})).extension::<shop::Extension>(json!({}));
        let agent = agent.build()?;
        let (cases, mut queue) = unbounded_channel();
        assert_eq!(program::handle(&agent, "order:1183", "Refund it.", &cases).await?, None);
        let (key, wait) = queue.recv().await.unwrap();
        assert_eq!(wait.questions[0].question.text, "Pay back 49.5?");
        let form = json!({ "reason": "it was broken", "account": "shop" });
        let decision = Decision::new(wait.call, form);
        assert_eq!(program::decided(&agent, &key, decision.clone(), &cases).await?.as_deref(), Some("done"));
        assert_eq!(program::decided(&agent, &key, decision, &cases).await?, None, "too late");
        let messages = agent.instance("order:1183").await?.messages().await?;
        assert!(messages[2].content().parts()[0].to_string().contains("49.5 paid back, because: it was broken"));
        Ok(())
    }
}
