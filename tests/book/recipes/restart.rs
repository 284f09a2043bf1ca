use std::sync::Arc;

use goondan::event::AgentEvent;
use goondan::store::{InstanceQuery, InstanceStatus, Store};
use goondan::{Agent, Result};

/// Answers a request of a client, which may send it again: `id` is the client's own.
pub async fn answer(agent: &Agent, conversation: &str, id: &str, text: &str) -> Result<String> {
    let instance = agent.instance(conversation).await?;
    let result = instance.run(AgentEvent::input(text).with_id(id)).await?;
    Ok(result.text().into_owned())
}

/// Goes on with the turns that the last process left open. Returns how many there were.
pub async fn go_on(agent: &Agent, store: &Arc<dyn Store>) -> Result<usize> {
    let mut went_on = 0;
    let query = InstanceQuery::new().agent(agent.name().clone()).status(InstanceStatus::Interrupted);
    for stored in store.list(&query).await?.instances {
        let instance = agent.instance(stored.id.key.as_str()).await?;
        if let Some(event) = instance.interrupted().await? {
            // Who sent it asks again, and gets this answer.
            instance.run(event).await?;
            went_on += 1;
        }
    }
    Ok(went_on)
}

#[cfg(test)]
mod tests {
    use goondan::BoxFuture;
    use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse, ScriptItem, ScriptedModel};
    use goondan::store::FileStore;
    use tokio::sync::Notify;

    use super::*;

    /// A model that does not answer before its process ends.
    struct Slow(Arc<Notify>);

    impl Model for Slow {
        fn generate<'a>(&'a self, _: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
            self.0.notify_one();
            Box::pin(std::future::pending())
        }
    }

    #[tokio::test]
    async fn a_program_goes_on_after_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = Arc::new(FileStore::open(dir.path().join("workspace")).unwrap());
        let asked = Arc::<Notify>::default();
        let first = Agent::builder("support").model(Slow(Arc::clone(&asked))).store(Arc::clone(&store));
        let first = first.build().unwrap();
        tokio::select! {
            answer = answer(&first, "user:42", "request-1", "hello") => panic!("{answer:?}"),
            () = asked.notified() => {}
        }
        first.close().await.unwrap();

        let model = ScriptedModel::new([ScriptItem::say("hi")]);
        let second = Agent::builder("support").model(model).store(Arc::clone(&store)).build().unwrap();
        assert_eq!(go_on(&second, &store).await.unwrap(), 1);
        assert_eq!(go_on(&second, &store).await.unwrap(), 0);
        assert_eq!(answer(&second, "user:42", "request-1", "hello").await.unwrap(), "hi");
    }
}
