//! Limits of agents and swarms.

use std::fs;
use std::time::Duration;

use goondan::Error;
use goondan::prelude::{Next, Result, Step, StepContext, StepResult};
use goondan::store::MemoryStore;
use goondan_bundle::Bundle;
use goondan_covers::covers;

use crate::support::{AGENT, bundle_of, model};

#[tokio::test(start_paused = true)]
#[covers("TIME-01", "D-22")]
async fn limits_of_the_agent_take_precedence_over_those_of_the_swarm() {
    let run = async |agent: &str, swarm: &str| {
        let text = model("main", "{ provider: echo, prefix: '', mode: slow }")
            + AGENT
            + &format!(
                "  policy: {{ {agent} }}\n---\napiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: s }}\n"
            )
            + &format!(
                "spec: {{ agents: [ {{ ref: Agent/main }} ], entryAgent: Agent/main, policy: {{ {swarm} }} }}\n"
            );
        let directory = bundle_of(&text);
        let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
        let instance = agents.get("main").unwrap().instance("a").await.unwrap();
        let begin = tokio::time::Instant::now();
        let error = instance.run("hi").await.unwrap_err();
        (error.code().to_string(), begin.elapsed())
    };
    let ends = |code: &str, seconds| (code.to_owned(), Duration::from_secs(seconds));
    assert_eq!(run("", "").await, ends("E_MODEL_TIMEOUT", 600));
    assert_eq!(run("", "modelTimeoutMs: 5000").await, ends("E_MODEL_TIMEOUT", 5));
    assert_eq!(run("modelTimeoutMs: 7000", "modelTimeoutMs: 5000").await, ends("E_MODEL_TIMEOUT", 7));
    assert_eq!(run("turnTimeoutMs: 3000", "modelTimeoutMs: 5000").await, ends("E_TURN_TIMEOUT", 3));
    assert_eq!(
        run("turnTimeoutMs: 9000", "turnTimeoutMs: 3000, modelTimeoutMs: 5000").await,
        ends("E_MODEL_TIMEOUT", 5)
    );
}

/// Asks for another run of every step.
struct Again;

#[goondan::extension(name = "again")]
impl Again {
    #[init]
    fn new() -> Self {
        Self
    }

    #[middleware(step)]
    async fn again(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        next.run(ctx).await?;
        Err(Error::retry_after(Duration::ZERO, "again"))
    }
}

#[tokio::test]
#[covers("D-22")]
async fn retries_are_limited_by_the_bundle() {
    for (policy, requests) in [("{}", 4), ("{ maxRetries: 1 }", 2), ("{ maxRetries: 0 }", 1)] {
        let directory = bundle_of(
            &(model("main", "{ provider: plain, record: ./requests.jsonl }")
                + "apiVersion: goondan.ai/v1\nkind: Extension\nmetadata: { name: again }\n"
                + "spec: { entry: \"linked:again\" }\n---\n"
                + AGENT
                + &format!("  extensions: [ {{ ref: Extension/again }} ]\n  policy: {policy}\n")),
        );
        let agents = Bundle::load(directory.path()).unwrap().build(MemoryStore::new()).await.unwrap();
        agents.get("main").unwrap().instance("a").await.unwrap().run("hi").await.unwrap_err();
        let lines = fs::read_to_string(directory.path().join("requests.jsonl")).unwrap();
        assert_eq!(lines.lines().count(), requests, "{policy}");
    }
}

#[test]
fn limits_are_whole_numbers() {
    let error = |policy: &str| {
        let text = model("main", "{ provider: plain }") + AGENT + &format!("  policy: {{ {policy} }}\n");
        let errors = Bundle::check(bundle_of(&text).path()).unwrap_err();
        format!("{} {}", errors.first().place.unwrap(), errors.first().message)
    };
    let range = "a whole number from 1 to 4294967295, but is the number";
    for limit in ["turnTimeoutMs", "modelTimeoutMs", "toolTimeoutMs", "maxStepsPerTurn"] {
        let column = 15 + limit.len();
        assert_eq!(error(&format!("{limit}: 0")), format!("11:{column} `spec.policy.{limit}` must be {range} `0`"));
    }
    assert!(error("maxRetries: -1").ends_with("must be a whole number from 0 to 4294967295, but is the number `-1`"));
    let text = model("main", "{ provider: plain }") + AGENT + "  policy: { maxRetries: 0 }\n";
    let bundle = Bundle::load(bundle_of(&text).path()).unwrap();
    assert_eq!(bundle.policy_of(bundle.entry_agent().unwrap()).max_retries, Some(0));
}
