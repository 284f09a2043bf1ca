//! Another model after a failure, in a program.

use goondan::model::{DeltaSink, Model, ModelDelta, ModelRequest, ModelResponse};
use goondan::{BoxFuture, Result};

/// Asks the second model when the first one fails and might not fail again.
pub struct Fallback<A, B> {
    pub first: A,
    pub second: B,
}

impl<A: Model, B: Model> Model for Fallback<A, B> {
    fn generate<'a>(
        &'a self,
        request: ModelRequest<'a>,
        deltas: DeltaSink<'a>,
    ) -> BoxFuture<'a, Result<ModelResponse>> {
        Box::pin(async move {
            match self.first.generate(request, deltas).await {
                Err(error) if error.is_retryable() => {
                    deltas.send(ModelDelta::Restart { reason: "the first model failed", wait: None });
                    self.second.generate(request, deltas).await
                }
                outcome => outcome,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use goondan::Agent;
    use goondan::model::{ScriptItem, ScriptedModel};

    use super::Fallback;

    #[tokio::test]
    async fn the_second_model_answers() -> goondan::Result<()> {
        let first = ScriptedModel::new([ScriptItem::fail("busy", true)]);
        let second = ScriptedModel::new([ScriptItem::say("hello")]);
        let agent = Agent::builder("assistant").model(Fallback { first, second }).build()?;
        let turn = agent.instance("user:42").await?.run("hi").await?;
        assert_eq!((&*turn.text(), turn.steps()), ("hello", 1));
        Ok(())
    }
}
