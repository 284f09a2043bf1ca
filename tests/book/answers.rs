//! The programs of `docs/answers.md`.

use goondan::Agent;
use goondan::middleware::{AnswerVerdict, ModelAnswer};
use goondan::model::Model;
use goondan::prelude::*;

#[derive(Debug, Deserialize, JsonSchema)]
struct Invoice {
    number: String,
    /// In cents.
    total: u64,
    due: Option<String>,
}

async fn read_invoice(model: impl Model, letter: &str) -> Result<Invoice> {
    let agent = Agent::builder("clerk").model(model).system("Find the invoice in the letter.").build()?;
    agent.instance("letters").await?.run_as(letter).await
}

pub struct Repairing;

/// Parses a query, which here has as many opening brackets as closing ones.
fn parse(query: &str) -> std::result::Result<&str, String> {
    let count = |bracket| query.matches(bracket).count();
    match count('(') == count(')') {
        true => Ok(query),
        false => Err("a bracket is open".to_owned()),
    }
}

#[goondan::extension(name = "repairing")]
impl Repairing {
    #[init]
    fn new() -> Self {
        Self
    }

    /// Lets the model write only queries that the database understands.
    #[middleware(step)]
    async fn repair(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.review_answer(|answer: &ModelAnswer| match parse(&answer.text()) {
            Ok(_) => AnswerVerdict::Keep,
            Err(problem) => AnswerVerdict::ask_again_at_most(3, format!("The query does not parse: {problem}")),
        });
        next.run(ctx).await
    }
}

#[goondan::extension(name = "privacy", guard)]
pub mod privacy {
    use std::borrow::Cow;

    use goondan::middleware::{AnswerVerdict, ModelAnswer, PieceKind, PieceTransformer};
    use goondan::prelude::*;

    fn hidden(text: &str) -> String {
        text.split(' ').map(|word| if word.contains('@') { "[address]" } else { word }).collect::<Vec<_>>().join(" ")
    }

    /// Keeps the newest word back until it has ended.
    struct Hiding(String);

    impl PieceTransformer for Hiding {
        fn piece<'p>(&mut self, _: PieceKind, piece: &'p str) -> Result<Cow<'p, str>> {
            self.0.push_str(piece);
            let rest = self.0.split_off(self.0.rfind(' ').map_or(0, |space| space + 1));
            Ok(hidden(&std::mem::replace(&mut self.0, rest)).into())
        }

        fn end(&mut self, _: PieceKind) -> Result<String> {
            Ok(hidden(&std::mem::take(&mut self.0)))
        }
    }

    #[middleware(step)]
    async fn answers(ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        ctx.transform_pieces(Hiding(String::new()));
        ctx.review_after_streaming(|answer: &ModelAnswer| {
            match answer.content().texts().any(|it| it.contains("acct_")) {
                true => AnswerVerdict::refuse(Error::new("E_PRIVACY", "the answer names an account")),
                false => AnswerVerdict::Keep,
            }
        });
        next.run(ctx).await
    }

    #[middleware(toolCall)]
    async fn outputs(ctx: &mut ToolCallContext<'_>, next: Next<'_, ToolCall>) -> Result<ToolCallResult> {
        let mut result = next.run(ctx).await?;
        result.map_text(|text| hidden(text).into());
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use goondan::agent::TurnUpdate;
    use goondan::json;
    use goondan::model::{ScriptItem, ScriptedModel};
    use goondan::testing::Chat;

    use super::*;

    #[tokio::test]
    async fn an_invoice_is_read() -> Result<()> {
        let script = [
            ScriptItem::say("It is number 7, and 20 euros."),
            ScriptItem::call("goondan__answer", json!({ "number": "7", "total": 2000, "due": null })),
        ];
        let invoice = read_invoice(ScriptedModel::new(script), "You owe us 20 euros (7).").await?;
        assert_eq!((&*invoice.number, invoice.total, invoice.due), ("7", 2000, None));
        Ok(())
    }

    #[tokio::test]
    async fn a_query_is_repaired() -> Result<()> {
        let script = [ScriptItem::say("count((a)"), ScriptItem::say("count(a)")];
        let chat = Chat::with::<Repairing>(json!({})).script(script).start().await?;
        assert_eq!(chat.say("How many?").await?.text(), "count(a)");
        let transcript = chat.last_request().transcript();
        assert_eq!(transcript, ["user: How many?", "user: The query does not parse: a bracket is open"]);
        assert_eq!(chat.instance().messages().await?.len(), 2);
        Ok(())
    }

    #[tokio::test]
    async fn addresses_are_hidden_and_accounts_withheld() -> Result<()> {
        let pieces = NonZeroU32::new(7).unwrap();
        let script = [
            ScriptItem::say("Write to ada@example.org today.").pieces(pieces),
            ScriptItem::say("It is acct_7 of ada@example.org today.").pieces(pieces),
        ];
        let chat = Chat::with::<privacy::Extension>(json!({})).script(script).start().await?;
        let (mut turn, mut told) = (chat.instance().run_stream("Whom?"), String::new());
        while let Some(update) = turn.next().await {
            if let TurnUpdate::Text { text, .. } = update {
                assert!(!text.contains('@'), "{text}");
                told.push_str(&text);
            }
        }
        assert_eq!(told, "Write to [address] today.");
        turn.finish().await?;
        assert_eq!(chat.say("And the account?").await.unwrap_err().code(), "E_PRIVACY");
        assert!(!format!("{:?}", chat.instance().messages().await?).contains("acct_"));
        Ok(())
    }
}
