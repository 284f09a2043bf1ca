//! An extension that passes on, leaves out, makes or changes what a model thought.

use goondan::conversation::{Content, Part};
use goondan::prelude::*;
use goondan::{Value, json};

/// Treats the reasoning of earlier turns as its config says.
pub struct Handling {
    config: HandlingConfig,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct HandlingConfig {
    mode: Mode,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Mode {
    Copy,
    Drop,
    Make,
    Change,
}

#[goondan::extension(name = "handling")]
impl Handling {
    #[init]
    fn new(config: HandlingConfig) -> Self {
        Self { config }
    }

    #[middleware(turn)]
    async fn handle(&self, ctx: &mut TurnContext<'_>, next: Next<'_, Turn>) -> Result<TurnResult> {
        let thought = ctx.conversation().base().find(|message| message.content().parts().iter().any(is_reasoning));
        let Some(message) = thought.map(|message| message.to_message()) else { return next.run(ctx).await };
        let parts = message.content().parts().to_vec();
        let id = message.id().clone();
        let event = match self.config.mode {
            Mode::Copy => MessageEvent::replace(id, message),
            Mode::Drop => {
                let rest: Vec<_> = parts.into_iter().filter(|part| !is_reasoning(part)).collect();
                MessageEvent::replace(id, message.with_content(rest))
            }
            Mode::Make => {
                let made = serde_json::from_value(json!({ "type": "reasoning", "text": "mine" }))?;
                MessageEvent::append(Message::new(Role::Assistant, vec![made], message.source().clone()))
            }
            Mode::Change => {
                let mut changed: Value = json!(parts);
                changed[0]["text"] = json!("something else");
                MessageEvent::replace(id, message.with_content(serde_json::from_value::<Content>(changed)?))
            }
        };
        ctx.emit(event);
        next.run(ctx).await
    }
}

fn is_reasoning(part: &Part) -> bool {
    matches!(part, Part::Reasoning(_))
}
