//! An extension whose tools ask questions of each kind: within their calls, or by letting the turn wait.

use goondan::decision::Question;
use goondan::prelude::*;
use goondan::tool::ToolReply;
use goondan::{Secret, Value, json};

#[derive(Debug, Deserialize, JsonSchema)]
struct Asked {
    kind: String,
}

fn question(kind: &str) -> Question {
    match kind {
        "confirm" => Question::new("Shall the parcel go today?"),
        "choose" => Question::choose("Which carrier?", ["Post", "Express", "by a friend who travels there next week"]),
        "several" => Question::choose_several("On which days?", ["Monday", "Tuesday", "Wednesday"]),
        "text" => Question::for_text("What is written on the card?"),
        "secret" => Question::for_secret("Which code opens the door?"),
        "address" => Question::for_address("Sign in to the shop.", "https://shop.example.org/device?code=ABCD-EFGH"),
        "form" => Question::new("Where to?").expecting_schema(json!({
            "type": "object",
            "properties": {
                "city": { "type": "string", "title": "City" },
                "floor": { "type": "integer", "title": "Floor", "default": 2 },
                "lift": { "type": "boolean", "title": "Is there a lift?" },
                "pin": { "type": "string", "format": "password", "title": "Code of the door" },
            },
            "required": ["city"],
        })),
        "nested" => Question::new("Which card?").expecting_schema(json!({
            "type": "object",
            "properties": { "card": { "type": "object", "properties": { "pin": { "type": "string", "format": "password" } } } },
        })),
        _ => Question::new("Still there?").expires_after(std::time::Duration::from_millis(300)),
    }
}

fn shown(kind: &str, value: &Value) -> String {
    match kind {
        "secret" | "nested" => format!("{} characters", value.to_string().len()),
        "form" => format!("{} {}", value["city"], value["floor"]),
        _ => value.to_string(),
    }
}

/// Asks.
#[goondan::extension(name = "live")]
pub(crate) mod extension {
    use super::*;

    /// Asks within the call.
    #[tool(effect = read, asks, timeout = "5s")]
    async fn ask(input: Asked, ctx: &ToolContext<'_>) -> Result<String> {
        let value: Value = ctx.ask_live(question(&input.kind)).await?;
        Ok(shown(&input.kind, &value))
    }

    /// Lets the turn wait.
    #[tool(effect = read, asks)]
    async fn wait(input: Asked, ctx: &ToolContext<'_>) -> Result<ToolReply> {
        match ctx.decision::<Value>()? {
            Some(value) => Ok(ToolReply::text(shown(&input.kind, &value))),
            None => Ok(ToolReply::ask(question(&input.kind))),
        }
    }

    /// Asks in the background for a code, and says in the log that it was told one.
    #[tool(effect = read, asks)]
    async fn tell(ctx: &ToolContext<'_>) -> Result<String> {
        let code: Secret = ctx.ask_live(question("secret")).await?;
        ctx.logger().warn(format!("the code is {}", code.expose()));
        Ok("told".to_owned())
    }
}
