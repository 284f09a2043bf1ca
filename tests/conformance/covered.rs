//! GUARD-01: a guard covers whom its agent reaches.

use conformance_extensions::covered::{Contradicting, Covering, Pushing, Roaming};
use goondan::agent::{AgentBuilder, AgentCall, AgentReply, Covers, LocalRouter, Router};
use goondan::middleware::MiddlewareKind;
use goondan::model::{ScriptItem, ScriptedModel};
use goondan::name::AgentName;
use goondan::{Agent, BoxFuture, ErrorCode, Result, json};
use goondan_covers::{both_linkages, covers, interruptible};

use crate::linkage::Extended;
use crate::support::Log;

/// An agent that acts if it is asked, and asks `target`, if there is one, before.
fn agent(name: &str, log: &Log, target: Option<&str>) -> AgentBuilder {
    let call = ScriptItem::call("roaming__act", json!({}));
    let script = match target {
        Some(_) => vec![ScriptItem::say("asked").repeat()],
        None => vec![call, ScriptItem::say("done").repeat()],
    };
    let config = json!({ "log": log, "target": target });
    Agent::builder(name).model(ScriptedModel::new(script)).with::<Roaming>(config)
}

fn guarded(agent: AgentBuilder, log: &Log, covers: Covers) -> AgentBuilder {
    agent.with::<Covering>(log.config()).covers("covering", covers)
}

/// Builds agents that reach one another.
fn built(router: &LocalRouter, agents: impl IntoIterator<Item = AgentBuilder>) -> Vec<Agent> {
    let build = |agent: AgentBuilder| {
        let agent = agent.router(router.clone()).build().unwrap();
        router.add(&agent);
        agent
    };
    agents.into_iter().map(build).collect()
}

/// Runs a turn of the first agent, until nothing runs any more.
#[interruptible]
async fn run(agents: &[Agent], how: &str) {
    agents[0].instance("x").await.unwrap().run(how).await.unwrap();
    // What is asked for later is sent by a task.
    for _ in 0..50 {
        tokio::task::yield_now().await;
    }
    for agent in agents {
        let mut turns = agent.subscribe_turns();
        while turns.next_pending().await.is_some() {}
    }
}

#[both_linkages]
#[covers("GUARD-01")]
async fn an_agent_without_the_guard_of_those_who_ask_is_not_reached_in_any_way() {
    for covers in [Covers::Reachable, Covers::Swarm] {
        for how in ["request", "later", "send", "delegate"] {
            let (log, router) = (Log::new(), LocalRouter::new());
            let boss = guarded(agent("boss", &log, Some("worker")), &log, covers);
            let agents = built(&router, [boss, agent("worker", &log, None)]);
            run(&agents, how).await;
            let lines = log.take();
            assert!(!lines.iter().any(|line| line.starts_with("acted")), "{how}: {lines:?}");
            match how {
                "later" => assert_eq!(lines, ["asked"]),
                "delegate" => assert_eq!(lines, ["delegated", "E_GUARD_GAP"]),
                _ => {
                    let expected = "E_GUARD_GAP the agent `worker` does not have the guard `covering` of those who ask \
                                    it: boss -> worker";
                    assert_eq!(lines, [expected]);
                }
            }
            let worker = agents[1].instance("x").await.unwrap();
            assert!(worker.messages().await.unwrap().is_empty(), "{how}: no turn has begun");
        }
    }
}

#[both_linkages]
#[covers("GUARD-01")]
async fn a_guard_that_all_have_guards_all() {
    for how in ["request", "later", "send", "delegate"] {
        let (log, router) = (Log::new(), LocalRouter::new());
        let boss = guarded(agent("boss", &log, Some("worker")), &log, Covers::Swarm);
        let worker = guarded(agent("worker", &log, None), &log, Covers::Agent);
        let agents = built(&router, [boss, worker]);
        run(&agents, how).await;
        let lines = log.take();
        assert!(lines.contains(&"refused in worker".to_owned()), "{how}: {lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with("acted") || line.contains("GAP")), "{how}: {lines:?}");
    }
}

#[both_linkages]
#[covers("GUARD-01")]
async fn a_guard_of_one_agent_covers_nobody_else() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let boss = guarded(agent("boss", &log, Some("worker")), &log, Covers::Agent);
    let agents = built(&router, [boss, agent("worker", &log, None)]);
    run(&agents, "request").await;
    assert_eq!(log.take(), ["acted in worker", "done"]);
}

/// Brings events to agents, and looks at nothing.
struct Blind(Vec<Agent>);

