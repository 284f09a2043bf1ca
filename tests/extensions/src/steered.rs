//! An extension that guards the inputs which join a turn, and has tools for turns of several steps.

use goondan::prelude::*;

use crate::Log;

/// Logs what joins, masks the numbers of cards, and removes what is not to be read.
pub struct Steered {
    config: Config,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Config {
    log: Log,
    /// Whether the stream of each step is held.
    #[serde(default)]
    hold: bool,
}

#[goondan::extension(name = "steered")]
impl Steered {
    #[init]
    fn new(config: Config) -> Self {
        Self { config }
    }

    #[middleware(step)]
    async fn guard(&self, ctx: &mut StepContext<'_>, next: Next<'_, Step>) -> Result<StepResult> {
        if self.config.hold {
            ctx.hold_stream();
        }
        for id in ctx.joined_inputs() {
            let text = ctx
                .conversation()
                .iter()
                .find(|message| message.id() == id.as_str())
                .map(|joined| joined.text().into_owned());
            let step = ctx.step_index();
            self.config.log.write(format!("step {step}: {}", text.as_deref().unwrap_or("gone")));
            let Some(text) = text else { continue };
            if text.contains("4242") {
                let masked = Message::user(text.replace("4242", "****")).with_id(id.clone());
                ctx.emit(MessageEvent::replace(id, masked));
            } else if text.contains("never") {
                ctx.emit(MessageEvent::remove(id));
            }
        }
        next.run(ctx).await
    }

    #[tool(effect = read)]
    async fn look(&self) -> Result<&'static str> {
        Ok("seen")
    }

    #[tool]
    async fn act(&self) -> Result<&'static str> {
        Ok("done")
    }
}
