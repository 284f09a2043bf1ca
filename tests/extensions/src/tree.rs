//! An extension that lets another agent work, for what becomes of that agent's turn.

use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use goondan::agent::{AgentRequest, AgentsApi};
use goondan::prelude::*;

use crate::Log;

/// Asks the agents of its config from a tool or from its turn layer, and has a tool that works for a while.
pub struct Tree {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Config {
    log: Log,
    /// The agents of which the first answer counts.
    #[serde(default)]
    targets: Vec<String>,
    /// Whether the turn layer asks them.
    #[serde(default)]
    in_layer: bool,
    /// The time for which it waits.
    #[serde(default = "an_hour")]
    seconds: u64,
    /// Whether each request has a conversation of its own.
    #[serde(default)]
    ephemeral: bool,
    /// How often the tool that works is polled until it has ended. It never ends if this is left out.
    #[serde(default)]
    polls: Option<u32>,
}

fn an_hour() -> u64 {
    3_600
}

/// Writes to the log when something ends, however it does.
struct Runs<'a>(&'a Log, &'static str);

impl Drop for Runs<'_> {
    fn drop(&mut self) {
        self.0.write(format!("{} ends", self.1));
    }
}

impl Tree {
    /// Asks all, and returns the first answer.
    async fn ask(&self, agents: AgentsApi<'_>) -> Result<String> {
        let timeout = Duration::from_secs(self.config.seconds);
        let ask = |target: &String| {
            let mut request = AgentRequest::new(target).input("go").timeout(timeout);
            request.ephemeral = self.config.ephemeral;
            Box::pin(agents.request(request))
        };
        let mut requests: Vec<_> = self.config.targets.iter().map(ask).collect();
        let first = std::future::poll_fn(|cx| {
            let ready = requests.iter_mut().find_map(|request| match pin!(request).poll(cx) {
                Poll::Ready(answer) => Some(answer),
                Poll::Pending => None,
            });
            ready.map_or(Poll::Pending, Poll::Ready)
        });
        let answer = first.await;
        // From here on, the other agents work for no reason.
        drop(requests);
        let answer = answer.map(|answer| answer.response).inspect_err(|error| {
            self.config.log.write(format!("{} for {:?}", error.code(), self.config.targets));
        });
        // Long enough for them to end, while this turn runs.
        turns(20).await;
        self.config.log.write("goes on");
        answer
    }
}

/// Lets everything else run so often.
async fn turns(mut left: u32) {
    std::future::poll_fn(|cx| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[goondan::extension(name = "tree")]
impl Tree {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        if self.config.in_layer {
            let answer = self.ask(ctx.agents()).await?;
            ctx.emit(MessageEvent::append(Message::user(answer)));
        }
        next.run(ctx).await
    }

    /// Lets the other agents work.
    #[tool(effect = idempotent, timeout = "2h")]
    async fn delegate(&self, ctx: &ToolContext<'_>) -> Result<String> {
        self.ask(ctx.agents()).await
    }

    /// Works.
    #[tool(effect = idempotent, timeout = "2h")]
    async fn work(&self) -> Result<String> {
        let runs = Runs(&self.config.log, "work");
        self.config.log.write("work begins");
        match self.config.polls {
            Some(polls) => turns(polls).await,
            None => std::future::pending().await,
        }
        drop(runs);
        Ok("worked".into())
    }
}
