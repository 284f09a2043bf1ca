//! Tools that ask other agents.
// F-AGENTS

use std::time::Duration;

use goondan::agent::AgentRequest;
use goondan::name::{AgentName, InstanceKey};
use goondan::prelude::*;
use goondan::{Map, Value};

/// The target and the message: the input of `agents__send`, and a part of the input of `agents__request`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Letter {
    /// The name of the other agent, one of `callableAgents` of `agents__catalog`.
    target: String,
    /// What it should do, in full: it does not see this conversation.
    #[schemars(length(min = 1))]
    input: String,
    /// Which conversation of the other agent. Agents remember each of theirs; left out, it is the one with the same key
    /// as this one.
    instance_key: Option<String>,
    /// Values for the extensions of the other agent. Leave it out unless you were told to use it.
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// The input of `agents__request`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Request {
    #[serde(flatten)]
    letter: Letter,
    /// How long to wait for the answer at most, in milliseconds. Leave it out to wait as long as it takes.
    #[schemars(range(min = 1, max = 3_600_000))]
    timeout_ms: Option<u64>,
    /// Does not wait: go on working, and the answer comes as a message.
    #[serde(default, rename = "async")]
    later: bool,
}

/// The longest wait of a request if the model does not say.
const LONGEST: Duration = Duration::from_hours(1);

/// The output of `agents__request`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    target: String,
    accepted: bool,
    #[serde(rename = "async")]
    later: bool,
    /// `requestId` in the metadata of the message that brings the answer of an `async` request.
    #[serde(skip_serializing_if = "Option::is_none")]
    correlation_id: Option<String>,
    response: Option<String>,
}

/// The output of `agents__send`.
#[derive(Debug, Serialize)]
struct Sent {
    target: String,
    accepted: bool,
}

/// The output of `agents__list`.
#[derive(Debug, Serialize)]
struct List {
    count: usize,
    agents: Vec<AgentName>,
}

/// The output of `agents__catalog`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Catalog {
    self_agent: AgentName,
    instance_key: InstanceKey,
    available_count: usize,
    callable_count: usize,
    available_agents: Vec<AgentName>,
    callable_agents: Vec<AgentName>,
}

impl Letter {
    fn into_request(self) -> Result<AgentRequest> {
        let mut request = AgentRequest::new(self.target).input(self.input);
        if let Some(key) = self.instance_key {
            request = request.instance(InstanceKey::new(&key)?);
        }
        request.metadata = self.metadata;
        Ok(request)
    }
}

/// Lets the model ask the other agents of its swarm.
#[goondan::extension(name = "agents", requires = ["agents"])]
pub mod tools {
    use super::*;

    /// Gives another agent a task, and returns its answer.
    // Longer than any request waits. The other agent answers a request once, also if it is made again.
    #[tool(effect = idempotent, parallel, timeout = "1h 1m", present = "{target}: {input}")]
    async fn request(input: Request, ctx: &ToolContext<'_>) -> Result<Answer> {
        let target = input.letter.target.clone();
        // The deadlines of the turn that asks are those of the answer too.
        let timeout = input.timeout_ms.map_or(LONGEST, Duration::from_millis);
        let request = input.letter.into_request()?.timeout(timeout);
        let (correlation_id, response) = if input.later {
            (Some(ctx.agents().request_later(request)?.correlation_id), None)
        } else {
            (None, Some(ctx.agents().request(request).await?.response))
        };
        Ok(Answer { target, accepted: true, later: input.later, correlation_id, response })
    }

    /// Tells another agent something, and does not wait for it. No answer comes.
    #[tool(effect = idempotent, parallel, present = "{target}: {input}")]
    async fn send(letter: Letter, ctx: &ToolContext<'_>) -> Result<Sent> {
        let target = letter.target.clone();
        Ok(Sent { target, accepted: ctx.agents().send(letter.into_request()?).await? })
    }

    /// Lists the agents that can be asked.
    #[tool(effect = read)]
    async fn list(ctx: &ToolContext<'_>) -> Result<List> {
        let agents = ctx.agents().list();
        Ok(List { count: agents.len(), agents })
    }

    /// Tells who you are, and which agents there are and can be asked.
    #[tool(effect = read)]
    async fn catalog(ctx: &ToolContext<'_>) -> Result<Catalog> {
        let (this, callable_agents) = (ctx.agent_name(), ctx.agents().list());
        let mut available_agents = callable_agents.clone();
        available_agents.push(this.clone());
        available_agents.sort();
        Ok(Catalog {
            self_agent: this.clone(),
            instance_key: ctx.instance_key().clone(),
            available_count: available_agents.len(),
            callable_count: callable_agents.len(),
            available_agents,
            callable_agents,
        })
    }
}
