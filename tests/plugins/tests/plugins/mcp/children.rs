//! D-40: calls of a server by an agent that another one waits for.

use std::time::Duration;

use goondan::agent::{LocalRouter, Policy};
use goondan::conversation::Role;
use goondan::event::AgentEvent;
use goondan::model::{DeltaSink, Model, ModelRequest, ModelResponse};
use goondan::{Agent, BoxFuture, Result, Value, json};
use goondan_covers::{both_linkages, covers};
use goondan_libraries::runs;

use super::support::Odd;
use crate::linkage::WithPlugin;

/// A model that calls a tool, and says something once it has the result.
struct Calling(&'static str, Value);

impl Model for Calling {
    fn generate<'a>(&'a self, request: ModelRequest<'a>, _: DeltaSink<'a>) -> BoxFuture<'a, Result<ModelResponse>> {
        let call = json!({ "id": "call", "name": self.0, "args": self.1 });
        let answer = match request.messages().last().is_some_and(|message| message.role == Role::Tool) {
            true => json!({ "text": "done", "finishReason": "stop" }),
            false => json!({ "toolCalls": [call], "finishReason": "tool-calls" }),
        };
        Box::pin(async { Ok(serde_json::from_value(answer)?) })
    }
}

/// `boss` asks `clerk`, who asks `worker`, whose call of a server never has an answer. It ends at some moment, in each
/// of four ways.
#[both_linkages]
#[covers("WORK-01")]
async fn a_call_ends_with_the_turn_that_waits_for_its_agent() {
    let (odd, router) = (Odd::new(), LocalRouter::new());
    let mut policy = Policy::default();
    policy.turn_timeout = Duration::from_millis(30);
    let asks = |target: &str| Calling("agents__request", json!({ "target": target, "input": "work" }));
    let asking = |name: &str, target: &str| {
        let agent = Agent::builder(name).model(asks(target)).plugin("agents", "agents", json!({}));
        agent.router(router.clone())
    };
    let boss = asking("boss", "clerk").build().unwrap();
    let hasty = asking("hasty", "clerk").policy(policy).build().unwrap();
    let clerk = asking("clerk", "worker").build().unwrap();
    let config = odd.config_with(&[], json!({ "attach": { "scope": "shared" } }));
    let worker = Agent::builder("worker").model(Calling("odd__hang", json!({}))).plugin("odd", "mcp", config);
    let worker = worker.router(router.clone()).build().unwrap();
    let all = [&boss, &hasty, &clerk, &worker];
    all.iter().for_each(|agent| router.add(agent));
    // One server for all runs.
    let _kept = worker.instance("kept").await.unwrap();
    for run in 0..runs(24) {
        let (key, event) = (run.to_string(), AgentEvent::input("go").with_id("e1"));
        let moment = tokio::time::sleep(Duration::from_micros(u64::from(run) * 7919 % 20_000));
        let called = odd.logged("call").len() + 1;
        let moment = async {
            moment.await;
            while run % 3 == 0 && odd.logged("call").len() < called {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        let agent = if run % 4 == 3 { &hasty } else { &boss };
        let instance = agent.instance(&key).await.unwrap();
        let mut turn = instance.run_stream(event.clone());
        tokio::select! {
            () = async { while turn.next().await.is_some() {} } => {}
            () = moment, if run % 4 != 3 => {}
        }
        match run % 4 {
            0 => turn.cancel().await.unwrap(),
            3 => _ = turn.finish().await.unwrap_err(),
            way => {
                drop(turn);
                match way {
                    1 => _ = instance.cancel(&event.id).await.unwrap(),
                    _ => instance.abandon().await.unwrap(),
                }
            }
        }
        // The server is told on its own time.
        while odd.logged("call").len() > odd.logged("cancelled").len() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for agent in all {
            let instance = agent.instance(&key).await.unwrap();
            assert!(instance.interrupted().await.unwrap().is_none(), "{run}: {agent:?}");
            instance.close().await.unwrap();
        }
    }
    assert_eq!(odd.starts(), 1);
    assert!(odd.logged("call").len() >= usize::try_from(runs(24)).unwrap() / 3, "{:?}", odd.log());
}
