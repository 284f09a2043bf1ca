//! An extension that asks for values.

use goondan::agent::{AgentRequest, AgentsApi};
use goondan::event::AnswerFormat;
use goondan::prelude::*;

use crate::Log;

/// Asks an agent or a model for a value, in a turn layer or in a tool, and logs it.
pub struct Valuing {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    /// `turn`, `tool` or `later`.
    place: String,
    /// The agent that is asked; its own model if there is none.
    agent: Option<String>,
    /// How often the model is asked again.
    at_most: Option<u32>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Mood {
    angry: bool,
    words: Vec<String>,
}

impl Valuing {
    fn request(&self) -> AgentRequest {
        let request = match &self.config.agent {
            Some(agent) => AgentRequest::new(agent),
            None => AgentRequest::model(None),
        };
        let request = request.input("in what mood?");
        match self.config.at_most {
            Some(at_most) => request.expecting(AnswerFormat::of::<Mood>().at_most(at_most)),
            None => request,
        }
    }

    async fn ask(&self, agents: AgentsApi<'_>) -> String {
        let mood = agents.request_as::<Mood>(self.request()).await;
        let told = match mood {
            Ok(Mood { angry, words }) => format!("angry {angry}: {}", words.join(", ")),
            Err(error) => format!("{} after {:?}", error.code(), error.details().get("attempt")),
        };
        self.config.log.write(&told);
        told
    }
}

#[goondan::extension(name = "valuing")]
impl Valuing {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn turn(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        match &*self.config.place {
            "turn" => drop(self.ask(ctx.agents()).await),
            "later" => drop(ctx.agents().request_later(self.request())?),
            _ => {}
        }
        let result = next.run(ctx).await?;
        self.config.log.write(format!("{:?} is value: {}", result.text(), result.is_value()));
        Ok(result)
    }

    /// Looks for the mood.
    #[tool(name = "valuing__mood", effect = read)]
    async fn mood(&self, ctx: &ToolContext<'_>) -> Result<String> {
        Ok(self.ask(ctx.agents()).await)
    }
}
