//! Errors in swarms.

use crate::fixture::{AGENT, MODEL, assert_error};

fn swarm(spec: &str) -> String {
    format!("apiVersion: goondan.ai/v1\nkind: Swarm\nmetadata: {{ name: team }}\nspec: {{ {spec} }}\n")
}

#[test]
fn entry_agent_is_one_of_the_agents() {
    let other = AGENT.replace("name: main", "name: other");
    let swarm = swarm("agents: [ { ref: Agent/main } ], entryAgent: Agent/other");
    assert_error(
        &[&swarm, MODEL, AGENT, &other],
        "E_CONFIG_SCHEMA_INVALID",
        "4:54",
        &["one of `spec.agents`", "`other`"],
    );
}

#[test]
fn swarm_names_its_agents() {
    let words = ["at least one agent"];
    assert_error(
        &[&swarm("agents: [], entryAgent: Agent/main"), MODEL, AGENT],
        "E_CONFIG_SCHEMA_INVALID",
        "4:17",
        &words,
    );
    let words = ["`spec.entryAgent` is missing"];
    assert_error(&[&swarm("agents: [ { ref: Agent/main } ]"), MODEL, AGENT], "E_CONFIG_SCHEMA_INVALID", "4:7", &words);
    let dangling = swarm("agents: [ { ref: Agent/mine } ], entryAgent: Agent/main");
    assert_error(&[&dangling, MODEL, AGENT], "E_CONFIG_REF_NOT_FOUND", "4:26", &["no Agent `mine`", "`main`"]);
}

#[test]
fn second_swarm() {
    let one = swarm("agents: [ { ref: Agent/main } ], entryAgent: Agent/main");
    let two = one.replace("team", "crew");
    assert_error(&[&one, MODEL, AGENT, &two], "E_CONFIG_SCHEMA_INVALID", "19:19", &["one at most"]);
}