impl Blind {
    fn find(&self, name: &AgentName) -> Agent {
        self.0.iter().find(|agent| agent.name() == name).unwrap().clone()
    }
}

impl Router for Blind {
    fn request(&self, call: AgentCall) -> BoxFuture<'_, Result<AgentReply>> {
        Box::pin(async move {
            let instance = self.find(&call.target).instance(call.instance.as_str()).await?;
            Ok(AgentReply::Text(instance.run(call.event).await?.text().into_owned()))
        })
    }

    fn send(&self, call: AgentCall) -> BoxFuture<'_, Result<bool>> {
        Box::pin(async move {
            self.find(&call.target).instance(call.instance.as_str()).await?.send(call.event);
            Ok(true)
        })
    }

    fn agents(&self) -> Vec<AgentName> {
        self.0.iter().map(|agent| agent.name().clone()).collect()
    }
}

/// An agent between the two does not make a gap, nor does a router of the program.
#[both_linkages]
#[covers("GUARD-01")]
async fn a_way_through_others_is_closed_too() {
    let log = Log::new();
    let worker = agent("worker", &log, None).build().unwrap();
    let clerk = guarded(agent("clerk", &log, Some("worker")), &log, Covers::Agent);
    let clerk = clerk.router(Blind(vec![worker.clone()])).build().unwrap();
    let boss = guarded(agent("boss", &log, Some("clerk")), &log, Covers::Reachable);
    let boss = boss.router(Blind(vec![clerk.clone()])).build().unwrap();
    run(&[boss, clerk, worker], "request").await;
    let way = "does not have the guard `covering` of those who ask it: boss -> clerk -> worker";
    assert_eq!(log.take(), [format!("E_GUARD_GAP the agent `worker` {way}"), "asked".to_owned()]);
}

#[both_linkages]
#[covers("GUARD-01", "ORDER-05")]
async fn the_layers_of_a_guard_of_the_swarm_are_outside_of_all_others() {
    let log = Log::new();
    let order = async |covers| {
        let agent = agent("boss", &log, None).with::<Pushing>(json!({}));
        let agent = guarded(agent, &log, covers).build().unwrap();
        let layers = agent.instance("x").await.unwrap().layers(MiddlewareKind::ToolCall).await.unwrap();
        layers.iter().map(|layer| layer.extension.to_string()).collect::<Vec<_>>()
    };
    assert_eq!(order(Covers::Agent).await, ["pushing", "covering"]);
    assert_eq!(order(Covers::Reachable).await, ["pushing", "covering"]);
    assert_eq!(order(Covers::Swarm).await, ["covering", "pushing"]);

    let agent = guarded(agent("boss", &log, None).with::<Contradicting>(json!({})), &log, Covers::Swarm);
    let error = agent.build().unwrap().instance("x").await.unwrap_err();
    assert_eq!(error.code(), &ErrorCode::EXT_ORDER);
    assert!(error.message().contains("`covering` guards the swarm"), "{error}");
}

#[both_linkages]
#[covers("GUARD-01")]
async fn what_does_not_guard_covers_nobody() {
    let log = Log::new();
    let pushing = || agent("boss", &log, None).with::<Pushing>(json!({}));
    let error = pushing().covers("pushing", Covers::Reachable).build().unwrap_err();
    assert_eq!((error.code(), error.extension().unwrap().as_str()), (&ErrorCode::EXT_GUARD, "pushing"));
    // All agents of a swarm have it.
    pushing().covers("pushing", Covers::Swarm).build().unwrap();
    let error = pushing().covers("guard", Covers::Swarm).build().unwrap_err();
    assert!(error.message().contains("`covers` names `guard`"), "{error}");
}

/// A reload that takes the guard of an agent away opens no way to it.
#[both_linkages]
#[covers("GUARD-01")]
async fn after_a_reload_without_the_guard_an_agent_is_not_reached() {
    let (log, router) = (Log::new(), LocalRouter::new());
    let boss = guarded(agent("boss", &log, Some("worker")), &log, Covers::Reachable);
    let worker = guarded(agent("worker", &log, None), &log, Covers::Agent);
    let agents = built(&router, [boss, worker]);
    run(&agents, "request").await;
    assert!(log.take().contains(&"refused in worker".to_owned()));
    agents[1].reload(&agent("worker", &log, None).router(router.clone()).build().unwrap()).await.unwrap();
    run(&agents, "request").await;
    let lines = log.take();
    assert!(lines.iter().all(|line| line.starts_with("E_GUARD_GAP")), "{lines:?}");
}
