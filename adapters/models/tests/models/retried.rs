//! What a turn reports of requests that are sent again.

use std::time::Duration;

use goondan::Agent;
use goondan::agent::TurnUpdate;
use goondan::event::RuntimeEvent;
use goondan_covers::covers;
use goondan_models::providers;
use goondan_models::wire::Anthropic;
use serde_json::json;

use crate::support::{Recording, Reply, Server, config};

#[tokio::test]
#[covers("MODEL-02")]
async fn each_repeated_request_is_reported_with_its_wait_and_cause() {
    let recordings = Recording::all("anthropic");
    let text = recordings.iter().find(|recording| recording.name == "text").unwrap().stream();
    let busy = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    let server = Server::start([
        Reply::json("529 Overloaded", &busy).header("retry-after-ms", "20"),
        Reply::events(&text[..text.len() / 2]),
        Reply::events(&text),
    ])
    .await;
    let mut config = config(server.url());
    config.retries.max = 3;
    let model = config.model(&providers::ANTHROPIC, Anthropic).unwrap();
    let agent = Agent::builder("assistant").model(model).build().unwrap();
    let instance = agent.instance("one").await.unwrap();
    let mut turn = instance.run_stream("hi");
    let (mut retried, mut restarts) = (Vec::new(), Vec::new());
    while let Some(update) = turn.next().await {
        match update {
            TurnUpdate::Restart { reason, wait, .. } => restarts.push((reason, wait.unwrap())),
            TurnUpdate::Event(event) => {
                if let RuntimeEvent::ModelRetried { reason, wait, .. } = &*event {
                    retried.push((reason.clone(), *wait));
                }
            }
            _ => {}
        }
    }
    let turn = turn.finish().await.unwrap();
    assert_eq!(turn.steps(), 1);
    assert_eq!(instance.messages().await.unwrap().len(), 2, "the question, and one answer");
    assert_eq!(server.requests().len(), 3);
    assert_eq!(retried, restarts);
    assert_eq!(retried[0], ("status 529: Overloaded".to_owned(), Duration::from_millis(20)));
    // The second wait is the model's own: half a second that doubles with each attempt, less up to a half of it.
    let (reason, wait) = &retried[1];
    assert_eq!(reason, "the answer ended before it was complete");
    assert!((500..=1000).contains(&wait.as_millis()), "{wait:?}");
}
